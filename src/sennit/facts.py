"""What is known, beside what is said: facts between two named things, and the things themselves.

Both are kept as records, so that filters, privacy, removal, export and `why` hold for them as for any text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from sennit.errors import InvalidInput
from sennit.records import Json, Record, as_utc, full_id, shown

KIND: Final = "fact"
ENTITY_COLLECTION: Final = "entities"
FACT_COLLECTION: Final = "facts"

FACT_FIELDS: Final = ("subject", "relation", "object", "weight", "superseded_at", "sources", "supersedes")
"""Where a fact's parts stand in its record's metadata."""

MAX_WEIGHT: Final = 1e9
"""Any scale people use fits, and sums of weights stay exact enough to order by."""

ALIASES: Final = "aliases"
"""Where further names stand in the metadata of any record with a title."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing stands in a relation to another; since when, until when, and where it is known from."""

    subject: str
    relation: str
    object: str
    text: str = ""
    """The relation in words; empty: the relation's own name."""
    weight: float = 1.0
    timestamp: datetime | None = None
    """Valid from."""
    superseded_at: datetime | None = None
    """Valid until: from then on it is history, and leaves the results."""
    sources: tuple[str, ...] = ()
    """Ids of the records it was read from."""
    supersedes: tuple[str, ...] = ()
    """Ids of facts that end where this one begins."""
    kind: str = KIND
    id: str = ""
    """Empty: made from subject, relation and object, so that the same fact is kept once."""
    collection: str = FACT_COLLECTION
    sensitivity: str = "normal"
    scope: str = "public"
    tenant: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("subject", "relation", "object"):
            object.__setattr__(self, name, _line(name, getattr(self, name)))
        if not isinstance(self.text, str):
            raise InvalidInput(f"Fact.text must be a string, not {type(self.text).__name__}")
        if self.text == self.relation:
            object.__setattr__(self, "text", "")
        weight = self.weight
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= MAX_WEIGHT:
            raise InvalidInput(f"Fact.weight must be a number from 0 to {MAX_WEIGHT:g}, not {shown(weight)}")
        object.__setattr__(self, "weight", float(weight))
        for name in ("timestamp", "superseded_at"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_utc(getattr(self, name)))
        if self.timestamp and self.superseded_at and self.superseded_at < self.timestamp:
            raise InvalidInput(
                f"A fact cannot end ({self.superseded_at.isoformat()}) before it begins "
                f"({self.timestamp.isoformat()}): {self.line}"
            )
        for name in ("sources", "supersedes"):
            object.__setattr__(self, name, _names(f"Fact.{name}", getattr(self, name)))
        if not isinstance(self.metadata, Mapping):
            raise InvalidInput(f"Fact.metadata must be a mapping, not {type(self.metadata).__name__}")
        taken = [name for name in FACT_FIELDS if name in self.metadata]
        if taken:
            raise InvalidInput(f"Fact.metadata must not hold {taken[0]!r}; it is a field of the fact itself")
        if not self.kind:
            object.__setattr__(self, "kind", KIND)
        if not self.id:
            object.__setattr__(self, "id", fact_id(self.subject, self.relation, self.object))
        self.to_record()  # what a record refuses, a fact refuses when it is made

    @property
    def line(self) -> str:
        """The fact as a prompt shows it."""
        return f"{self.subject} -> {self.object}: {self.text or self.relation}"

    def to_record(self) -> Record:
        """The record a fact is kept as; `Fact.from_record` gives it back."""
        metadata: dict[str, Json] = {
            **self.metadata,
            "subject": self.subject,
            "relation": self.relation,
            "object": self.object,
            "weight": self.weight,
        }
        if self.superseded_at is not None:
            metadata["superseded_at"] = self.superseded_at.isoformat()
        for name in ("sources", "supersedes"):
            if getattr(self, name):
                metadata[name] = list(getattr(self, name))
        return Record(
            id=self.id,
            text=self.line,
            collection=self.collection,
            kind=self.kind,
            timestamp=self.timestamp,
            sensitivity=self.sensitivity,
            scope=self.scope,
            tenant=self.tenant,
            metadata=metadata,
        )

    @classmethod
    def from_record(cls, record: Record) -> Fact:
        """The fact that a record keeps."""
        if not is_fact(record):
            raise InvalidInput(
                f"Record {record.id!r} is not a fact: its metadata needs subject, relation and object"
            )
        values: dict[str, Any] = dict(record.metadata)
        parts = {name: values.pop(name) for name in FACT_FIELDS if name in values}
        text = record.text.removeprefix(f"{parts['subject']} -> {parts['object']}: ")
        return cls(
            **parts,
            text=text,
            timestamp=record.timestamp,
            kind=record.kind,
            id=record.id,
            collection=record.collection,
            sensitivity=record.sensitivity,
            scope=record.scope,
            tenant=record.tenant,
            metadata=values,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A named thing: a person, a place, a project. Any record with a title is one; this is the short way."""

    name: str
    kind: str = "person"
    aliases: tuple[str, ...] = ()
    text: str = ""
    id: str = ""
    """Empty: made from kind and name."""
    collection: str = ENTITY_COLLECTION
    timestamp: datetime | None = None
    sensitivity: str = "normal"
    scope: str = "public"
    tenant: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _line("name", self.name, "Entity"))
        object.__setattr__(self, "aliases", _names("Entity.aliases", self.aliases))
        if not isinstance(self.metadata, Mapping) or ALIASES in self.metadata:
            raise InvalidInput("Entity.metadata must be a mapping without 'aliases', which is a field")
        if not self.id:
            object.__setattr__(self, "id", f"entity:{_digest(self.kind, self.name)}")
        self.to_record()

    def to_record(self) -> Record:
        """The record an entity is kept as: its name is the title."""
        return Record(
            id=self.id,
            text=self.text,
            title=self.name,
            collection=self.collection,
            kind=self.kind,
            timestamp=self.timestamp,
            sensitivity=self.sensitivity,
            scope=self.scope,
            tenant=self.tenant,
            metadata={**self.metadata, ALIASES: list(self.aliases)},
        )


def fact_id(subject: str, relation: str, object: str) -> str:  # noqa: A002 - the words a fact has
    """One id for one fact, however it is spaced and capitalised."""
    return f"fact:{_digest(subject, relation, object)}"


def is_fact(record: Record) -> bool:
    """Whether a record keeps a fact."""
    return bool(record.metadata) and all(_text(record.metadata.get(name)) for name in FACT_FIELDS[:3])


def weight_of(record: Record) -> float:
    """The weight of a fact's record; 1 where it says nothing that can be used."""
    weight = record.metadata.get("weight", 1.0)
    if isinstance(weight, (int, float)) and not isinstance(weight, bool) and 0 <= weight <= MAX_WEIGHT:
        return float(weight)
    return 1.0


def ended_at(record: Record) -> datetime | None:
    """When a fact's record stopped being true; None while it is, or where that cannot be read."""
    value = record.metadata.get("superseded_at")
    try:
        return None if value is None else as_utc(value)
    except InvalidInput:
        return None


def aliases_of(record: Record) -> tuple[str, ...] | None:
    """The further names a record declares; None when it declares none, an empty list included as one."""
    value = record.metadata.get(ALIASES)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(name for name in value if isinstance(name, str))
    return None


def with_ends(
    facts: Iterable[Fact], older: Iterable[Record], now: datetime, *, same_relation: bool = False
) -> list[Record]:
    """The records to write for new facts: theirs, and those of facts that end because of them.

    A fact ends what it `supersedes`. With `same_relation`, of two facts about the same subject in the same
    relation the one that begins earlier ends where the other begins. A fact without a timestamp begins `now`
    when it is new, and long ago when it is old.
    """
    latest = {fact.to_record().full_id: fact for fact in facts}
    kept = {old.full_id: old for old in older if is_fact(old) and old.full_id not in latest}
    asked: dict[tuple[str, str, str], list[str]] = {}
    for name, old in kept.items():
        asked.setdefault(_question(old), []).append(name)
    changed: dict[str, None] = {}
    for fact in sorted(latest.values(), key=lambda one: one.timestamp or now):
        record, begins = fact.to_record(), fact.timestamp or now
        named = [full_id(fact.tenant, other) for other in fact.supersedes]
        same = asked.setdefault(_question(record), [])
        for name in dict.fromkeys([*named, *(same if same_relation else ())]):
            rival = kept.get(name)
            if rival is None or ended_at(rival) is not None:
                continue
            start = rival.timestamp or begins
            if name in named or start <= begins:
                # It cannot end before it began.
                kept[name] = _ended(rival, max(begins, start))
                changed[name] = None
            elif ended_at(record) is None:
                record = _ended(record, start)
        kept[record.full_id] = record
        changed[record.full_id] = None
        same.append(record.full_id)
    return [kept[name] for name in changed]


def _question(record: Record) -> tuple[str, str, str]:
    """What a fact answers: of two answers to the same question, one may replace the other."""
    subject, relation = (_folded(str(record.metadata[name])) for name in ("subject", "relation"))
    return record.tenant, subject, relation


def _ended(record: Record, end: datetime) -> Record:
    values = record.to_dict()
    values["metadata"] = {**record.metadata, "superseded_at": end.astimezone(UTC).isoformat()}
    return Record.from_dict(values)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _digest(*parts: str) -> str:
    return hashlib.blake2b(
        "\x1f".join(map(_folded, parts)).encode(errors="surrogatepass"), digest_size=12
    ).hexdigest()


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _line(name: str, value: object, what: str = "Fact") -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what}.{name} must be a string, not {type(value).__name__}")
    line = " ".join(value.split())
    if not line:
        raise InvalidInput(f"{what}.{name} must not be empty")
    return line


def _names(what: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} must be a list of strings; put a single one into a list")
    names = tuple(values)
    if not all(_text(name) for name in names):
        raise InvalidInput(f"{what} must be strings, each with something in it")
    return tuple(dict.fromkeys(names))
