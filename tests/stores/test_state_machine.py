"""Any sequence of writes, folds, reopenings and a second handle, against a plain dictionary."""

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

from .helpers import COMMON, assert_holds, by_keyword, is_nearest, numbered, word

NAMES = st.sampled_from([f"r{n}" for n in range(12)])


class Machine(RuleBasedStateMachine):
    """The truth is `expected`: what the dictionary says, every handle must say."""

    place = ":memory:"

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[str, Record] = {}
        self.number = 0
        self.gone: list[str] = []

    @initialize(fold_at=st.sampled_from([1, 2, 4, 16]))
    def open(self, fold_at: int) -> None:
        self.fold_at = fold_at
        self.handles = [self.opened()]

    def opened(self) -> Database:
        return sennit.open(self.place, store__fold_at=self.fold_at)

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()

    def next(self, name: str) -> Record:
        self.number += 1
        return numbered(name, self.number, metadata={"even": self.number % 2 == 0})

    def forget(self, name: str) -> None:
        if name in self.expected:
            self.gone.append(self.expected.pop(name).text.split()[0])

    @rule(name=NAMES, who=st.integers(0, 1))
    def put(self, name: str, who: int) -> None:
        record = self.next(name)
        written = self.handles[who % len(self.handles)].add([record])
        assert (written.added, written.updated) == ((0, 1) if name in self.expected else (1, 0))
        self.forget(name)
        self.expected[name] = record

    @rule(names=st.lists(NAMES, min_size=2, max_size=8), who=st.integers(0, 1))
    def put_many(self, names: list[str], who: int) -> None:
        batch = [self.next(name) for name in names]
        self.handles[who % len(self.handles)].add(batch)
        for record in batch:
            self.forget(record.id)
            self.expected[record.id] = record

    @rule(name=NAMES)
    def put_again(self, name: str) -> None:
        if name in self.expected:
            assert self.handles[0].add([self.expected[name]]).unchanged == 1

    @rule(names=st.lists(NAMES, min_size=1, max_size=5), who=st.integers(0, 1))
    def take_out(self, names: list[str], who: int) -> None:
        present = {name for name in names if name in self.expected}
        assert self.handles[who % len(self.handles)].remove(names) == len(present)
        for name in present:
            self.forget(name)

    @rule(who=st.integers(0, 1))
    def fold(self, who: int) -> None:
        self.handles[who % len(self.handles)].keeper.fold()

    @rule(who=st.integers(0, 1), whole=st.booleans())
    def merge(self, who: int, whole: bool) -> None:
        self.handles[who % len(self.handles)].keeper.settle(whole=whole)

    @rule(who=st.integers(0, 1))
    def optimise(self, who: int) -> None:
        self.handles[who % len(self.handles)].optimise()

    @rule(who=st.integers(0, 1))
    def purge(self, who: int) -> None:
        self.handles[who % len(self.handles)].store.purge(1)

    @rule(name=NAMES, who=st.integers(0, 1))
    def look(self, name: str, who: int) -> None:
        handle = self.handles[who % len(self.handles)]
        record = self.expected.get(name)
        assert handle.get(name) == record
        if record is not None:
            assert by_keyword(handle, record.text.split()[0]) == [name]
            assert is_nearest(handle, record)

    @rule(who=st.integers(0, 1))
    def filter(self, who: int) -> None:
        even = {name for name, record in self.expected.items() if record.metadata["even"]}
        assert set(by_keyword(self.handles[who % len(self.handles)], COMMON, filters="even = true")) == even

    @invariant()
    def counts_agree(self) -> None:
        assert all(len(handle) == len(self.expected) for handle in self.handles)

    @rule()
    def everything(self) -> None:
        for handle in self.handles:
            assert_holds(handle, self.expected, self.gone[-10:])
            assert by_keyword(handle, word(self.number + 1)) == []


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
        self.handles.append(self.opened())

    @rule(who=st.integers(0, 1))
    def reopen(self, who: int) -> None:
        self.handles.pop(who % len(self.handles)).close()
        if not self.handles:
            self.handles.append(self.opened())
            assert_holds(self.handles[0], self.expected, self.gone[-5:])

    @rule()
    def lose_the_indexes(self) -> None:
        for handle in self.handles:
            handle.close()
        shutil.rmtree(self.folder / "db" / "index", ignore_errors=True)
        self.handles = [self.opened()]

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
