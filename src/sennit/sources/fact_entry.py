"""Ways into the graph besides names: facts whose own text matches the query, and the weightiest facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from sennit.facts import weight_of
from sennit.filters import Exists, Filter
from sennit.graph.fact_matches import MIN_MATCH, QueryInformation, meaning_matches
from sennit.records import Record
from sennit.sources.base import SearchContext
from sennit.stores.contract import ScoredKeys, Steps
from sennit.stores.search_steps import run_steps, together

FACTS: Final = Exists("metadata.subject") & Exists("metadata.relation") & Exists("metadata.object")

OVERFETCH: Final = 4
"""Facts looked at for each one wanted, because some have ended."""

MAX_WEIGHED_FACTS: Final = 5000
"""To find the weightiest facts, at most this many are read, the newest first."""

WordSearch = Callable[[list[tuple[int, float]], int, Filter], Steps[ScoredKeys]]
"""Finds records by weighted term hashes: the terms, how many, and a filter."""

MeaningSearch = Callable[[int, Filter], Steps[ScoredKeys]]
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
    is_valid: Callable[[Record], bool],
) -> list[EntryFact]:
    """Return the valid facts whose own text matches the query, best first."""
    facts = FACTS & where
    searches = [by_words(context.information.expanded, OVERFETCH * count, facts)]
    # What is close to a question for news is mostly its name.
    if by_meaning is not None and not context.time.recent:
        searches += [by_meaning(OVERFETCH * count, facts), by_meaning(1, where)]
    # Where the indexes are on one server, it is asked once.
    found, *nearest = run_steps(together(searches))
    meant: dict[int, float] = {}
    if nearest:
        near, best = nearest
        cosines = dict(zip(near.keys.tolist(), near.scores.tolist(), strict=True))
        meant = meaning_matches(cosines, float(best.scores.max(initial=0.0)))
    out = []
    for row, record in context.records(dict.fromkeys((*found.keys.tolist(), *meant))).items():
        coverage = fact_coverage(context.information, record)
        strength = max(coverage if coverage >= MIN_MATCH else 0.0, meant.get(row, 0.0))
        if strength and is_valid(record):
            out.append(EntryFact(row, record, strength))
    return sorted(out, key=lambda one: (-one.strength * weight_of(one.record), -one.row))[:count]


def find_weightiest_facts(
    context: SearchContext, count: int, where: Filter, is_valid: Callable[[Record], bool]
) -> list[EntryFact]:
    """Return the weightiest valid facts, the newest first among equals."""
    rows = context.snapshot.newest(FACTS & where, MAX_WEIGHED_FACTS)
    weights = np.array([_number(weight) for (weight,) in context.snapshot.columns(rows, ["weight"])])
    best = np.argsort(-weights, kind="stable")
    out: list[EntryFact] = []
    for start in range(0, len(best), OVERFETCH * count):
        page = rows[best[start : start + OVERFETCH * count]].tolist()
        records = context.records(page)
        out += [EntryFact(row, records[row], 1.0) for row in page if is_valid(records[row])]
        if len(out) >= count:
            break
    return out[:count]


def fact_coverage(information: QueryInformation, record: Record) -> float:
    """Return the share of the query's information that a fact has besides its names."""
    return information.coverage(record.text, str(record.metadata["subject"]), str(record.metadata["object"]))


def _number(weight: object) -> float:
    return float(weight) if isinstance(weight, (int, float)) else 1.0
