"""Learned ranking on real collections: better where it has judgements, and harmless where it has none."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from benchmarks.learned import COLLECTIONS, held_out, label, left_out

from sennit.evaluation.learning import OWN_FEATURES, LabelledQuery
from sennit.evaluation.statistics import holm

pytestmark = pytest.mark.slow


@cache
def labelled(data: Path, name: str) -> list[LabelledQuery]:
    """The candidates of the recipe `default` for the queries of a collection, with their grades."""
    return label(data, name, "static")


@pytest.mark.parametrize("name", ["cranfield", "scifact_train", "locomo_dev"])
def test_held_out_queries_are_ranked_better(shared_data: Path, name: str) -> None:
    row = held_out(name, labelled(shared_data, name), OWN_FEATURES)
    assert row.difference > 0
    assert row.p < 0.05


def test_a_collection_that_was_left_out_is_not_ranked_worse(shared_data: Path) -> None:
    every = {name: labelled(shared_data, name) for name in COLLECTIONS}
    rows = [left_out(name, every)[0] for name in COLLECTIONS]
    corrected = holm([row.p for row in rows])
    assert not [row for row, p in zip(rows, corrected, strict=True) if row.difference < 0 and p < 0.05]
    assert min(row.difference for row in rows) > -0.01
