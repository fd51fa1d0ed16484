"""Compares any sequence of writes, flushes, merges and reopenings, with a second handle, with a plain dictionary."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import sennit
from sennit import Database, Record

from .helpers import (
    COMMON_WORD,
    assert_contains_exactly,
    embedded_store,
    is_nearest,
    search_keyword,
    versioned_record,
    word,
)

NAMES = st.sampled_from([f"r{n}" for n in range(12)])


class Machine(RuleBasedStateMachine):
    """Every handle must agree with the dictionary `expected`."""

    place = ":memory:"

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[str, Record] = {}
        self.number = 0
        self.deleted_words: list[str] = []

    @initialize(flush_at=st.sampled_from([1, 2, 4, 16]))
    def open(self, flush_at: int) -> None:
        self.flush_at = flush_at
        self.handles = [self.open_handle()]

    def open_handle(self) -> Database:
        return sennit.open(self.place, store__flush_at=self.flush_at)

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()

    def next_record(self, name: str) -> Record:
        self.number += 1
        return versioned_record(name, self.number, metadata={"even": self.number % 2 == 0})

    def mark_deleted(self, name: str) -> None:
        if name in self.expected:
            self.deleted_words.append(self.expected.pop(name).text.split()[0])

    @rule(name=NAMES, index=st.integers(0, 1))
    def add_one(self, name: str, index: int) -> None:
        record = self.next_record(name)
        written = self.handles[index % len(self.handles)].add([record])
        assert (written.added, written.updated) == ((0, 1) if name in self.expected else (1, 0))
        self.mark_deleted(name)
        self.expected[name] = record

    @rule(names=st.lists(NAMES, min_size=2, max_size=8), index=st.integers(0, 1))
    def add_many(self, names: list[str], index: int) -> None:
        batch = [self.next_record(name) for name in names]
        self.handles[index % len(self.handles)].add(batch)
        for record in batch:
            self.mark_deleted(record.id)
            self.expected[record.id] = record

    @rule(name=NAMES)
    def add_unchanged(self, name: str) -> None:
        if name in self.expected:
            assert self.handles[0].add([self.expected[name]]).unchanged == 1

    @rule(names=st.lists(NAMES, min_size=1, max_size=5), index=st.integers(0, 1))
    def remove(self, names: list[str], index: int) -> None:
        present = {name for name in names if name in self.expected}
        assert self.handles[index % len(self.handles)].remove(names) == len(present)
        for name in present:
            self.mark_deleted(name)

    @rule(index=st.integers(0, 1))
    def flush(self, index: int) -> None:
        self.handles[index % len(self.handles)].maintainer.flush()

    @rule(index=st.integers(0, 1), whole=st.booleans())
    def merge(self, index: int, whole: bool) -> None:
        self.handles[index % len(self.handles)].maintainer.merge(whole=whole)

    @rule(index=st.integers(0, 1))
    def optimise(self, index: int) -> None:
        self.handles[index % len(self.handles)].admin.optimise()

    @rule(index=st.integers(0, 1))
    def purge(self, index: int) -> None:
        embedded_store(self.handles[index % len(self.handles)]).purge_tombstones(1)

    @rule(name=NAMES, index=st.integers(0, 1))
    def check_one(self, name: str, index: int) -> None:
        handle = self.handles[index % len(self.handles)]
        record = self.expected.get(name)
        assert handle.get(name) == record
        if record is not None:
            assert search_keyword(handle, record.text.split()[0]) == [name]
            assert is_nearest(handle, record)

    @rule(index=st.integers(0, 1))
    def filter(self, index: int) -> None:
        even = {name for name, record in self.expected.items() if record.metadata["even"]}
        assert (
            set(search_keyword(self.handles[index % len(self.handles)], COMMON_WORD, filters="even = true"))
            == even
        )

    @invariant()
    def counts_agree(self) -> None:
        assert all(len(handle) == len(self.expected) for handle in self.handles)

    @rule()
    def check_everything(self) -> None:
        for handle in self.handles:
            assert_contains_exactly(handle, self.expected, self.deleted_words[-10:])
            assert search_keyword(handle, word(self.number + 1)) == []


class FolderMachine(Machine):
    """On disk: the folder is closed, reopened and opened twice."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="sennit-machine-"))
        self.place = str(self.folder / "db")

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)

    @precondition(lambda self: len(self.handles) == 1)
    @rule()
    def second_handle(self) -> None:
        self.handles.append(self.open_handle())

    @rule(index=st.integers(0, 1))
    def reopen(self, index: int) -> None:
        self.handles.pop(index % len(self.handles)).close()
        if not self.handles:
            self.handles.append(self.open_handle())
            assert_contains_exactly(self.handles[0], self.expected, self.deleted_words[-5:])

    @rule()
    def delete_the_indexes(self) -> None:
        for handle in self.handles:
            handle.close()
        shutil.rmtree(self.folder / "db" / "index", ignore_errors=True)
        self.handles = [self.open_handle()]

    @invariant()
    def nothing_had_to_be_repaired(self) -> None:
        assert not any(handle.store.notices for handle in self.handles)


BRIEF = settings(max_examples=12, stateful_step_count=25, deadline=None)
LONG = settings(max_examples=150, stateful_step_count=60, deadline=None, suppress_health_check=[*HealthCheck])


@pytest.mark.parametrize("machine", [Machine, FolderMachine])
def test_any_sequence_of_steps_agrees_with_a_dictionary(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=BRIEF)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machine", [Machine, FolderMachine])
def test_any_long_sequence_of_steps_agrees_with_a_dictionary(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=LONG)
