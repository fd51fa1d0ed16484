"""The features of a candidate: what a ranker can learn from, as numbers in a fixed, versioned order.

A feature is about the query and the candidate together, or about the candidate alone; where a candidate was shown is
none, because people choose what is at the top. A list counts by the kind of its source, so that recipes with other
names for their lists have the same features. nan means that a candidate has no such value.

The candidates of a running search and the hits of a trace have the same features, so what is learned from the one applies
to the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.relevance import LIFT_WEIGHT
from sennit.ranking.stages import Floats
from sennit.records import Record
from sennit.results import Hit, StageTrace, Trace

FEATURES_VERSION: Final = 2
"""Changes whenever a name, its meaning or the order changes. Numbers of different versions must not be mixed."""

SOURCE_KINDS: Final = ("keyword", "vector", "graph", "links", "recent", "grep", "other")
"""A custom source is `other`."""

COLLECTIONS: Final = ("artifacts", "artifact_chunks", "memory", "history", "facts")
"""The collections that a ranker can tell apart: those that recipes search together."""

_COLLECTION_ROWS: Final = {name: row for row, name in enumerate(COLLECTIONS)}

_BY_SOURCE: Final = ("reciprocal_rank", "score", "relative", "share")
"""The last but one is the score as a share of the best in the list."""

BASE_FEATURE: Final = "score_relative"
"""The recipe's own score as a share of the best: what a ranker starts from."""

FEATURE_NAMES: Final = (
    *(f"{kind}_{what}" for kind in SOURCE_KINDS for what in _BY_SOURCE),
    "lists",  # how many lists have it
    "fused",  # the score after fusion
    "score",  # the score after the last stage
    BASE_FEATURE,
    "coverage",  # the share of the query's information (idf) that the text has
    "lift",  # how far its cosine is above the background
    "linked",  # whether another record that was found mentions it
    "match",  # how well it matches by words and by meaning
    "match_relative",  # the same as a share of the best at the top
    "best_match",  # the best at the top: whether the question is about this database at all
    "query_words",
    "title_overlap",  # the share of the query's words that the title has
    "log_length",  # of the text, in characters
    "log_age_days",
    *(f"in_{name}" for name in COLLECTIONS),
)

OWN_SCALE: Final = frozenset(
    {"fused", "score", *(f"{kind}_{what}" for kind in SOURCE_KINDS for what in ("score", "share"))}
)
"""Features whose scale is that of a database or a recipe. Trees do not use them: what is high in one is low in another."""

NEUTRAL: Final = frozenset(
    {"best_match", "query_words", "log_length", "log_age_days", *(f"in_{c}" for c in COLLECTIONS)}
)
"""Features that say nothing for or against a candidate by themselves. With any other, more is never worse."""

MAX_OVERLAP_CHARACTERS: Final = 1000
"""Characters of a query or title that are compared, so that a long one does not slow a search down."""

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
    """[list, candidate]; nan where the list has none."""
    best_scores: Floats
    """[list]: the best score of the list, for whichever candidate; nan for an empty list."""
    shares: Floats
    """[list, candidate]: what each list adds to the fused score."""
    fused: Floats
    scores: Floats
    best_score: float
    """The best score of any candidate."""
    coverage: Floats
    lift: Floats
    linked: Floats
    best_match: Floats
    records: Sequence[Record]
    now: datetime


def feature_matrix(columns: CandidateColumns) -> Floats:
    """Return the features: a row for each candidate, a column for each of `FEATURE_NAMES`."""
    count = len(columns.fused)
    if not count:
        return np.empty((0, len(FEATURE_NAMES)))
    # A row for each feature, which is filled at once; the trees read columns of the transposed matrix.
    out = np.empty((len(FEATURE_NAMES), count))
    found = columns.ranks >= 0
    kinds = [kind if kind in SOURCE_KINDS else "other" for kind in columns.kinds]
    for at, kind in enumerate(SOURCE_KINDS):
        rows = [row for row, name in enumerate(kinds) if name == kind]
        _fill_source(out[at * len(_BY_SOURCE) :], columns, found, rows)
    query_words = _words(columns.query)
    # An unknown part counts 0, as it does for the relevance.
    matched = np.nan_to_num(columns.coverage) + LIFT_WEIGHT * np.nan_to_num(columns.lift)
    records = columns.records
    first = len(SOURCE_KINDS) * len(_BY_SOURCE)
    of_candidate = (
        found.sum(axis=0) if kinds else 0.0,
        columns.fused,
        columns.scores,
        _relative(columns.scores, columns.best_score),
        columns.coverage,
        columns.lift,
        columns.linked,
        matched,
        np.divide(matched, columns.best_match, out=np.zeros(count), where=columns.best_match > 0),
        columns.best_match,
        float(len(query_words)),
        [_overlap(query_words, record.title) for record in records],
        np.log1p([len(record.text) for record in records]),
        np.log1p([_age_days(record, columns.now) for record in records]),
    )
    for at, values in enumerate(of_candidate, first):
        out[at] = values
    in_collection = out[first + len(of_candidate) :]
    in_collection[:] = 0.0
    for at, record in enumerate(records):
        row = _COLLECTION_ROWS.get(record.collection)
        if row is not None:
            in_collection[row, at] = 1.0
    return out.T


