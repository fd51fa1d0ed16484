"""Facts about what the question names, and about what those lead to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sennit.filters import Filter
from sennit.graph.linking import Bearers, mentions
from sennit.graph.names import SURE, Hashes, signed, words_of
from sennit.graph.walking import Edge, Reached, Walking, walk
from sennit.ranking.fusion import order
from sennit.sources.base import Ask, Question
from sennit.stores.contract import Found

NAME: Final = "graph"

MOST_STARTS: Final = 16
"""Names of one question from which facts are followed."""

MOST_CHARACTERS: Final = 2000
"""Of a question, in which names are looked for: each phrase of it is looked up."""


class _Walked(NamedTuple):
    """What was reached for a question, and under which conditions."""

    where: Filter
    pool: int
    reached: list[Reached]
    written: dict[int, str]
    """How the question wrote the names it starts from."""


class GraphSource:
    """Breadth first from the names in the question along facts that hold; by weight, less with each step."""

    inline = True

    def __init__(self, walking: Walking | None = None) -> None:
        self.walking = walking or Walking()
        # A search asks twice: for what is found, and for its scores of what others found.
        self._known: WeakKeyDictionary[Question, _Walked] = WeakKeyDictionary()

    def search(self, ask: Ask) -> Found:
        walked = self._walked(ask)
        keys = np.array([one.row for one in walked.reached], np.int64)
        scores = np.array([one.score for one in walked.reached], np.float64)
        for one in walked.reached:
            way = "about" if one.distance == 1 else f"{one.distance} steps from"
            ask.question.note(
                ask.name or NAME, one.row, f"{way} *{walked.written[one.start]}*, which you named"
            )
        best = order(keys, scores, ask.question.snapshot.ids, ask.pool)
        return Found(keys[best], scores[best])

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        found = {one.row: one.score for one in self._walked(ask).reached}
        return np.array([found.get(key, np.nan) for key in keys.tolist()], np.float64)

    def _walked(self, ask: Ask) -> _Walked:
        known = self._known.get(ask.question)
        if known is None or (known.where, known.pool) != (ask.where, ask.pool):
            known = self._known[ask.question] = _walk(ask, self.walking)
        return known


def _walk(ask: Ask, walking: Walking) -> _Walked:
    graph, where = ask.question.snapshot.graph, ask.where
    if not graph.has_facts:
        return _Walked(where, ask.pool, [], {})
    at = walking.as_of or ask.question.now

    def edges_of(names: Sequence[int], count: int) -> list[list[Edge]]:
        """A thing's facts are those of all its names."""
        others = graph.synonyms(np.array(names, np.int64), where)
        groups = [others.get(name) or [name] for name in names]
        flat = [name for group in groups for name in group]
        found = iter(graph.edges(flat, count, at, where, history=walking.as_of is not None))
        return [_heaviest((edge for _ in group for edge in next(found)), count) for group in groups]

    def find(names: Hashes) -> Bearers:
        """Names with facts, and names that a record declares; what bears a name is here the name itself."""
        numbers = signed(names)
        declared = graph.bearers(names, where)
        known = graph.known_ends(numbers)
        known[declared.which[declared.flags & SURE != 0]] = True
        which = np.flatnonzero(known)
        # Facts that may not be seen name nothing.
        seen = [bool(edges) for edges in edges_of(numbers[which].tolist(), 1)]
        which = which[np.array(seen, bool)]
        return Bearers(which, numbers[which], np.full(len(which), SURE, np.uint8))

    named = mentions([words_of(ask.question.text[:MOST_CHARACTERS])], find)[0]
    written = {row: mention.written for mention in named[:MOST_STARTS] for row in mention.rows}
    return _Walked(where, ask.pool, walk(list(written), edges_of, ask.pool, walking), written)


def _heaviest(edges: Iterable[Edge], count: int) -> list[Edge]:
    """A fact between two names of one thing stands there once."""
    return sorted({edge.row: edge for edge in edges}.values(), key=lambda one: (-one.weight, -one.row))[
        :count
    ]
