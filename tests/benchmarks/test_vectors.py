"""The comparison of ways to the nearest: every way is built, asked and judged by exact search."""

from __future__ import annotations

import numpy as np
from benchmarks.vectors import measured


def test_every_way_is_measured_and_codes_in_lists_find_nearly_all() -> None:
    chance = np.random.default_rng(1)
    centres = chance.normal(size=(40, 32))
    points = centres[chance.integers(0, 40, 4060)] + 0.5 * chance.normal(size=(4060, 32))
    unit = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    found = {name: rest for name, *rest in measured(unit[:4000], unit[4000:])}
    assert len(found) == 7
    assert all(seconds > 0 and p50 > 0 and ten >= 0.5 for seconds, p50, ten, _ in found.values())
    assert found["sennit: codes in lists"][2] >= 0.98
