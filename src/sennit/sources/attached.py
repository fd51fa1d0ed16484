"""A source that also searches attached collections: their hits join its list as passages that are not records."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput, SennitError
from sennit.filters import EVERYTHING, matches
from sennit.ranking.fusion import order
from sennit.ranking.rank_scale import RankScale
from sennit.records import Record
from sennit.settings.attached import AttachedMapping
from sennit.sources.base import SearchContext, Source, SourceRequest
from sennit.stores.attached import (
    AttachedCollection,
    AttachedRow,
    AttachedSearch,
    PartialRows,
    narrow,
    narrow_copies,
    record_id,
    to_record,
)
from sennit.stores.contract import ScoredKeys

Leg = Literal["keyword", "vector"]

OVERFETCH: Final = 16
"""How many rows more than wanted are requested at first, for those that the caller may not see."""

FETCH_GROWTH: Final = 4

MAX_FETCH: Final = 5_000
"""Rows that one search reads at most; what is beyond them is reported."""

WAIT_SHARE: Final = 0.9
"""The part of a search's time that an attached collection may take, so that the others still answer."""


@dataclass(frozen=True, slots=True)
class Attached:
    """An attached collection, how its rows are read, and where their texts are."""

    mapping: AttachedMapping
    rows: AttachedCollection
    texts: Attached | None = None
    """Another collection that has the texts of the rows."""


