"""The graph source: facts about the entities that the query names, and about those within reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sennit.filters import Filter
from sennit.graph.entity_linking import NameMatches, find_mentions
from sennit.graph.names import DECLARED, Hashes, as_signed, words_of
from sennit.graph.traversal import Edge, ReachedFact, WalkOptions, walk
from sennit.ranking.fusion import order
from sennit.sources.base import SearchContext, SourceRequest
from sennit.stores.contract import GraphRole, GraphView, ScoredKeys

NAME: Final = "graph"

MAX_START_ENTITIES: Final = 16
"""Entities named in one query from which the walk starts."""

MAX_QUERY_CHARACTERS: Final = 2000
"""Only this much of a query is searched for names, because every phrase of it is looked up."""


class _WalkResult(NamedTuple):
    """The facts that a walk reached, and the filter and limit it had."""

    where: Filter
    limit: int
    reached: list[ReachedFact]
    spellings: dict[int, str]
    """How the query spells the entities that the walk starts from."""


class GraphSource:
    """Walks breadth-first from the entities in the query along valid facts; weights count less with each hop."""

    def __init__(self, index: GraphRole, options: WalkOptions | None = None) -> None:
        self._index = index
        self.inline = not index.capabilities.waits
        self.options = options or WalkOptions()
        # One search calls `search` and then `scores`; both use the same walk.
        self._cache: WeakKeyDictionary[SearchContext, _WalkResult] = WeakKeyDictionary()

    def search(self, request: SourceRequest) -> ScoredKeys:
        walked = self._cached_walk(request)
        keys = np.array([one.row for one in walked.reached], np.int64)
        scores = np.array([one.score for one in walked.reached], np.float64)
        for one in walked.reached:
            way = "about" if one.distance == 1 else f"{one.distance} steps from"
            request.context.add_match_reason(
                request.list_name or NAME, one.row, f"{way} *{walked.spellings[one.start]}*, which you named"
            )
        best = order(keys, scores, request.context.snapshot.ids, request.limit)
        return ScoredKeys(keys[best], scores[best])

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        found = {one.row: one.score for one in self._cached_walk(request).reached}
        return np.array([found.get(key, np.nan) for key in keys.tolist()], np.float64)

    def _cached_walk(self, request: SourceRequest) -> _WalkResult:
        known = self._cache.get(request.context)
        if known is None or (known.where, known.limit) != (request.where, request.limit):
            known = self._cache[request.context] = _walk(
                request, self._index.view(request.context.snapshot), self.options
            )
        return known


def _walk(request: SourceRequest, graph: GraphView, options: WalkOptions) -> _WalkResult:
    where = request.where
    if not graph.has_facts:
        return _WalkResult(where, request.limit, [], {})
    as_of = options.as_of or request.context.now

    def read_edges(names: Sequence[int], count: int) -> list[list[Edge]]:
        """Return the heaviest facts of each entity, under all its names."""
        others = graph.synonyms(np.array(names, np.int64), where)
        groups = [others.get(name) or [name] for name in names]
        flat = [name for group in groups for name in group]
        found = iter(graph.edges(flat, count, as_of, where, history=options.as_of is not None))
        return [_heaviest_edges((edge for _ in group for edge in next(found)), count) for group in groups]

    def find(names: Hashes) -> NameMatches:
        """Find names that have facts or that a record declares. Here the row of an entity is its name."""
        numbers = as_signed(names)
        declared = graph.entities_named(names, where)
        known = graph.known_endpoints(numbers)
        known[declared.which[declared.flags & DECLARED != 0]] = True
        which = np.flatnonzero(known)
        # A name counts only if the caller may see a fact about it.
        visible = [bool(edges) for edges in read_edges(numbers[which].tolist(), 1)]
        which = which[np.array(visible, bool)]
        return NameMatches(which, numbers[which], np.full(len(which), DECLARED, np.uint8))

    named = find_mentions([words_of(request.context.text[:MAX_QUERY_CHARACTERS])], find)[0]
    spellings = {row: mention.surface for mention in named[:MAX_START_ENTITIES] for row in mention.rows}
    return _WalkResult(
        where, request.limit, walk(list(spellings), read_edges, request.limit, options), spellings
    )


def _heaviest_edges(edges: Iterable[Edge], count: int) -> list[Edge]:
    """Return the heaviest facts; a fact between two names of one entity counts once."""
    return sorted({edge.row: edge for edge in edges}.values(), key=lambda one: (-one.weight, -one.row))[
        :count
    ]