def trace_features(trace: Trace, hits: Sequence[Hit], now: datetime | None = None) -> list[tuple[float, ...]]:
    """Return the features of hits of an explained search, in the order of `FEATURE_NAMES`.

    They are those before a learned ranker, whose own score would say how it ranks and not what a candidate is.
    """
    if not hits:
        return []
    learned = next((stage for stage in trace.stages if stage.features), None)
    if learned is not None:
        unknown = (np.nan,) * len(FEATURE_NAMES)
        return [learned.features.get(hit.key, unknown) for hit in hits]
    at = [trace.column_of(hit.key) for hit in hits]
    known = np.array([column is not None for column in at])
    chosen = np.array([column or 0 for column in at], np.int64)
    answered = [source for source in trace.sources if source.error is None]
    evidence = [trace.relevance.get(hit.key) for hit in hits]

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
            best_scores=best_of_lists(trace.raw_scores),
            shares=pick(trace.shares, 0.0),
            fused=pick(trace.fused_scores, 0.0),
            scores=np.array([hit.score for hit in hits]),
            best_score=_best_score(trace),
            coverage=_numbers([None if one is None else one.coverage for one in evidence]),
            lift=_numbers([None if one is None else one.lift for one in evidence]),
            linked=_numbers([None if one is None else one.linked for one in evidence]),
            best_match=_numbers([None if one is None else one.best for one in evidence]),
            records=[hit.record for hit in hits],
            now=now or datetime.now(UTC),
        )
    )
    return [tuple(row) for row in matrix.tolist()]


def best_of_lists(raw_scores: Floats) -> Floats:
    """Return the best score of each list; nan for an empty one. fmax ignores nan, and is nan only if all are."""
    if raw_scores.shape[1] == 0:
        return np.full(len(raw_scores), np.nan)
    best: Floats = np.fmax.reduce(raw_scores, axis=1)
    return best


def _best_score(trace: Trace) -> float:
    """The best score before the cut to the limit."""
    stages: Sequence[StageTrace] = [stage for stage in trace.stages if stage.name not in _CUTS]
    scores = stages[-1].scores if stages else trace.fused_scores
    return float(scores.max()) if len(scores) else 0.0


_CUTS: Final = frozenset({"limit", "min_relevance"})


def _fill_source(
    out: Floats, columns: CandidateColumns, found: NDArray[np.bool_], rows: Sequence[int]
) -> None:
    """Fill in the best rank, score and relative score over the lists of one kind, and the sum of their shares."""
    if not rows:
        out[0], out[1], out[2], out[3] = 0.0, np.nan, np.nan, 0.0
        return
    reciprocal = np.where(found[rows], 1.0 / (np.maximum(columns.ranks[rows], 0) + 1.0), 0.0)
    raw = columns.raw_scores[rows]
    relative = np.stack(
        [_relative(row, best) for row, best in zip(raw, columns.best_scores[rows], strict=True)]
    )
    out[0] = reciprocal.max(axis=0)
    out[1] = np.fmax.reduce(raw, axis=0)
    out[2] = np.fmax.reduce(relative, axis=0)
    out[3] = columns.shares[rows].sum(axis=0)


def _relative(scores: Floats, best: float) -> Floats:
    """Scores as a share of the best; a list whose best is not above 0 says nothing."""
    return scores / best if best > 0 else np.where(np.isnan(scores), np.nan, 0.0)


def _age_days(record: Record, now: datetime) -> float:
    """How old a record is; nan without a time."""
    if record.timestamp is None:
        return np.nan
    return max((now - record.timestamp).total_seconds() / 86400, 0.0)


def _numbers(values: Sequence[float | None]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values])


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text[:MAX_OVERLAP_CHARACTERS].casefold()))


def _overlap(query_words: frozenset[str], text: str) -> float:
    return len(query_words & _words(text)) / len(query_words) if query_words and text else 0.0
