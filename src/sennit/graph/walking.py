"""From named things along facts, breadth first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

MOST_HOPS: Final = 4
"""Beyond it nearly everything is connected to nearly everything."""


class Edge(NamedTuple):
    """A fact as one of its two ends sees it."""

    row: int
    weight: float
    other: int
    """The number of the name at the other end."""


class Reached(NamedTuple):
    """A fact, how much it counts, in how many steps it was reached, and from which start."""

    row: int
    score: float
    distance: int
    start: int


@dataclass(frozen=True, slots=True)
class Walking:
    """How far and how wide facts are followed."""

    hops: int = 2
    step: float = 0.5
    """What a fact's weight is multiplied by for each step after the first: a friend's friend matters less."""
    fan: int = 32
    """Names followed from one step to the next, those of the heaviest facts: what makes a hub cheap."""
    as_of: datetime | None = None
    """None: what is true now. Otherwise what was true then."""

    def __post_init__(self) -> None:
        if type(self.hops) is not int or not 1 <= self.hops <= MOST_HOPS:
            raise ValueError(f"hops must be a whole number from 1 to {MOST_HOPS}, not {self.hops!r}")
        if type(self.fan) is not int or not 1 <= self.fan <= 10_000:
            raise ValueError(f"fan must be a whole number from 1 to 10,000, not {self.fan!r}")
        if not (isinstance(self.step, (int, float)) and 0 < self.step <= 1 and math.isfinite(self.step)):
            raise ValueError(f"step must be above 0 and at most 1, not {self.step!r}")


EdgesOf = Callable[[Sequence[int], int], Sequence[Sequence[Edge]]]
"""For each name its heaviest edges, at most so many, heaviest first."""


def walk(starts: Sequence[int], edges_of: EdgesOf, limit: int, walking: Walking) -> list[Reached]:
    """The `limit` facts that count most: by weight, less with every step; each once, at its shortest distance.

    A fact between two of the starts counts for both of them.
    """
    reached: dict[int, Reached] = {}
    seen = set(starts)
    frontier = list(dict.fromkeys((name, name) for name in starts))
    for distance in range(1, walking.hops + 1):
        factor = walking.step ** (distance - 1)
        onward: dict[int, tuple[float, int]] = {}
        found = edges_of([name for name, _ in frontier], limit)
        this_step: dict[int, Reached] = {}
        for (_, start), edges in zip(frontier, found, strict=True):
            for edge in edges:
                if edge.row in reached:
                    continue
                score = edge.weight * factor
                known = this_step.get(edge.row)
                if known is None:
                    this_step[edge.row] = Reached(edge.row, score, distance, start)
                elif distance == 1:
                    this_step[edge.row] = known._replace(score=known.score + score)
                if edge.other not in seen:
                    onward[edge.other] = max(onward.get(edge.other, (-1.0, 0)), (edge.weight, start))
        reached |= this_step
        heaviest = sorted(onward, key=lambda name: (-onward[name][0], name))[: walking.fan]
        seen.update(heaviest)
        frontier = [(name, onward[name][1]) for name in heaviest]
        if not frontier:
            break
    best = sorted(reached.values(), key=lambda one: (-one.score, one.distance, -one.row))
    return best[:limit]
