"""Ways into the graph besides names: facts whose own text matches the query, and the weightiest facts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from sennit.facts import ended_at, weight_of
from sennit.filters import Exists, Filter
from sennit.graph.fact_matches import QueryInformation, match_strength
from sennit.records import Record
from sennit.sources.base import SearchContext
from sennit.stores.contract import ScoredKeys

FACTS: Final = Exists("metadata.subject") & Exists("metadata.relation") & Exists("metadata.object")

OVERFETCH: Final = 4
"""Facts looked at for each one wanted, because some have ended."""

MAX_WEIGHED_FACTS: Final = 5000
"""To find the weightiest facts, at most this many are read, the newest first."""

WordSearch = Callable[[list[tuple[int, float]], int, Filter], ScoredKeys]
"""Finds records by weighted term hashes: the terms, how many, and a filter."""

MeaningSearch = Callable[[int, Filter], ScoredKeys]
"""Finds the records nearest to the query: how many, and a filter."""


class EntryFact(NamedTuple):
    """A valid fact that is a way into the graph, and how well it matches the query, from 0 to 1."""

    row: int
    record: Record
    strength: float


def find_entry_facts(
    context: SearchContext,
    by_words: WordSearch,
    by_meaning: MeaningSearch | None,
    count: int,
    where: Filter,
    as_of: datetime,
) -> list[EntryFact]:
    """Return the facts that are valid at a time and whose own text matches the query, best first."""
    information = context.information
    facts = FACTS & where
    found = by_words(information.expanded, OVERFETCH * count, facts)
    cosines: dict[int, float] = {}
    best_cosine = 0.0
    if by_meaning is not None:
        near = by_meaning(OVERFETCH * count, facts)
        cosines = dict(zip(near.keys.tolist(), near.scores.tolist(), strict=True))
        best_cosine = max(by_meaning(1, where).scores.max(initial=0.0), max(cosines.values(), default=0.0))
    out = []
    for row, record in context.records(dict.fromkeys((*found.keys.tolist(), *cosines))).items():
        strength = match_strength(fact_coverage(information, record), cosines.get(row, 0.0), best_cosine)
        if strength and is_valid(record, as_of):
            out.append(EntryFact(row, record, strength))
    return sorted(out, key=lambda one: (-one.strength * weight_of(one.record), -one.row))[:count]


def find_weightiest_facts(
    context: SearchContext, count: int, where: Filter, as_of: datetime
) -> list[EntryFact]:
    """Return the weightiest valid facts, the newest first among equals."""
    rows = context.snapshot.newest(FACTS & where, MAX_WEIGHED_FACTS)
    weights = np.array([_number(weight) for (weight,) in context.snapshot.columns(rows, ["weight"])])
    best = np.argsort(-weights, kind="stable")
    out: list[EntryFact] = []
    for start in range(0, len(best), OVERFETCH * count):
        page = rows[best[start : start + OVERFETCH * count]].tolist()
        records = context.records(page)
        out += [EntryFact(row, records[row], 1.0) for row in page if is_valid(records[row], as_of)]
        if len(out) >= count:
            break
    return out[:count]


def fact_coverage(information: QueryInformation, record: Record) -> float:
    """Return the share of the query's information that a fact has besides its names."""
    return information.coverage(record.text, str(record.metadata["subject"]), str(record.metadata["object"]))


def is_valid(record: Record, as_of: datetime) -> bool:
    """Whether a fact has not ended at a time."""
    ended = ended_at(record)
    return ended is None or ended > as_of


def _number(weight: object) -> float:
    return float(weight) if isinstance(weight, (int, float)) else 1.0
