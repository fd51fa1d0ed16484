"""Breadth-first walks along facts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.graph.traversal import Edge, EdgesOf, ReachedFact, WalkOptions, walk

Facts = list[tuple[int, int, float]]


def graph(facts: Facts) -> EdgesOf:
    """The edges of facts. The row of a fact is its index."""
    by_name: dict[int, list[Edge]] = {}
    for row, (subject, object_, weight) in enumerate(facts):
        for name, other in {(subject, object_), (object_, subject)}:
            by_name.setdefault(name, []).append(Edge(row, weight, other))

    def edges_of(names: Sequence[int], count: int) -> list[list[Edge]]:
        heaviest = (
            sorted(by_name.get(name, ()), key=lambda edge: (-edge.weight, -edge.row)) for name in names
        )
        return [edges[:count] for edges in heaviest]

    return edges_of


def reached(starts: list[int], facts: Facts, limit: int = 10, **settings: object) -> list[tuple[int, float]]:
    found = walk(starts, graph(facts), limit, WalkOptions(**settings))  # type: ignore[arg-type]
    return [(one.row, one.score) for one in found]


CHAIN: Facts = [(1, 2, 1.0), (2, 3, 1.0), (3, 4, 1.0)]


def test_the_score_decays_with_every_hop() -> None:
    assert reached([1], CHAIN, hops=1) == [(0, 1.0)]
    assert reached([1], CHAIN, hops=2) == [(0, 1.0), (1, 0.5)]
    assert reached([1], CHAIN, hops=3) == [(0, 1.0), (1, 0.5), (2, 0.25)]


def test_facts_are_followed_in_both_directions() -> None:
    assert reached([4], CHAIN) == [(2, 1.0), (1, 0.5)]


def test_a_heavy_distant_fact_can_outrank_a_light_near_one() -> None:
    assert reached([1], [(1, 2, 0.2), (1, 3, 0.9), (2, 4, 1.0)]) == [(1, 0.9), (2, 0.5), (0, 0.2)]


def test_a_fact_between_two_start_names_scores_for_both() -> None:
    assert reached([1, 2], [(1, 2, 1.0), (1, 3, 1.5), (2, 4, 1.2)], hops=1) == [(0, 2.0), (1, 1.5), (2, 1.2)]


def test_an_unknown_name_reaches_nothing() -> None:
    assert reached([99], CHAIN) == []
    assert reached([], CHAIN) == []


def test_cycles_end() -> None:
    ring: Facts = [(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (1, 1, 1.0)]
    assert reached([1], ring, hops=4) == [(3, 1.0), (2, 1.0), (0, 1.0), (1, 0.5)]


def test_only_the_heaviest_facts_are_followed_further() -> None:
    star: Facts = [(0, n, n / 100) for n in range(1, 50)] + [(n, n + 100, 1.0) for n in range(1, 50)]
    requested: list[list[int]] = []

    def edges_of(names: Sequence[int], count: int) -> Sequence[Sequence[Edge]]:
        requested.append(list(names))
        return graph(star)(names, count)

    walk([0], edges_of, 40, WalkOptions(max_fanout=3))
    assert requested == [[0], [49, 48, 47]]


numbers = st.integers(0, 12)
facts = st.lists(st.tuples(numbers, numbers, st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=60)


@given(facts, st.lists(numbers, max_size=4), st.integers(1, 20), st.integers(1, 4), st.integers(1, 8))
def test_a_walk_is_bounded_ordered_deterministic_and_without_duplicates(
    facts: Facts, starts: list[int], limit: int, hops: int, max_fanout: int
) -> None:
    options = WalkOptions(hops=hops, max_fanout=max_fanout)
    found = walk(starts, graph(facts), limit, options)
    assert len(found) <= limit
    assert len({one.row for one in found}) == len(found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(1 <= one.distance <= hops and one.start in starts for one in found)
    assert found == walk(starts, graph(facts), limit, options)


@given(facts, numbers)
def test_without_limits_a_walk_reaches_every_fact_in_range_at_its_shortest_distance(
    facts: Facts, start: int
) -> None:
    found: list[ReachedFact] = walk([start], graph(facts), 1000, WalkOptions(hops=2, max_fanout=1000))
    near = {row for row, (subject, object_, _) in enumerate(facts) if start in (subject, object_)}
    friends = {end for row in near for end in facts[row][:2]}
    far = {row for row, (subject, object_, _) in enumerate(facts) if {subject, object_} & friends} - near
    assert {one.row: one.distance for one in found} == dict.fromkeys(near, 1) | dict.fromkeys(far, 2)


@pytest.mark.parametrize(
    "wrong", [{"hops": 0}, {"hops": 5}, {"max_fanout": 0}, {"hop_decay": 0.0}, {"hop_decay": 1.5}]
)
def test_invalid_options_are_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        WalkOptions(**wrong)  # type: ignore[arg-type]
