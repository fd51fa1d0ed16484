"""How well a fact's own text matches a query: the share of the query's information that it has."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from sennit.analysis import QueryTerm, count_terms, query_terms

MIN_MATCH: Final = 0.5
"""A fact is a way into the graph if it has at least this share of what the query asks for."""

MIN_COSINE_SHARE: Final = 0.85
"""By meaning alone, a fact must be nearly as close to the query as the closest record, as seen from the farthest fact
that was found: models differ in where their cosines begin."""

MIN_COSINE: Final = 0.5
"""By meaning alone, and because few facts show no beginning."""

MIN_FACTS_FOR_SCALE: Final = 10

MEANING_MATCH: Final = 0.6
"""What a match by meaning alone counts."""

ASKED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "lives": ("home", "address", "city", "town", "reside", "residence", "moved"),
    "works": ("job", "employer", "employed", "company", "profession", "occupation", "office"),
    "manager": ("boss",),
    "favourite": ("favorite", "best", "likes", "most"),
    "prefers": ("preference", "rather", "likes"),
    "allergic": ("allergy", "allergies"),
    "cat": ("pet",),
    "dog": ("pet",),
    "called": ("name",),
    "age": ("old",),
    "child": ("kid", "son", "daughter"),
    "sister": ("sibling",),
    "brother": ("sibling",),
    "husband": ("spouse",),
    "wife": ("spouse",),
    "speaks": ("language",),
    "quit": ("stop", "stopped"),
    "flat": ("apartment", "floor"),
}
"""For each word of a relation, the words with which questions ask for it."""


ASKED_IN_PHRASES: Final[Mapping[str, str]] = {"for a living": "job", "how old": "age"}
"""Phrases of questions whose words mean something else, each with the word that asks for the same."""

NEWS_BY_NAME: Final = 0.2
"""What a match by names alone counts if the query asks for news: a fact is known and no news."""

STATE_WORDS: Final = frozenset(
    term.hash
    for word in ("now", "currently", "current", "still", "nowadays", "today")
    for term in query_terms(word)
)
"""Words that ask for what is valid now, as every fact that has not ended is."""


def question_terms(question: str) -> list[QueryTerm]:
    """The terms of a question for facts: a phrase counts as the word that asks for the same."""
    for phrase, word in ASKED_IN_PHRASES.items():
        question = re.sub(rf"\b{phrase}\b", word, question, flags=re.I)
    return query_terms(question)


@cache
def _synonyms() -> dict[int, tuple[int, ...]]:
    """The hashes of the relation words that each word of a question stands for."""
    out: dict[int, list[int]] = {}
    for relation, words in ASKED_BY.items():
        for word in words:
            for asked in query_terms(word):
                out.setdefault(asked.hash, []).extend(term.hash for term in query_terms(relation))
    return {asked: tuple(meant) for asked, meant in out.items()}


@dataclass(frozen=True, slots=True)
class QueryInformation:
    """The terms of a query, each with its information, and those that it stands for."""

    weights: Mapping[int, float]
    by_name_alone: float = 1.0
    """How well a fact matches a query that has no words besides its names."""

    @classmethod
    def of(
        cls,
        query: Sequence[QueryTerm],
        share: Callable[[int], float],
        records: int,
        by_name_alone: float = 1.0,
    ) -> QueryInformation:
        """Weigh terms by rarity; `share` returns the share of records that contain a term."""
        return cls(
            {
                term.hash: math.log1p(1.0 / max(share(term.hash), 1.0 / max(records, 1)))
                for term in query
                if term.hash not in STATE_WORDS
            },
            by_name_alone,
        )

    @property
    def expanded(self) -> list[tuple[int, float]]:
        """The terms to search facts for, with the relation words that they stand for."""
        out = dict.fromkeys(self.weights, 1.0)
        for asked in self.weights:
            for meant in _synonyms().get(asked, ()):
                out.setdefault(meant, 1.0)
        return list(out.items())

    def coverage(self, text: str, *names: str) -> float:
        """Return the share of the query's information that a text has, from 0 to 1.

        The words of `names`, the two ends of a fact, do not count, because every fact about Priya has her name. A query
        that has no other words asks for anything about them.
        """
        named, _ = count_terms(" ".join(names))
        asked_for = {asked: weight for asked, weight in self.weights.items() if asked not in named}
        if not asked_for:
            return self.by_name_alone if self.weights else 0.0
        known, _ = count_terms(text)
        covered = sum(
            weight
            for asked, weight in asked_for.items()
            if asked in known or any(meant in known for meant in _synonyms().get(asked, ()))
        )
        return covered / sum(asked_for.values())


def meaning_matches(cosines: Mapping[int, float], best_cosine: float) -> dict[int, float]:
    """Return how well facts match by meaning, from their cosines and that of the closest record."""
    lowest = min(cosines.values(), default=0.0) if len(cosines) >= MIN_FACTS_FOR_SCALE else 0.0
    scale = max(best_cosine, max(cosines.values(), default=0.0)) - lowest
    shares = {key: (cosine - lowest) / scale for key, cosine in cosines.items()} if scale > 0 else {}
    return {
        key: MEANING_MATCH * share
        for key, share in shares.items()
        if share >= MIN_COSINE_SHARE and cosines[key] >= MIN_COSINE
    }
