"""What a threshold means for a model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from sennit.apps.cli import program
from sennit.hydration.scale import measured

from .conftest import Open


def test_the_share_of_pairs_above_a_threshold_is_counted() -> None:
    # Six alike and six at right angles to them: of 66 pairs, 30 are alike.
    vectors = np.array([[1.0, 0.0]] * 6 + [[0.0, 3.0]] * 6, np.float32)
    scale = measured(vectors, 0.7)
    assert scale is not None
    assert (scale.pairs, scale.above, scale.median, scale.high) == (66, 30 / 66, 0.0, 1.0)
    at_most = measured(vectors, 1.0)
    assert at_most is not None
    assert at_most.above == 0.0


def test_too_few_vectors_say_nothing() -> None:
    assert measured(np.ones((9, 4), np.float32), 0.7) is None
    assert measured(np.zeros((50, 4), np.float32), 0.7) is None
    assert measured(np.zeros((0, 0), np.float32), 0.7) is None


def test_doctor_says_where_the_threshold_lies(shop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    db = shop()
    place = str(db.path)
    db.close()
    monkeypatch.setenv("SENNIT_HYDRATION_SEMANTIC_THRESHOLD", "-1")
    done = CliRunner().invoke(program, ["doctor", "--db", place, "--json"], prog_name="sennit")
    found = {one["check"]: one["message"] for one in json.loads(done.stdout)["findings"]}
    assert found["threshold"].startswith("100.00 % of")
    assert "(static/sennit-static-256)" in found["threshold"]
