"""The link source: records that the query names, and records that the best hits mention by name."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import index_terms, is_stop_word, term_hash
from sennit.filters import Filter
from sennit.graph.entity_linking import (
    LinkOptions,
    LinkScore,
    Mention,
    NameMatches,
    find_mentions,
    name_rarity,
    score_links,
)
from sennit.graph.names import Hashes, words_of
from sennit.ranking.fusion import order
from sennit.sources.base import SearchContext, SourceRequest
from sennit.stores.contract import BM25, GraphRole, GraphView, KeywordRole, ScoredKeys

NAME: Final = "links"


class _LinkResult(NamedTuple):
    """The link scores of one search, with the filter and BM25 constants they were computed for."""

    where: Filter
    bm25: BM25
    link_scores: dict[int, LinkScore]
    labels: dict[int, str]
    """The names of the seeds."""


class LinkSource:
    """Follows mentions one step, from the records that the query names and from its best keyword hits."""

    def __init__(self, graph: GraphRole, keyword: KeywordRole, options: LinkOptions | None = None) -> None:
        self._graph = graph
        self._keyword = keyword
        self.inline = not (graph.capabilities.waits or keyword.capabilities.waits)
        self.options = options or LinkOptions()
        # One search calls `search` and then `scores`; both use the same result.
        self._cache: WeakKeyDictionary[SearchContext, _LinkResult] = WeakKeyDictionary()

    def search(self, request: SourceRequest) -> ScoredKeys:
        links = self._cached_links(request)
        if links is None or not links.link_scores:
            return ScoredKeys.empty()
        keys = np.fromiter(links.link_scores, np.int64, len(links.link_scores))
        scores = np.array([link.score for link in links.link_scores.values()])
        best = order(keys, scores, request.context.snapshot.ids, request.limit)
        for key in keys[best].tolist():
            request.context.add_match_reason(
                request.list_name or NAME, key, _explain_link(links.link_scores[key], links)
            )
        return ScoredKeys(keys[best], scores[best])

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        links = self._cached_links(request)
        if links is None or not links.link_scores:
            return np.zeros(len(keys), np.float64)
        found = links.link_scores
        return np.array([found[key].score if key in found else 0.0 for key in keys.tolist()], np.float64)

    def _cached_links(self, request: SourceRequest) -> _LinkResult | None:
        """Return None if no record has a name."""
        graph = self._graph.view(request.context.snapshot)
        if not graph.has_names:
            return None
        known = self._cache.get(request.context)
        if known is None or (known.where, known.bm25) != (request.where, request.bm25):
            known = self._cache[request.context] = _follow_links(request, graph, self._keyword, self.options)
        return known


def _follow_links(
    request: SourceRequest, graph: GraphView, keyword: KeywordRole, options: LinkOptions
) -> _LinkResult:
    snapshot, query = request.context.snapshot, request.keyword_query

    def find(names: Hashes) -> NameMatches:
        return graph.entities_named(names, request.where)

    @cache
    def share(term: str) -> float:
        return keyword.document_share(snapshot, term_hash(term))

    @cache
    def rarity(mention: Mention) -> float:
        informative = [term for term in index_terms(mention.surface) if not is_stop_word(term)]
        return name_rarity(min(map(share, informative), default=1.0), snapshot.count(), mention.certain)

    named = [one for one in find_mentions([words_of(request.context.text)], find)[0] if rarity(one) > 0]
    named = named[: options.max_named]
    hits = keyword.search(snapshot, query, max(options.seeds, 1), request.where)
    best = float(hits.scores[0]) if len(hits.scores) else 1.0
    seeds = dict(zip(hits.keys[: options.seeds].tolist(), (hits.scores / best).tolist(), strict=False))
    # Records whose name few others share come first.
    by_name = [row for mention in sorted(named, key=lambda one: len(one.rows)) for row in mention.rows]
    texts = graph.labelled_texts(list(dict.fromkeys([*seeds, *by_name]))[: options.max_seeds])
    linked = dict(zip(texts, find_mentions([text.words for text in texts.values()], find), strict=True))

    def relevance(keys: list[int]) -> list[float]:
        scores = keyword.scores(snapshot, query, np.array(keys, np.int64)) / best
        return [min(score, 1.0) for score in scores.tolist()]

    found = score_links(named, seeds, linked, relevance, rarity, options)
    return _LinkResult(request.where, request.bm25, found, {row: text.label for row, text in texts.items()})


def _explain_link(link: LinkScore, links: _LinkResult) -> str:
    if link.seed is None:
        return f"you named *{link.name}*"
    seed = links.link_scores.get(link.seed)
    which = ", which you named," if seed is not None and seed.seed is None else ""
    return f"*{links.labels[link.seed]}*{which} mentions *{link.name}*"
