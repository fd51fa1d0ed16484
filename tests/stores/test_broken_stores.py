"""The conformance kit fails, in the right place, for a store that breaks a promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
from itertools import count

import pytest
from hypothesis import Phase, settings

settings.register_profile("no_shrinking", phases=[Phase.generate])
settings.load_profile("no_shrinking")

from sennit.stores.contract import ScoredKeys
from sennit.stores.embedded.store import EmbeddedStore
from sennit.testing import RecordsConformance

honest = EmbeddedStore._open_snapshot  # the one place where every kind of read gets its snapshot


def broken(self, connection, audience):
    snapshot = honest(self, connection, audience)
    if self.index_folder is not None:  # the oracle, which is in memory, stays honest
        spoil(snapshot)
    return snapshot


EmbeddedStore._open_snapshot = broken


class TestBroken(RecordsConformance):
    @pytest.fixture
    def new_target(self, tmp_path):
        numbers = count()
        return lambda: str(tmp_path / f"db{next(numbers)}")
"""

REVERSED_SCORES = """
def spoil(snapshot):
    search = snapshot.keyword_search
    def worst_first(terms, bm25, k, *where):
        found = search(terms, bm25, k, *where)
        return ScoredKeys(found.keys[::-1], found.scores)
    snapshot.keyword_search = worst_first
"""

FILTER_IGNORED = """
def spoil(snapshot):
    search = snapshot.keyword_search
    snapshot.keyword_search = lambda terms, bm25, k, *where: search(terms, bm25, k)
"""

DELETED_RETURNED = """
first = {}
def spoil(snapshot):
    search = snapshot.keyword_search
    def stale(terms, bm25, k, *where):
        return first.setdefault((tuple(terms), k), search(terms, bm25, k, *where))
    snapshot.keyword_search = stale
"""


