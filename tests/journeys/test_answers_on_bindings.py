"""Answers on servers beside those of the embedded indexes: they differ only by what each binding promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.bindings import measure, read_collection
from benchmarks.server_frame import BINDINGS

pytestmark = pytest.mark.servers

QUESTIONS = 40
"""`python -m benchmarks.bindings` asks 500; docs/scale.md has its table."""

LEAST_RECALL = {"none": 0.4, "whole": 0.85}
"""Of the ten best by words, by the statistics that a binding promises."""


def test_answers_differ_by_the_promise_alone(shared_data: Path) -> None:
    records, queries = read_collection(shared_data / "cranfield")
    rows = measure(records, queries[:QUESTIONS], list(BINDINGS))
    assert {(row["binding"], row["recipe"]) for row in rows} == {
        (name, recipe) for name, binding in BINDINGS.items() for recipe in (*binding.roles, "rrf")
    }
    for row in rows:
        if row["recipe"] == "vector":
            # Exact cosines of approximate neighbours: what both find is in the same order.
            assert row["recall"] >= 0.97, row
            assert row["correlation"] >= 0.999, row
        elif row["recipe"] == "keyword":
            statistics = row["differs_by"].rpartition(" ")[2]
            assert row["recall"] >= LEAST_RECALL[statistics], row
        elif row["binding"] == "chroma":
            # The words are those of the embedded index.
            assert row["recall"] >= 0.97, row
