"""What the similarity threshold of plans selects, as `sennit doctor` reports it."""

from __future__ import annotations

import json
from typing import get_args

import numpy as np
import pytest
from click.testing import CliRunner

from sennit.apps.cli.program import program
from sennit.engine.checks import measure_similarity
from sennit.settings.sections import SemanticMetric

from .conftest import Open


def test_the_share_of_pairs_above_a_threshold_is_counted() -> None:
    # Six alike and six at right angles to them: of 132 ordered pairs, 60 are alike.
    vectors = np.array([[1.0, 0.0]] * 6 + [[0.0, 3.0]] * 6, np.float32)
    for metric in get_args(SemanticMetric):
        stats = measure_similarity(vectors, "ollama/unknown", metric, 0.7)
        assert stats is not None
        assert (stats.pairs, stats.above, stats.median, stats.percentile_99) == (132, 60 / 132, 0.0, 1.0)
        at_most = measure_similarity(vectors, "ollama/unknown", metric, 1.0)
        assert at_most is not None
        assert at_most.above == 0.0


def test_the_calibrated_share_does_not_depend_on_where_the_cosines_of_a_model_lie() -> None:
    spread = np.random.default_rng(7).normal(size=(200, 64))
    plain = measure_similarity(spread.astype(np.float32), "ollama/plain", "calibrated", 0.7)
    # The same texts by a model whose cosines all lie near 0.8: one common direction is added.
    crowded = np.hstack([spread / np.linalg.norm(spread, axis=1, keepdims=True), np.full((200, 1), 2.0)])
    narrow = measure_similarity(crowded.astype(np.float32), "ollama/narrow", "calibrated", 0.7)
    by_cosine = measure_similarity(crowded.astype(np.float32), "ollama/narrow", "cosine", 0.7)
    assert plain is not None
    assert narrow is not None
    assert by_cosine is not None
    assert narrow.above == pytest.approx(plain.above, abs=0.01)
    assert by_cosine.above == 1.0


def test_too_few_vectors_give_no_statistics() -> None:
    assert measure_similarity(np.ones((9, 4), np.float32), "", "cosine", 0.7) is None
    assert measure_similarity(np.zeros((50, 4), np.float32), "", "cosine", 0.7) is None
    assert measure_similarity(np.zeros((0, 0), np.float32), "", "cosine", 0.7) is None


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
