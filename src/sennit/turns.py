"""Turns of conversations. A turn is stored as a record whose parent is the session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from sennit.errors import InvalidInput
from sennit.records import Json, Record, as_utc

COLLECTION: Final = "history"
KIND: Final = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation: who said what, when, in which session, and about which entities."""

    text: str
    session: str
    speaker: str = ""
    timestamp: datetime | None = None
    entities: Sequence[str] = ()
    position: int | None = None
    """Its position in the session; None to append it."""
    id: str = ""
    """Empty to derive it from the other fields, so that the same turn is stored once."""
    kind: str = KIND
    collection: str = COLLECTION
    sensitivity: str = "normal"
    scope: str = "public"
    tenant: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("text", "session", "speaker"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(f"Turn.{name} must be a string, not {type(getattr(self, name)).__name__}")
        if isinstance(self.entities, str) or not all(isinstance(name, str) for name in self.entities):
            raise InvalidInput(f"Turn.entities must be a list of names, not {self.entities!r}")
        object.__setattr__(self, "entities", tuple(self.entities))
        if self.timestamp is not None:
            object.__setattr__(self, "timestamp", as_utc(self.timestamp))
        if not self.id:
            object.__setattr__(self, "id", self._derive_id())
        self.to_record()  # raises what the record would raise

    def to_record(self) -> Record:
        """Return the record that stores this turn."""
        return Record(
            id=self.id,
            text=self.text,
            collection=self.collection,
            kind=self.kind,
            parent=self.session,
            position=self.position,
            timestamp=self.timestamp,
            sensitivity=self.sensitivity,
            scope=self.scope,
            tenant=self.tenant,
            metadata={
                **self.metadata,
                "session": self.session,
                **({"speaker": self.speaker} if self.speaker else {}),
                **({"entities": list(self.entities)} if self.entities else {}),
            },
        )

    def _derive_id(self) -> str:
        when = self.timestamp.isoformat() if self.timestamp is not None else ""
        parts = (self.session, self.speaker, str(self.position), when, self.text)
        digest = hashlib.blake2b("\x1f".join(parts).encode(errors="surrogatepass"), digest_size=12)
        return f"turn:{digest.hexdigest()}"


def position_turns(
    turns: Sequence[Turn],
    known_positions: Mapping[str, int | None],
    next_positions: Mapping[tuple[str, str], int],
) -> list[Record]:
    """Return the records of turns, each with a position: its own, its stored one, or the next of its session.

    `known_positions` has the positions of stored turns by full id, `next_positions` the first free position by tenant
    and session.
    """
    free = dict(next_positions)
    out = []
    for turn in turns:
        record = turn.to_record()
        position = turn.position if turn.position is not None else known_positions.get(record.full_id)
        session = (turn.tenant, turn.session)
        if position is None:
            position = free.get(session, 0)
        free[session] = max(free.get(session, 0), position + 1)
        out.append(replace(record, position=position))
    return out
