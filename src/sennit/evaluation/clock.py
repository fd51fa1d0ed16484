"""The clock of an evaluation: when the documents were written, and when the queries ask.

Without a clock, documents have no time, and a recipe that looks at ages cannot be judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias

from sennit.errors import InvalidInput
from sennit.evaluation.datasets import Collection, Query
from sennit.records import Json, Record, as_utc

Clock: TypeAlias = datetime | Literal["end", "last"]
"""When the queries ask: at one instant; the day after the end of each conversation, moved to now (`end`); or that day
itself (`last`)."""

CLOCK_WORDS: Final = ("end", "last")

TIME_FIELDS: Final = ("timestamp", "date_time", "datetime", "date", "created_at", "time")
"""Metadata fields that hold the time of a document; the first with a readable time counts."""

WRITTEN_FORMATS: Final = ("%I:%M %p on %d %B, %Y", "%d %B %Y", "%B %d, %Y")
"""Formats besides ISO 8601 and seconds since 1970."""

ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ClockedCollection:
    """A collection whose documents have times, and the time at which each query asks."""

    collection: Collection
    now: datetime | None
    ends: Mapping[object, datetime]
    """With the clock `last`: by scope, when its queries ask; `now` for a scope without times."""
    scope: str | None

    def time_of(self, query: Query) -> datetime | None:
        """When a query asks; None for the time of the search."""
        return self.ends.get(_group(query.metadata, self.scope), self.now)


def parse_clock(text: str) -> Clock:
    """Read the clock from its form on the command line."""
    if text == "end":
        return "end"
    if text == "last":
        return "last"
    try:
        return as_utc(text)
    except InvalidInput as error:
        raise InvalidInput(
            f"--now must be an instant such as 2026-03-01T12:00, {' or '.join(CLOCK_WORDS)}, not {text[:80]!r}."
        ) from error


def set_clock(collection: Collection, clock: Clock, scope: str | None, now: datetime) -> ClockedCollection:
    """Give the documents the times of their metadata.

    With `end`, the times of each scope are moved so that its last document is of yesterday.
    """
    times = {record.id: find_time(record.metadata) for record in collection.documents}
    if not any(times.values()):
        raise InvalidInput(
            f"{collection.name}: --now needs documents with a time in their metadata, in one of these fields: "
            f"{', '.join(TIME_FIELDS)}."
        )
    last: dict[object, datetime] = {}
    for record in collection.documents:
        time, group = times[record.id], _group(record.metadata, scope)
        if time is not None:
            last[group] = max(last.get(group, time), time)

    def move(record: Record) -> Record:
        time = times[record.id]
        if time is not None and clock == "end":
            time += now - ONE_DAY - last[_group(record.metadata, scope)]
        return replace(record, timestamp=time)

    documents = tuple(map(move, collection.documents))
    ends = {group: time + ONE_DAY for group, time in last.items()} if clock == "last" else {}
    return ClockedCollection(
        replace(collection, documents=documents), clock if isinstance(clock, datetime) else now, ends, scope
    )


def find_time(metadata: Mapping[str, Json]) -> datetime | None:
    """The time in a document's metadata, if there is one."""
    for name in TIME_FIELDS:
        value = metadata.get(name)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool):
            time = _parse_time(value)
            if time is not None:
                return time
    return None


def _parse_time(value: str | int | float) -> datetime | None:
    try:
        return as_utc(value)
    except InvalidInput:
        pass
    text = re.sub(r"\s+", " ", str(value)).strip()
    for written in WRITTEN_FORMATS:
        try:
            return datetime.strptime(text, written).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _group(metadata: Mapping[str, Json], scope: str | None) -> object:
    value = None if scope is None else metadata.get(scope)
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
