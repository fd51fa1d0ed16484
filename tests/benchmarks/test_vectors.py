"""The comparison of vector indexes: each is built, searched, and compared with exact search."""

from __future__ import annotations

import numpy as np
from benchmarks.vectors import measure_indexes


def test_every_index_is_measured_and_ivfpq_has_high_recall() -> None:
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(40, 32))
    points = centres[rng.integers(0, 40, 4060)] + 0.5 * rng.normal(size=(4060, 32))
    unit = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    found = {name: rest for name, *rest in measure_indexes(unit[:4000], unit[4000:])}
    assert len(found) == 7
    assert all(seconds > 0 and p50 > 0 and ten >= 0.5 for seconds, p50, ten, _ in found.values())
    assert found["sennit: IVF-PQ"][2] >= 0.98
