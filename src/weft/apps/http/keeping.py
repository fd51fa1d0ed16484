"""Writing for a caller: into the caller's own tenant, nothing it could not read, and over nothing it may not see."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weft.apps.http.errors import Refused
from weft.apps.http.forms import NewFact, NewRecord, NewSegment
from weft.errors import NotFound
from weft.facts import Fact, with_ends
from weft.filters import matches
from weft.records import Record
from weft.segments import Segment, placed
from weft.stores.embedded.graph import older
from weft.stores.embedded.sessions import places_of

if TYPE_CHECKING:
    from weft.engine import Weft
    from weft.privacy import Caller
    from weft.stores.embedded.writing import Written


def records_of(given: Iterable[NewRecord], caller: Caller) -> list[Record]:
    """Records as they are kept."""
    return [
        Record.from_dict({**one.model_dump(exclude_unset=True), "tenant": caller.tenant}) for one in given
    ]


def segments_of(given: Iterable[NewSegment], db: Weft, caller: Caller) -> list[Record]:
    """Turns of conversations as records, each in its place."""
    now = datetime.now(UTC)
    segments = [
        Segment(
            **{"timestamp": now, **one.model_dump(exclude_unset=True, exclude_none=True)},
            tenant=caller.tenant,
        )
        for one in given
    ]
    with db.store.database.read() as connection:
        return placed(segments, *places_of(connection, segments))


def facts_of(given: Iterable[NewFact], db: Weft, caller: Caller) -> list[Record]:
    """Facts as records, after those that they end."""
    facts = [Fact(**one.model_dump(exclude_unset=True), tenant=caller.tenant) for one in given]
    for name in dict.fromkeys(name for fact in facts for name in fact.supersedes):
        if db.get(name, caller=caller) is None:
            raise NotFound(f"There is no fact {name!r} that could be superseded")
    with db.store.database.read() as connection:
        before = older(connection, facts, same_relation=False)
    return with_ends(facts, before, datetime.now(UTC))


def keep(db: Weft, caller: Caller, records: Sequence[Record]) -> Written:
    """Add or replace records, all or none."""
    audience = db.audience(caller)
    for record in records:
        if not matches(audience, record):
            raise Refused(
                403,
                f"You could not read what you write: sensitivity {record.sensitivity!r} and scope "
                f"{record.scope!r} of {record.id!r} are not both yours.",
            )

    def nothing_hidden(_: sqlite3.Connection) -> tuple[str, ...]:
        # Inside the transaction: nobody can put a record there between the look and the write.
        for there in db.store.get(record.full_id for record in records).values():
            if not matches(audience, there):
                raise Refused(409, f"The id {there.id!r} is taken. Choose another.")
        return ()

    return db.apply(records, nothing_hidden)
