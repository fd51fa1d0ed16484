"""The features of a candidate: what a ranker can learn from, as numbers in a fixed, versioned order.

A feature is about the query and the candidate together, or about the candidate alone; where a candidate was shown is
none, because people choose what is at the top. A list counts by the kind of its source, so that recipes with other
names for their lists have the same features. nan means that a candidate has no such value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.stages import Floats
from sennit.results import Hit, Trace

FEATURES_VERSION: Final = 1
"""Changes whenever a name, its meaning or the order changes. Numbers of different versions must not be mixed."""

SOURCE_KINDS: Final = ("keyword", "vector", "graph", "links", "recent", "grep", "other")
"""A custom source is `other`."""

_BY_SOURCE: Final = ("reciprocal_rank", "score", "share")

FEATURE_NAMES: Final = (
    *(f"{kind}_{what}" for kind in SOURCE_KINDS for what in _BY_SOURCE),
    "lists",  # how many lists have it
    "fused",  # the score after fusion
    "score",  # the score after the last stage
    "coverage",  # the share of the query's information (idf) that the text has
    "lift",  # how far its cosine is above the background
    "linked",  # whether another record that was found mentions it
    "relevance",
    "query_words",
    "title_overlap",  # the share of the query's words that the title has
    "text_overlap",  # the same of the beginning of the text
    "log_length",  # of the text, in characters
    "log_age_days",
)

MAX_OVERLAP_CHARACTERS: Final = 4000
"""Characters of a text that are compared with the query, so that one long text does not slow a search down."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateColumns:
    """What the features of some candidates are computed from: one column for each candidate."""

    query: str
    kinds: Sequence[str]
    """The kind of the source of each list."""
    ranks: NDArray[Any]
    """[list, candidate], from 0; -1 where the list does not have it."""
    raw_scores: Floats
    """[list, candidate]; nan where the list has none. So the next."""
    shares: Floats
    fused: Floats
    scores: Floats
    coverage: Floats
    lift: Floats
    linked: Floats
    relevance: Floats
    titles: Sequence[str]
    texts: Sequence[str]
    age_days: Floats
    """nan for a record without a time."""


def feature_matrix(columns: CandidateColumns) -> Floats:
    """Return the features: a row for each candidate, a column for each of `FEATURE_NAMES`."""
    count = len(columns.fused)
    out: list[Floats] = []
    found = columns.ranks >= 0
    for kind in SOURCE_KINDS:
        rows = [at for at, name in enumerate(columns.kinds) if _kind(name) == kind]
        out += _source_columns(columns, found, rows, count)
    query_words = _words(columns.query)
    out += [
        found.sum(axis=0).astype(np.float64) if len(columns.kinds) else np.zeros(count),
        columns.fused,
        columns.scores,
        columns.coverage,
        columns.lift,
        columns.linked,
        columns.relevance,
        np.full(count, float(len(query_words))),
        np.array([_overlap(query_words, title) for title in columns.titles], np.float64),
        np.array([_overlap(query_words, text) for text in columns.texts], np.float64),
        np.log1p(np.array([len(text) for text in columns.texts], np.float64)),
        np.log1p(np.maximum(columns.age_days, 0.0)),
    ]
    return np.column_stack(out) if count else np.empty((0, len(FEATURE_NAMES)))


def trace_features(trace: Trace, hits: Sequence[Hit], now: datetime | None = None) -> list[tuple[float, ...]]:
    """Return the features of hits of an explained search, in the order of `FEATURE_NAMES`."""
    if not hits:
        return []
    at = [trace.column_of(hit.key) for hit in hits]
    known = np.array([column is not None for column in at])
    chosen = np.array([column or 0 for column in at], np.int64)
    answered = [source for source in trace.sources if source.error is None]
    evidence = [trace.relevance.get(hit.key) for hit in hits]
    seconds = (now or datetime.now(UTC)).timestamp()

    def pick(values: NDArray[Any], missing: float) -> NDArray[Any]:
        """The columns of the hits; a record that a stage added has none."""
        if values.shape[-1] == 0:
            return np.full((*values.shape[:-1], len(hits)), missing, values.dtype)
        return np.where(known, values[..., chosen], missing)

    matrix = feature_matrix(
        CandidateColumns(
            query=trace.query,
            kinds=[source.source for source in answered],
            ranks=pick(np.asarray(trace.ranks), -1),
            raw_scores=pick(trace.raw_scores, np.nan),
            shares=pick(trace.shares, 0.0),
            fused=pick(trace.fused_scores, 0.0),
            scores=np.array([hit.score for hit in hits]),
            coverage=_numbers([None if one is None else one.coverage for one in evidence]),
            lift=_numbers([None if one is None else one.lift for one in evidence]),
            linked=_numbers([None if one is None else one.linked for one in evidence]),
            relevance=np.array([hit.relevance for hit in hits]),
            titles=[hit.title for hit in hits],
            texts=[hit.text for hit in hits],
            age_days=_numbers(
                [
                    None
                    if hit.record.timestamp is None
                    else (seconds - hit.record.timestamp.timestamp()) / 86400
                    for hit in hits
                ]
            ),
        )
    )
    return [tuple(row) for row in matrix.tolist()]


def _kind(name: str) -> str:
    return name if name in SOURCE_KINDS else "other"


def _source_columns(
    columns: CandidateColumns, found: NDArray[np.bool_], rows: Sequence[int], count: int
) -> list[Floats]:
    """The best rank and score over the lists of one kind, and the sum of their shares."""
    if not rows:
        return [np.zeros(count), np.full(count, np.nan), np.zeros(count)]
    reciprocal = np.where(found[rows], 1.0 / (np.maximum(columns.ranks[rows], 0) + 1.0), 0.0)
    # fmax ignores nan, and is nan only if all are.
    return [
        reciprocal.max(axis=0),
        np.fmax.reduce(columns.raw_scores[rows], axis=0),
        columns.shares[rows].sum(axis=0),
    ]


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values])


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text[:MAX_OVERLAP_CHARACTERS].casefold()))


def _overlap(query_words: frozenset[str], text: str) -> float:
    return len(query_words & _words(text)) / len(query_words) if query_words else 0.0
