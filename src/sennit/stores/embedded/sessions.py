"""Where the turns of a session stand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from sennit.records import full_id, split_id
from sennit.segments import Segment


def places_of(
    connection: sqlite3.Connection, segments: Sequence[Segment]
) -> tuple[dict[str, int | None], dict[tuple[str, str], int]]:
    """The places of those that are there, by full id, and the first free place of each session by tenant."""
    names = json.dumps([full_id(segment.tenant, segment.id) for segment in segments])
    known: dict[str, int | None] = dict(
        connection.execute(
            "SELECT id, position FROM records WHERE id IN (SELECT value FROM json_each(?))", (names,)
        )
    )
    free: dict[tuple[str, str], int] = {}
    for session in {segment.session for segment in segments}:
        found = connection.execute("SELECT id, position FROM records WHERE parent = ?", (session,))
        for name, position in found:
            tenant = split_id(name)[0]
            free[tenant, session] = max(free.get((tenant, session), 0), (position or 0) + 1)
    return known, free
