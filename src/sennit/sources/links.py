"""Records that the question names, and records that the ones near the question mention by name."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import is_stop, term_hash, terms
from sennit.filters import Filter
from sennit.graph.linking import Bearers, Gain, Linking, Mention, gains, mentions, rareness
from sennit.graph.names import Hashes, words_of
from sennit.ranking.fusion import order
from sennit.sources.base import Ask, Question
from sennit.stores.contract import BM25, Found

NAME: Final = "links"


class _Spread(NamedTuple):
    """What was worked out for a question, and for which filter and constants."""

    where: Filter
    bm25: BM25
    gains: dict[int, Gain]
    labels: dict[int, str]
    """What the seeds are called."""


class LinkSource:
    """One step from the names in the question, and from its best keyword hits, along what texts mention."""

    inline = True

    def __init__(self, linking: Linking | None = None) -> None:
        self.linking = linking or Linking()
        # A search asks twice: for what is found, and for its share of what others found.
        self._known: WeakKeyDictionary[Question, _Spread] = WeakKeyDictionary()

    def search(self, ask: Ask) -> Found:
        spread = self._spread(ask)
        if spread is None or not spread.gains:
            return Found.nothing()
        keys = np.fromiter(spread.gains, np.int64, len(spread.gains))
        scores = np.array([gain.score for gain in spread.gains.values()])
        best = order(keys, scores, ask.question.snapshot.ids, ask.pool)
        for key in keys[best].tolist():
            ask.question.note(ask.name or NAME, key, _reason(spread.gains[key], spread))
        return Found(keys[best], scores[best])

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        spread = self._spread(ask)
        if spread is None or not spread.gains:
            return np.zeros(len(keys), np.float64)
        found = spread.gains
        return np.array([found[key].score if key in found else 0.0 for key in keys.tolist()], np.float64)

    def _spread(self, ask: Ask) -> _Spread | None:
        """None where nothing has a name."""
        if not ask.question.snapshot.graph.has_names:
            return None
        known = self._known.get(ask.question)
        if known is None or (known.where, known.bm25) != (ask.where, ask.bm25):
            known = self._known[ask.question] = _work_out(ask, self.linking)
        return known


def _work_out(ask: Ask, linking: Linking) -> _Spread:
    snapshot, asked = ask.question.snapshot, ask.question.weighted_terms
    graph = snapshot.graph

    def find(names: Hashes) -> Bearers:
        return graph.bearers(names, ask.where)

    @cache
    def share(term: str) -> float:
        return snapshot.document_share(term_hash(term))

    @cache
    def rarity(mention: Mention) -> float:
        telling = [term for term in terms(mention.written) if not is_stop(term)]
        return rareness(min(map(share, telling), default=1.0), snapshot.count(), mention.certain)

    named = [one for one in mentions([words_of(ask.question.text)], find)[0] if rarity(one) > 0]
    named = named[: linking.most_named]
    hits = snapshot.keyword_search(asked, ask.bm25, max(linking.seeds, 1), ask.where)
    best = float(hits.scores[0]) if len(hits.scores) else 1.0
    seeds = dict(zip(hits.keys[: linking.seeds].tolist(), (hits.scores / best).tolist(), strict=False))
    # Of named records, those that share their name with few come first.
    by_name = [row for mention in sorted(named, key=lambda one: len(one.rows)) for row in mention.rows]
    texts = graph.texts(list(dict.fromkeys([*seeds, *by_name]))[: linking.most_seeds])
    linked = dict(zip(texts, mentions([text.words for text in texts.values()], find), strict=True))

    def relevance(keys: list[int]) -> list[float]:
        scores = snapshot.keyword_scores(asked, ask.bm25, np.array(keys, np.int64)) / best
        return [min(score, 1.0) for score in scores.tolist()]

    found = gains(named, seeds, linked, relevance, rarity, linking)
    return _Spread(ask.where, ask.bm25, found, {row: text.label for row, text in texts.items()})


def _reason(gain: Gain, spread: _Spread) -> str:
    if gain.seed is None:
        return f"you named *{gain.name}*"
    near = spread.gains.get(gain.seed)
    which = ", which you named," if near is not None and near.seed is None else ""
    return f"*{spread.labels[gain.seed]}*{which} mentions *{gain.name}*"
