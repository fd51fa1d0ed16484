"""Breadth-first walks along facts, from the entities that a query names."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

MAX_HOPS: Final = 4
"""With more hops nearly everything is connected to nearly everything."""


class Edge(NamedTuple):
    """A fact seen from one of its two endpoints."""

    row: int
    weight: float
    other: int
    """The hash of the other endpoint's name."""


class ReachedFact(NamedTuple):
    """A fact that a walk reached, with its score, its distance in hops and the name that the walk started from."""

    row: int
    score: float
    distance: int
    start: int


@dataclass(frozen=True, slots=True)
class WalkOptions:
    """How far and how wide a walk follows facts."""

    hops: int = 2
    hop_decay: float = 0.5
    """A fact's weight is multiplied by this for each hop after the first: a friend's friend matters less."""
    max_fanout: int = 32
    """Names followed from one hop to the next, those with the heaviest facts. This bounds the cost of a hub."""
    as_of: datetime | None = None
    """None: walk the facts that are valid now. Otherwise those that were valid then."""

    def __post_init__(self) -> None:
        if type(self.hops) is not int or not 1 <= self.hops <= MAX_HOPS:
            raise ValueError(f"hops must be a whole number from 1 to {MAX_HOPS}, not {self.hops!r}")
        if type(self.max_fanout) is not int or not 1 <= self.max_fanout <= 10_000:
            raise ValueError(f"max_fanout must be a whole number from 1 to 10,000, not {self.max_fanout!r}")
        decay = self.hop_decay
        if not (isinstance(decay, (int, float)) and 0 < decay <= 1 and math.isfinite(decay)):
            raise ValueError(f"hop_decay must be above 0 and at most 1, not {decay!r}")


EdgesOf = Callable[[Sequence[int], int], Sequence[Sequence[Edge]]]
"""Returns, for each name, its heaviest edges: at most `count`, heaviest first."""


def walk(starts: Sequence[int], edges_of: EdgesOf, limit: int, options: WalkOptions) -> list[ReachedFact]:
    """The `limit` best facts by decayed weight, each once and at its shortest distance.

    A fact between two start names scores for both.
    """
    reached: dict[int, ReachedFact] = {}
    visited = set(starts)
    frontier = list(dict.fromkeys((name, name) for name in starts))
    for distance in range(1, options.hops + 1):
        factor = options.hop_decay ** (distance - 1)
        next_names: dict[int, tuple[float, int]] = {}
        found = edges_of([name for name, _ in frontier], limit)
        this_hop: dict[int, ReachedFact] = {}
        for (_, start), edges in zip(frontier, found, strict=True):
            for edge in edges:
                if edge.row in reached:
                    continue
                score = edge.weight * factor
                known = this_hop.get(edge.row)
                if known is None:
                    this_hop[edge.row] = ReachedFact(edge.row, score, distance, start)
                elif distance == 1:
                    this_hop[edge.row] = known._replace(score=known.score + score)
                if edge.other not in visited:
                    next_names[edge.other] = max(next_names.get(edge.other, (-1.0, 0)), (edge.weight, start))
        reached |= this_hop
        heaviest = sorted(next_names, key=lambda name: (-next_names[name][0], name))[: options.max_fanout]
        visited.update(heaviest)
        frontier = [(name, next_names[name][1]) for name in heaviest]
        if not frontier:
            break
    best = sorted(reached.values(), key=lambda fact: (-fact.score, fact.distance, -fact.row))
    return best[:limit]
