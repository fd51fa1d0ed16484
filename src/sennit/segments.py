"""What was said: turns of conversations, kept as records whose whole is the session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from sennit.errors import InvalidInput
from sennit.records import Json, Record, as_utc

COLLECTION: Final = "history"
KIND: Final = "segment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One turn: who said what, when, in which session, and about whom or what."""

    text: str
    session: str
    speaker: str = ""
    timestamp: datetime | None = None
    entities: Sequence[str] = ()
    position: int | None = None
    """Its place in the session; None: after what is there."""
    id: str = ""
    """Empty: made from the rest, so that the same turn is kept once."""
    kind: str = KIND
    collection: str = COLLECTION
    sensitivity: str = "normal"
    scope: str = "public"
    tenant: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("text", "session", "speaker"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(
                    f"Segment.{name} must be a string, not {type(getattr(self, name)).__name__}"
                )
        if isinstance(self.entities, str) or not all(isinstance(name, str) for name in self.entities):
            raise InvalidInput(f"Segment.entities must be a list of names, not {self.entities!r}")
        object.__setattr__(self, "entities", tuple(self.entities))
        if self.timestamp is not None:
            object.__setattr__(self, "timestamp", as_utc(self.timestamp))
        if not self.id:
            object.__setattr__(self, "id", self._made_id())
        self.to_record()  # what a record refuses, a segment refuses when it is made

    def to_record(self) -> Record:
        """The record it is kept as."""
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

    def _made_id(self) -> str:
        when = self.timestamp.isoformat() if self.timestamp is not None else ""
        parts = (self.session, self.speaker, str(self.position), when, self.text)
        digest = hashlib.blake2b("\x1f".join(parts).encode(errors="surrogatepass"), digest_size=12)
        return f"segment:{digest.hexdigest()}"


def placed(
    segments: Sequence[Segment], known: Mapping[str, int | None], next_places: Mapping[tuple[str, str], int]
) -> list[Record]:
    """The records of segments, each with its place: its own, the one it has, or the next of its session.

    `known` are the places of segments that are there, by full id; `next_places` the first free place by tenant and
    session.
    """
    free = dict(next_places)
    out = []
    for segment in segments:
        record = segment.to_record()
        place = segment.position if segment.position is not None else known.get(record.full_id)
        session = (segment.tenant, segment.session)
        if place is None:
            place = free.get(session, 0)
        free[session] = max(free.get(session, 0), place + 1)
        out.append(replace(record, position=place))
    return out
