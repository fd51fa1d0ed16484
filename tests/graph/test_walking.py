"""Facts, breadth first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.graph.walking import Edge, EdgesOf, Reached, Walking, walk

Facts = list[tuple[int, int, float]]


def graph(facts: Facts) -> EdgesOf:
    """The facts' edges; a fact's row is its place."""
    ends: dict[int, list[Edge]] = {}
    for row, (subject, object_, weight) in enumerate(facts):
        for name, other in {(subject, object_), (object_, subject)}:
            ends.setdefault(name, []).append(Edge(row, weight, other))

    def edges_of(names: Sequence[int], count: int) -> list[list[Edge]]:
        heaviest = (sorted(ends.get(name, ()), key=lambda edge: (-edge.weight, -edge.row)) for name in names)
        return [edges[:count] for edges in heaviest]

    return edges_of


def reached(starts: list[int], facts: Facts, limit: int = 10, **settings: object) -> list[tuple[int, float]]:
    found = walk(starts, graph(facts), limit, Walking(**settings))  # type: ignore[arg-type]
    return [(one.row, one.score) for one in found]


CHAIN: Facts = [(1, 2, 1.0), (2, 3, 1.0), (3, 4, 1.0)]


def test_one_step_and_two_steps_count_less_and_less() -> None:
    assert reached([1], CHAIN, hops=1) == [(0, 1.0)]
    assert reached([1], CHAIN, hops=2) == [(0, 1.0), (1, 0.5)]
    assert reached([1], CHAIN, hops=3) == [(0, 1.0), (1, 0.5), (2, 0.25)]


def test_facts_are_followed_in_both_directions() -> None:
    assert reached([4], CHAIN) == [(2, 1.0), (1, 0.5)]


def test_the_weight_decides_and_a_far_fact_may_weigh_more() -> None:
    assert reached([1], [(1, 2, 0.2), (1, 3, 0.9), (2, 4, 1.0)]) == [(1, 0.9), (2, 0.5), (0, 0.2)]


def test_a_fact_between_two_named_things_counts_for_both() -> None:
    assert reached([1, 2], [(1, 2, 1.0), (1, 3, 1.5), (2, 4, 1.2)], hops=1) == [(0, 2.0), (1, 1.5), (2, 1.2)]


def test_an_unknown_name_reaches_nothing() -> None:
    assert reached([99], CHAIN) == []
    assert reached([], CHAIN) == []


def test_cycles_end() -> None:
    ring: Facts = [(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (1, 1, 1.0)]
    assert reached([1], ring, hops=4) == [(3, 1.0), (2, 1.0), (0, 1.0), (1, 0.5)]


def test_only_the_heaviest_facts_are_followed_further() -> None:
    star: Facts = [(0, n, n / 100) for n in range(1, 50)] + [(n, n + 100, 1.0) for n in range(1, 50)]
    asked: list[list[int]] = []

    def edges_of(names: Sequence[int], count: int) -> Sequence[Sequence[Edge]]:
        asked.append(list(names))
        return graph(star)(names, count)

    walk([0], edges_of, 40, Walking(fan=3))
    assert asked == [[0], [49, 48, 47]]


numbers = st.integers(0, 12)
facts = st.lists(st.tuples(numbers, numbers, st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=60)


@given(facts, st.lists(numbers, max_size=4), st.integers(1, 20), st.integers(1, 4), st.integers(1, 8))
def test_a_walk_is_bounded_free_of_repeats_ordered_and_the_same_every_time(
    facts: Facts, starts: list[int], limit: int, hops: int, fan: int
) -> None:
    walking = Walking(hops=hops, fan=fan)
    found = walk(starts, graph(facts), limit, walking)
    assert len(found) <= limit
    assert len({one.row for one in found}) == len(found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert all(1 <= one.distance <= hops and one.start in starts for one in found)
    assert found == walk(starts, graph(facts), limit, walking)


@given(facts, numbers)
def test_without_limits_a_walk_reaches_what_is_within_its_steps_at_the_shortest_distance(
    facts: Facts, start: int
) -> None:
    found: list[Reached] = walk([start], graph(facts), 1000, Walking(hops=2, fan=1000))
    near = {row for row, (subject, object_, _) in enumerate(facts) if start in (subject, object_)}
    friends = {end for row in near for end in facts[row][:2]}
    far = {row for row, (subject, object_, _) in enumerate(facts) if {subject, object_} & friends} - near
    assert {one.row: one.distance for one in found} == dict.fromkeys(near, 1) | dict.fromkeys(far, 2)


@pytest.mark.parametrize("wrong", [{"hops": 0}, {"hops": 5}, {"fan": 0}, {"step": 0.0}, {"step": 1.5}])
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Walking(**wrong)  # type: ignore[arg-type]
