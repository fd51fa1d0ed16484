"""Records, turns and facts of a request, in the caller's own tenant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sennit.apps.http.requests import NewFact, NewRecord, NewTurn
from sennit.facts import Fact
from sennit.records import Record
from sennit.turns import Turn

if TYPE_CHECKING:
    from sennit.privacy import Caller


def build_records(bodies: Iterable[NewRecord], caller: Caller) -> list[Record]:
    """The records of a request."""
    return [
        Record.from_dict({**body.model_dump(exclude_unset=True), "tenant": caller.tenant}) for body in bodies
    ]


def build_turns(bodies: Iterable[NewTurn], caller: Caller) -> list[Turn]:
    """The turns of a request; without a timestamp, they are said now."""
    now = datetime.now(UTC)
    return [
        Turn(
            **{"timestamp": now, **body.model_dump(exclude_unset=True, exclude_none=True)},
            tenant=caller.tenant,
        )
        for body in bodies
    ]


def build_facts(bodies: Iterable[NewFact], caller: Caller) -> list[Fact]:
    """The facts of a request."""
    return [Fact(**body.model_dump(exclude_unset=True), tenant=caller.tenant) for body in bodies]