@pytest.mark.parametrize(
    ("spoil", "test"),
    [
        (REVERSED_SCORES, "test_results_traces_and_reasons_equal_those_of_the_embedded_store"),
        (FILTER_IGNORED, "test_filters_keep_exactly_what_matches"),
        (DELETED_RETURNED, "test_an_update_replaces_the_record_in_every_index"),
    ],
    ids=["scores reversed", "filter ignored", "replaced record returned"],
)
def test_a_store_that_breaks_a_promise_fails_in_the_right_place(
    spoil: str, test: str, tmp_path: Path
) -> None:
    module = tmp_path / "test_broken.py"
    module.write_text(f"{HEAD}\n{spoil}", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", test, str(module)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=200,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"FAILED test_broken.py::TestBroken::{test}" in run.stdout
    assert "1 failed" in run.stdout


BROKEN_INDEXES = """
import numpy as np
import pytest
from dataclasses import replace
from hypothesis import Phase, settings

settings.register_profile("no_shrinking", phases=[Phase.generate])
settings.load_profile("no_shrinking")

from sennit.filters import EVERYTHING
from sennit.stores.contract import ScoredKeys
from sennit.testing import KeywordConformance, RecordsConformance, VectorConformance
from sennit.testing.naive import NaiveKeyword, NaiveRecords, NaiveTransaction, NaiveVector, naive_backend


def target(backend, **roles):
    broken = replace(backend, **roles)
    return lambda: broken


class OnKeyword(KeywordConformance):
    @pytest.fixture
    def new_target(self):
        return lambda: target(naive_backend(), keyword=self.broken())


class ScoresReversed(NaiveKeyword):
    def search(self, snapshot, query, limit, where=EVERYTHING):
        found = super().search(snapshot, query, limit, where)
        return ScoredKeys(found.keys[::-1], found.scores[::-1])


class FilterIgnored(NaiveKeyword):
    def search(self, snapshot, query, limit, where=EVERYTHING):
        return super().search(snapshot, query, limit)


class FilterAfterLimit(NaiveKeyword):
    def search(self, snapshot, query, limit, where=EVERYTHING):
        found = super().search(snapshot, query, limit)
        kept = snapshot.select(found.keys, where)
        return ScoredKeys(found.keys[kept], found.scores[kept])


class DeletedReturned(NaiveKeyword):
    def __init__(self):
        self.seen = {}

    def search(self, snapshot, query, limit, where=EVERYTHING):
        found = super().search(snapshot, query, limit, where)
        self.seen.update(zip(found.keys.tolist(), found.scores.tolist()))
        ordered = sorted(self.seen.items(), key=lambda pair: -pair[1])[:limit]
        return ScoredKeys(np.array([k for k, _ in ordered], np.int64), np.array([s for _, s in ordered]))


class TiesByKey(NaiveKeyword):
    def search(self, snapshot, query, limit, where=EVERYTHING):
        found = super().search(snapshot, query, 10_000, where)
        best = np.lexsort((found.keys, -found.scores))[:limit]
        return ScoredKeys(found.keys[best], found.scores[best])


class TestScoresReversed(OnKeyword):
    broken = ScoresReversed


class TestFilterIgnored(OnKeyword):
    broken = FilterIgnored


class TestFilterAfterLimit(OnKeyword):
    broken = FilterAfterLimit


class TestDeletedReturned(OnKeyword):
    broken = DeletedReturned

    @pytest.fixture
    def new_target(self):
        def new():
            backend = naive_backend()
            keyword = DeletedReturned()
            broken = replace(backend, keyword=keyword)
            honest = backend.records.transaction
            def transaction():
                with backend.records.snapshot() as snapshot:
                    for key in snapshot.sample(EVERYTHING, 10_000).tolist():
                        keyword.seen[key] = 0.5
                return honest()
            backend.records.transaction = transaction
            return lambda: broken
        return new


class TestTiesByKey(OnKeyword):
    broken = TiesByKey


class TestHiddenReturned(KeywordConformance):
    @pytest.fixture
    def new_target(self):
        def new():
            backend = naive_backend()

            class HiddenReturned(NaiveKeyword):
                def search(self, snapshot, query, limit, where=EVERYTHING):
                    with backend.records.snapshot() as everything:
                        return super().search(everything, query, limit, where)

            return target(backend, keyword=HiddenReturned())
        return new


class TestWholeStatistics(KeywordConformance):
    @pytest.fixture
    def new_target(self):
        def new():
            backend = naive_backend()

            class WholeStatistics(NaiveKeyword):
                def scores(self, snapshot, query, keys):
                    with backend.records.snapshot() as everything:
                        return super().scores(everything, query, keys)

            return target(backend, keyword=WholeStatistics())
        return new


class Distances(NaiveVector):
    def search(self, snapshot, query, limit, where=EVERYTHING):
        found = super().search(snapshot, query, limit, where)
        return ScoredKeys(found.keys, 1 - found.scores)


class TestDistances(VectorConformance):
    @pytest.fixture
    def new_target(self):
        return lambda: target(naive_backend(), vector=Distances())


class LostByFlush(NaiveKeyword):
    def __init__(self, records):
        self.records, self.flushed = records, 0

    def search(self, snapshot, query, limit, where=EVERYTHING):
        found = super().search(snapshot, query, limit, where)
        kept = found.keys > self.flushed
        return ScoredKeys(found.keys[kept], found.scores[kept])

    def flush(self, at_least=1, *, wait=False):
        with self.records.snapshot() as snapshot:
            self.flushed = snapshot.seq

    def merge(self, **how): pass
    def purge(self): pass
    def rest(self): pass
    def cancel(self): pass


class TestLostByFlush(KeywordConformance):
    @pytest.fixture
    def new_target(self):
        def new():
            backend = naive_backend()
            keyword = LostByFlush(backend.records)
            return target(backend, keyword=keyword, upkeep=(keyword,))
        return new


class NeverApplied(NaiveKeyword):
    def applied(self, snapshot):
        return 0


class TestNeverApplied(OnKeyword):
    broken = NeverApplied


class OnWrites(RecordsConformance):
    @pytest.fixture
    def new_target(self, monkeypatch):
        honest, keeps = NaiveTransaction.write, self.keeps

        def write(self, records, vectors={}, *, remove=(), keep_vectors=False):
            honest(self, records, vectors, remove=remove, keep_vectors=keeps)

        monkeypatch.setattr(NaiveTransaction, "write", write)
        return lambda: target(naive_backend())


class TestVectorsNotKept(OnWrites):
    keeps = False


class TestVectorsLeftBehind(OnWrites):
    keeps = True


class TestUnusedForEver(RecordsConformance):
    @pytest.fixture
    def new_target(self, monkeypatch):
        monkeypatch.setattr(NaiveRecords, "delete_unused", lambda self, before, keep_bytes=0: 0)
        return lambda: target(naive_backend())
"""

FAULTS = {
    "TestScoresReversed": "test_the_best_come_first",
    "TestFilterIgnored": "test_a_filtered_search_fills_its_limit_when_excluded_records_would_outrank",
    "TestFilterAfterLimit": "test_a_filtered_search_fills_its_limit_when_excluded_records_would_outrank",
    "TestDeletedReturned": "test_a_replaced_or_deleted_record_never_returns",
    "TestTiesByKey": "test_equal_scores_are_ordered_by_id",
    "TestHiddenReturned": "test_no_hidden_record_returns_though_it_would_outrank",
    "TestWholeStatistics": "test_hidden_records_have_no_influence_on_scores",
    "TestDistances": "test_the_best_come_first",
    "TestNeverApplied": "test_upkeep_leaves_nothing_to_the_buffer",
    "TestLostByFlush": "test_a_search_equals_a_scan_of_the_snapshot",
    "TestVectorsNotKept": "test_a_kept_vector_serves_a_text_that_comes_back",
    "TestVectorsLeftBehind": "test_a_removal_on_request_leaves_no_vector_of_its_document",
    "TestUnusedForEver": "test_unused_vectors_are_deleted_by_size_and_by_age",
}


def test_a_broken_index_fails_in_the_right_place(tmp_path: Path) -> None:
    module = tmp_path / "test_broken.py"
    module.write_text(BROKEN_INDEXES, encoding="utf-8")
    nodes = [f"{module}::{name}::{test}" for name, test in FAULTS.items()]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *nodes],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=200,
    )
    for name, test in FAULTS.items():
        assert f"FAILED test_broken.py::{name}::{test}" in run.stdout, run.stdout + run.stderr
    assert f"{len(FAULTS)} failed" in run.stdout
    # The assertion fails, not the broken index.
    errors = [line for line in run.stdout.splitlines() if line.startswith("E ") and "Error" in line]
    assert all("AssertionError" in line for line in errors), errors