class WithAttached:
    """A source of the database together with attached collections that are searched the same way.

    Cosines are comparable, so hits by vector are merged by score. Keyword scores of different servers are not: then
    every part of the list counts by rank (`ranking/rank_scale.py`).
    """

    inline = False

    def __init__(self, own: Source, leg: Leg, collections: Sequence[Attached], highest: str) -> None:
        """`highest` is the highest sensitivity level, that of a row without one."""
        self._own = own
        self._leg = leg
        self._collections = [one for one in collections if leg in one.mapping.legs]
        self._highest = highest

    def search(self, request: SourceRequest) -> ScoredKeys:
        context = request.context
        query = request.keyword_query if self._leg == "keyword" else context.vector
        end = time.monotonic() + WAIT_SHARE * request.seconds
        calls = [_Call(one, query, request, self._highest) for one in self._collections]
        failure: SennitError | None = None
        try:
            parts = [self._scaled(request, self._own.search(request))]
        except SennitError as error:
            # Without the collections it is an error; with them it is a part that is missing.
            failure, parts = error, []
        for call in calls:
            name = call.attached.mapping.name
            try:
                parts.append(call.wait(end, context))
            except SennitError as error:
                context.warn(request.list_name, f"{name}: {error}")
        if failure is not None:
            if not any(len(part.keys) for part in parts):
                raise failure
            context.warn(request.list_name, str(failure))
        keys = np.concatenate([part.keys for part in parts]) if parts else np.empty(0, np.int64)
        scores = np.concatenate([part.scores for part in parts]) if parts else np.empty(0)
        best = order(keys, scores, context.ids, request.limit)
        return ScoredKeys(keys[best], scores[best])

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of records of the database; only the search that found a passage can score it."""
        scores = self._own.scores(request, keys)
        scale = request.context.scales.get(request.list_name)
        return scores if scale is None else scale.convert(scores)

    def _scaled(self, request: SourceRequest, found: ScoredKeys) -> ScoredKeys:
        if self._leg != "keyword":
            return found
        scale = request.context.scales.setdefault(request.list_name, RankScale(found.scores))
        return ScoredKeys(found.keys, scale.convert(found.scores))


class _Call:
    """The search of one collection in a thread of its own."""

    def __init__(self, attached: Attached, query: object, request: SourceRequest, highest: str) -> None:
        self.attached = attached
        self._query = query
        self._request = request
        self._highest = highest
        self._found: list[tuple[Record, float]] = []
        self._notices: list[str] = []
        self._error: Exception | None = None
        self._done = threading.Event()
        threading.Thread(target=self._work, name=f"sennit-{attached.mapping.name}", daemon=True).start()

    def wait(self, end: float, context: SearchContext) -> ScoredKeys:
        """Return the hits as passages of this search, by rank for words and by cosine for vectors."""
        name = self._request.list_name
        if not self._done.wait(max(0.0, end - time.monotonic())):
            raise InvalidInput(f"no answer within {WAIT_SHARE * self._request.seconds:g} s")
        if isinstance(self._error, SennitError):
            raise self._error
        if self._error is not None:
            raise InvalidInput(f"{type(self._error).__name__}: {self._error}")
        for notice in self._notices:
            context.warn(name, f"{self.attached.mapping.name}: {notice}")
        keys = np.array([context.add_ephemeral(record) for record, _ in self._found], np.int64)
        scores = np.array([score for _, score in self._found], np.float64)
        for key in keys.tolist():
            context.add_match_reason(name, key, f"found in {self.attached.mapping.name}")
        is_vector = isinstance(self._query, np.ndarray)
        return ScoredKeys(keys, scores if is_vector else RankScale(scores).convert(scores))

    def _work(self) -> None:
        try:
            self._found = self._search()
        except Exception as error:  # noqa: BLE001 - reported as degraded by the thread that waits
            self._error = error
        finally:
            self._done.set()

    def _search(self) -> list[tuple[Record, float]]:
        request, mapping = self._request, self.attached.mapping
        if isinstance(self._query, np.ndarray) and not np.count_nonzero(self._query):
            return []
        audience = request.context.audience
        wanted = request.where if audience == EVERYTHING else audience & request.where
        # Where the texts are elsewhere, so are the fields that a filter compares.
        holder = self.attached.texts
        narrowed = narrow(wanted, mapping if holder is None else holder.mapping)
        if narrowed is None:
            return []
        where = narrowed if holder is None else narrow_copies(wanted, mapping)
        fetch = request.limit + OVERFETCH
        while True:
            self._notices = []
            rows = self.attached.rows.search(AttachedSearch(self._query, fetch, where))  # type: ignore[arg-type]
            if isinstance(rows, PartialRows):
                self._notices = [rows.problem]
            found = [
                (record, score)
                for record, score in self._read(rows)
                if matches(audience, record) and matches(request.where, record)
            ]
            if len(found) >= request.limit or len(rows) < fetch:
                return found[: request.limit]
            if fetch >= MAX_FETCH:
                self._notices.append(f"only the best {fetch:,} rows were looked at")
                return found
            fetch = min(fetch * FETCH_GROWTH, MAX_FETCH)

    def _read(self, rows: Sequence[AttachedRow]) -> list[tuple[Record, float]]:
        """Return the records of rows, each once; what cannot be a record is counted."""
        mapping, holder = self.attached.mapping, self.attached.texts
        texts: Mapping[str, Record] = {}
        if holder is not None:
            ids = [str(row.values.get(mapping.id)) for row in rows]
            texts = {
                record.id: record for record, _ in _to_records(holder, holder.rows.get(ids), self._highest)[0]
            }
            found = [
                (texts[name], row.score)
                for name, row in zip((record_id(holder.mapping, one) for one in ids), rows, strict=True)
                if name in texts
            ]
            return list({record.id: (record, score) for record, score in reversed(found)}.values())[::-1]
        found, bad = _to_records(self.attached, rows, self._highest)
        if bad:
            self._notices = [*self._notices, f"{bad} rows cannot be read as records"]
        return found


def _to_records(
    attached: Attached, rows: Sequence[AttachedRow], highest: str
) -> tuple[list[tuple[Record, float]], int]:
    found: dict[str, tuple[Record, float]] = {}
    bad = 0
    for row in rows:
        try:
            record = to_record(attached.mapping, row, highest)
        except InvalidInput:
            bad += 1
            continue
        found.setdefault(record.id, (record, row.score))
    return list(found.values()), bad


def with_attached(
    sources: Mapping[str, Source],
    collections: Mapping[str, AttachedCollection],
    mappings: Mapping[str, AttachedMapping],
    highest: str,
) -> dict[str, Source]:
    """Return the sources, those for words and vectors together with the attached collections that have them."""
    attached = {name: Attached(mappings[name], rows) for name, rows in collections.items()}
    all_of_them = [
        Attached(one.mapping, one.rows, attached[one.mapping.records_of] if one.mapping.records_of else None)
        for one in attached.values()
    ]
    out = dict(sources)
    legs: tuple[Leg, ...] = ("keyword", "vector")
    for leg in legs:
        if any(leg in one.mapping.legs for one in all_of_them):
            out[leg] = WithAttached(sources[leg], leg, all_of_them, highest)
    return out
