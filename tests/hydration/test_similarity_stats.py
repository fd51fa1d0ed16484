"""Statistics of a model's cosines around a threshold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from sennit.apps.cli import program
from sennit.hydration.similarity_stats import measure_similarity

from .conftest import Open


def test_the_share_of_pairs_above_a_threshold_is_counted() -> None:
    # Six alike and six at right angles to them: of 66 pairs, 30 are alike.
    vectors = np.array([[1.0, 0.0]] * 6 + [[0.0, 3.0]] * 6, np.float32)
    stats = measure_similarity(vectors, 0.7)
    assert stats is not None
    assert (stats.pairs, stats.above, stats.median, stats.percentile_99) == (66, 30 / 66, 0.0, 1.0)
    at_most = measure_similarity(vectors, 1.0)
    assert at_most is not None
    assert at_most.above == 0.0


def test_too_few_vectors_give_no_statistics() -> None:
    assert measure_similarity(np.ones((9, 4), np.float32), 0.7) is None
    assert measure_similarity(np.zeros((50, 4), np.float32), 0.7) is None
    assert measure_similarity(np.zeros((0, 0), np.float32), 0.7) is None


def test_doctor_reports_the_share_of_pairs_above_the_threshold(
    shop: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = shop()
    place = str(db.path)
    db.close()
    monkeypatch.setenv("SENNIT_HYDRATION_SEMANTIC_THRESHOLD", "-1")
    done = CliRunner().invoke(program, ["doctor", "--db", place, "--json"], prog_name="sennit")
    found = {one["check"]: one["message"] for one in json.loads(done.stdout)["findings"]}
    assert found["threshold"].startswith("100.00 % of")
    assert "(static/sennit-static-256)" in found["threshold"]
