"""The graph source: facts about what the query names, facts whose text matches it, and those within reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.facts import ended_at, weight_of
from sennit.filters import Filter
from sennit.graph.entity_linking import NameMatches, find_mentions
from sennit.graph.names import DECLARED, Hashes, as_signed, name_hash, words_of
from sennit.graph.traversal import Edge, ReachedFact, WalkOptions, walk
from sennit.ranking.fusion import order
from sennit.records import Record
from sennit.sources.base import Prepared, SearchContext, SourceRequest
from sennit.sources.fact_entry import FACTS, EntryFact, fact_coverage, find_entry_facts, find_weightiest_facts
from sennit.stores.contract import (
    GraphRole,
    GraphView,
    KeywordQuery,
    KeywordRole,
    PartialKeys,
    ScoredKeys,
    Snapshot,
    SteppedIndex,
    Steps,
    VectorRole,
)

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
    reasons: dict[int, str]
    """Why each fact was reached, by row."""
    matches: dict[int, float]
    """How well each fact matches the query, by row."""


class _Indexes(NamedTuple):
    """What one walk reads; `vector` is None if the query vector may not be used."""

    graph: GraphView
    keyword: KeywordRole
    vector: VectorRole | None


class GraphSource:
    """Walks breadth-first along valid facts; weights count less with each hop.

    It starts from the entities in the query and from the facts whose own text matches the query. A query without a
    topic that asks for facts gets the weightiest.
    """

    def __init__(
        self,
        index: GraphRole,
        keyword: KeywordRole,
        vector: VectorRole,
        options: WalkOptions | None = None,
        *,
        by_meaning: bool = True,
    ) -> None:
        """`by_meaning`: whether the query vector may be used; not if a remote model computes it, which may hang."""
        self._index = index
        self._keyword = keyword
        self._vector = vector
        self.inline = not any(role.capabilities.waits for role in (index, keyword, vector))
        self.options = options or WalkOptions()
        self._by_meaning = by_meaning
        # One search calls `search` and then `scores`; both use the same walk.
        self._cache: WeakKeyDictionary[SearchContext, _WalkResult] = WeakKeyDictionary()

    def prepare(self) -> None:
        """Let the index import its client."""
        if isinstance(self._index, Prepared):
            self._index.prepare()

    def search(self, request: SourceRequest) -> ScoredKeys:
        walked = self._cached_walk(request)
        keys = np.array([one.row for one in walked.reached], np.int64)
        scores = np.array([one.score for one in walked.reached], np.float64)
        for one in walked.reached:
            request.context.add_match_reason(request.list_name or NAME, one.row, walked.reasons[one.row])
        request.context.fact_matches |= walked.matches
        best = order(keys, scores, request.context.snapshot.ids, request.limit)
        return ScoredKeys(keys[best], scores[best])

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        found = {one.row: one.score for one in self._cached_walk(request).reached}
        return np.array([found.get(key, np.nan) for key in keys.tolist()], np.float64)

    def _cached_walk(self, request: SourceRequest) -> _WalkResult:
        known = self._cache.get(request.context)
        if known is None or (known.where, known.limit) != (request.where, request.limit):
            known = self._cache[request.context] = _walk(
                request,
                _Indexes(
                    self._index.view(request.context.snapshot),
                    self._keyword,
                    self._vector if self._by_meaning else None,
                ),
                self.options,
            )
        return known


def _walk(request: SourceRequest, indexes: _Indexes, options: WalkOptions) -> _WalkResult:
    graph, where = indexes.graph, request.where
    if not graph.has_facts:
        return _WalkResult(where, request.limit, [], {}, {})
    as_of = options.as_of or request.context.now

    def is_valid(record: Record) -> bool:
        ended, began = ended_at(record), record.timestamp
        is_future = options.as_of is not None and began is not None and began > as_of
        return (ended is None or ended > as_of) and not is_future

    if request.context.time.asks_for_facts:
        heaviest = find_weightiest_facts(request.context, _wanted_facts(request), where, is_valid)
        return _WalkResult(
            where,
            request.limit,
            [ReachedFact(one.row, weight_of(one.record), 1, 0) for one in heaviest],
            {one.row: f"one of the weightiest facts ({weight_of(one.record):g})" for one in heaviest},
            {},
        )
    if request.context.time.lists_recent:  # it asks for what was said
        return _WalkResult(where, request.limit, [], {}, {})

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
    reached = {one.row: one for one in walk(list(spellings), read_edges, request.limit, options)}
    reasons = {one.row: f"{_way(one)} *{spellings[one.start]}*, which you named" for one in reached.values()}
    matches: dict[int, float] = {}
    for entry in _entry_facts(request, indexes, is_valid):
        weight, known = weight_of(entry.record), reached.get(entry.row)
        matches[entry.row] = entry.strength
        reached[entry.row] = (
            ReachedFact(entry.row, weight * entry.strength, 1, 0)
            if known is None
            else known._replace(score=known.score + weight * entry.strength)
        )
        reasons.setdefault(entry.row, f"its text matches ({entry.strength:.2f})")
        if spellings:
            continue  # the walk from the names has been everywhere that matters
        for one in walk(_endpoints(entry.record), read_edges, request.limit, options):
            if one.row not in reached:
                score = one.score * options.hop_decay * entry.strength
                reached[one.row] = ReachedFact(one.row, score, one.distance + 1, 0)
                reasons[one.row] = f"{one.distance + 1} steps from {entry.record.text!r}, which matches"
    best = sorted(reached.values(), key=lambda one: (-one.score, one.distance, -one.row))[: request.limit]
    matches = {
        row: max(matches.get(row, 0.0), fact_coverage(request.context.information, record))
        for row, record in request.context.records(one.row for one in best).items()
    }
    return _WalkResult(where, request.limit, best, reasons, matches)


def _wanted_facts(request: SourceRequest) -> int:
    """How many facts a question without a topic gets: half of the answer if it asks for what was said too."""
    if not request.context.time.lists_recent:
        return request.limit
    said = len(request.context.snapshot.newest(~FACTS & request.where, request.limit))
    return max((request.limit + 1) // 2, request.limit - said)


def _way(fact: ReachedFact) -> str:
    return "about" if fact.distance == 1 else f"{fact.distance} steps from"


def _endpoints(record: Record) -> list[int]:
    """The hashes of the names at both ends of a fact."""
    hashes = [name_hash(str(record.metadata[name])) for name in ("subject", "object")]
    return [name for name in hashes if name is not None]


def _entry_facts(
    request: SourceRequest, indexes: _Indexes, is_valid: Callable[[Record], bool]
) -> list[EntryFact]:
    """The facts whose own text matches. Without the indexes of words and vectors, only names lead into the graph."""
    context, vector = request.context, indexes.vector
    snapshot = context.snapshot
    problems: list[str] = []

    def search_words(terms: list[tuple[int, float]], count: int, where: Filter) -> Steps[ScoredKeys]:
        query = KeywordQuery(terms, request.bm25)
        return _search(indexes.keyword, snapshot, query, count, where, problems)

    def search_meaning(count: int, where: Filter) -> Steps[ScoredKeys]:
        assert vector is not None
        return _search(vector, snapshot, context.vector, count, where, problems)

    has_meaning = vector is not None and snapshot.model is not None and context.vector.any()
    found = find_entry_facts(
        context, search_words, search_meaning if has_meaning else None, request.limit, request.where, is_valid
    )
    for problem in dict.fromkeys(problems):
        context.warn(request.list_name or NAME, f"facts were not searched by their text: {problem}")
    return found


def _search(
    index: Any, snapshot: Snapshot, query: Any, count: int, where: Filter, problems: list[str]
) -> Steps[ScoredKeys]:
    """What an index finds; nothing, and a problem, where it does not answer."""
    try:
        if isinstance(index, SteppedIndex):
            found = yield from index.steps(snapshot, query, count, where)
        else:
            found = index.search(snapshot, query, count, where)
    except SourceError as error:
        problems.append(str(error))
        return ScoredKeys.empty()
    if isinstance(found, PartialKeys):
        problems.append(found.problem)
    return found


def _heaviest_edges(edges: Iterable[Edge], count: int) -> list[Edge]:
    """Return the heaviest facts; a fact between two names of one entity counts once."""
    return sorted({edge.row: edge for edge in edges}.values(), key=lambda one: (-one.weight, -one.row))[
        :count
    ]
