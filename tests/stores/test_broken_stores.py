"""The conformance kit fails, in the right place, for a store that breaks a promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import contextlib
from itertools import count

import pytest
from hypothesis import Phase, settings

settings.register_profile("no_shrinking", phases=[Phase.generate])
settings.load_profile("no_shrinking")

from sennit.stores.contract import ScoredKeys
from sennit.stores.embedded.snapshot import EmbeddedSnapshot
from sennit.stores.embedded.store import EmbeddedStore
from sennit.testing import RecordsConformance

honest = EmbeddedStore.snapshot


@contextlib.contextmanager
def broken(self, *audience):
    with honest(self, *audience) as snapshot:
        if self.index_folder is not None:  # the oracle, which is in memory, stays honest
            spoil(snapshot)
        yield snapshot


EmbeddedStore.snapshot = broken


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
