"""Facts between two named entities, and the entities themselves.

Both are stored as records, so that filters, privacy, removal, export and `why` apply to them as to any text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from sennit.errors import InvalidInput
from sennit.records import Json, Record, as_utc, full_id, shorten, show_value

FACT_KIND: Final = "fact"
ENTITY_COLLECTION: Final = "entities"
FACT_COLLECTION: Final = "facts"

FACT_FIELDS: Final = ("subject", "relation", "object", "weight", "superseded_at", "sources", "supersedes")
"""The fields of a fact that its record keeps in the metadata."""

MAX_WEIGHT: Final = 1e9
"""Large enough for any scale, and small enough that sums of weights still sort correctly."""

ALIASES: Final = "aliases"
"""The metadata key for further names of a record with a title."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Fact:
    """A relation between two entities, with its period of validity and its sources."""

    subject: str
    relation: str
    object: str
    text: str = ""
    """The relation in words. If empty, the name of the relation is used."""
    weight: float = 1.0
    timestamp: datetime | None = None
    """The time from which the fact is valid."""
    superseded_at: datetime | None = None
    """The time until which the fact is valid. After it, the fact is history and no longer in the results."""
    sources: tuple[str, ...] = ()
    """Ids of the records that the fact comes from."""
    supersedes: tuple[str, ...] = ()
    """Ids of facts that end when this one begins."""
    kind: str = FACT_KIND
    id: str = ""
    """If empty, it is derived from subject, relation and object, so that the same fact is stored once."""
    collection: str = FACT_COLLECTION
    sensitivity: str = "normal"
    scope: str = "public"
    tenant: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("subject", "relation", "object"):
            object.__setattr__(self, name, _check_line(name, getattr(self, name)))
        if not isinstance(self.text, str):
            raise InvalidInput(f"Fact.text must be a string, not {type(self.text).__name__}")
        if self.text == self.relation:
            object.__setattr__(self, "text", "")
        weight = self.weight
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight <= MAX_WEIGHT:
            raise InvalidInput(
                f"Fact.weight must be a number from 0 to {MAX_WEIGHT:g}, not {show_value(weight)}"
            )
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
            object.__setattr__(self, name, _check_strings(f"Fact.{name}", getattr(self, name)))
        if not isinstance(self.metadata, Mapping):
            raise InvalidInput(f"Fact.metadata must be a mapping, not {type(self.metadata).__name__}")
        reserved = [name for name in FACT_FIELDS if name in self.metadata]
        if reserved:
            raise InvalidInput(
                f"Fact.metadata must not hold {reserved[0]!r}; it is a field of the fact itself"
            )
        if not self.kind:
            object.__setattr__(self, "kind", FACT_KIND)
        if not self.id:
            object.__setattr__(self, "id", fact_id(self.subject, self.relation, self.object))
        self.to_record()  # fail now, if the record would be invalid

    def __repr__(self) -> str:
        ended = "" if self.superseded_at is None else f", superseded_at={self.superseded_at.isoformat()!r}"
        return f"Fact({shorten(self.line)}, id={self.id!r}{ended})"

    @property
    def line(self) -> str:
        """The fact as one line, as prompts show it."""
        return f"{self.subject} -> {self.object}: {self.text or self.relation}"

    def to_record(self) -> Record:
        """The record that stores the fact; `Fact.from_record` reverses it."""
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
        """The fact that a record stores."""
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


@dataclass(frozen=True, slots=True)
class FactEnding:
    """Says that facts are over: those of a subject with one of the relations, and with this object or any."""

    subject: str
    relations: tuple[str, ...]
    object: str
    """The object, or some words of it; empty for any."""
    at: datetime
    tenant: str = ""

    @property
    def line(self) -> str:
        """What is over, as one line."""
        return f"{self.subject} -> {self.object or 'anything'}: {' / '.join(self.relations)}"

    def to_dict(self) -> dict[str, Json]:
        """The ending as JSON."""
        return {
            "subject": self.subject,
            "relations": list(self.relations),
            "object": self.object,
            "at": self.at.isoformat(),
        }

    def ends(self, record: Record) -> bool:
        """Whether the record of a fact that began before is over."""
        tenant, subject, relation = _relation_key(record)
        if (tenant, subject) != (self.tenant, _fold(self.subject)) or relation not in map(
            _fold, self.relations
        ):
            return False
        return set(_fold(self.object).split()) <= set(_fold(str(record.metadata["object"])).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A person, a place, a project. Any record with a title is an entity; this class is a shortcut."""

    name: str
    kind: str = "person"
    aliases: tuple[str, ...] = ()
    text: str = ""
    id: str = ""
    """If empty, it is derived from kind and name."""
    collection: str = ENTITY_COLLECTION
    timestamp: datetime | None = None
    sensitivity: str = "normal"
    scope: str = "public"
    tenant: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _check_line("name", self.name, "Entity"))
        object.__setattr__(self, "aliases", _check_strings("Entity.aliases", self.aliases))
        if not isinstance(self.metadata, Mapping) or ALIASES in self.metadata:
            raise InvalidInput("Entity.metadata must be a mapping without 'aliases', which is a field")
        if not self.id:
            object.__setattr__(self, "id", f"entity:{_digest(self.kind, self.name)}")
        self.to_record()

    def to_record(self) -> Record:
        """The record that stores the entity. Its title is the name."""
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


def fact_id(subject: str, relation: str, object: str) -> str:  # noqa: A002 - the field names of Fact
    """The id of a fact; white space and capitalisation do not change it."""
    return f"fact:{_digest(subject, relation, object)}"


def is_fact(record: Record) -> bool:
    """Whether a record stores a fact."""
    return bool(record.metadata) and all(_is_text(record.metadata.get(name)) for name in FACT_FIELDS[:3])


def weight_of(record: Record) -> float:
    """The weight of a fact's record; 1 if it has no valid weight."""
    weight = record.metadata.get("weight", 1.0)
    if isinstance(weight, (int, float)) and not isinstance(weight, bool) and 0 <= weight <= MAX_WEIGHT:
        return float(weight)
    return 1.0


def ended_at(record: Record) -> datetime | None:
    """The time at which a fact ended; None if it is valid or its metadata has no valid time."""
    value = record.metadata.get("superseded_at")
    try:
        return None if value is None else as_utc(value)
    except InvalidInput:
        return None


def aliases_of(record: Record) -> tuple[str, ...] | None:
    """The aliases that a record declares. An empty list is a declaration too; None means that there is none."""
    value = record.metadata.get(ALIASES)
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(name for name in value if isinstance(name, str))
    return None


def end_superseded_facts(
    facts: Iterable[Fact],
    stored: Iterable[Record],
    now: datetime,
    *,
    same_relation: bool = False,
    endings: Iterable[FactEnding] = (),
) -> list[Record]:
    """The records to write for new facts: their own, and those of the stored facts that end because of them.

    A fact ends the facts that it `supersedes`. Each of the `endings` ends facts that began before it, new ones too. With `same_relation`, of two facts with the same subject and relation
    the one that begins earlier ends when the other begins. A new fact without a timestamp begins `now`; a stored one
    without a timestamp began before all others.
    """
    latest = {fact.to_record().full_id: fact for fact in facts}
    records = {old.full_id: old for old in stored if is_fact(old) and old.full_id not in latest}
    by_relation: dict[tuple[str, str, str], list[str]] = {}
    for record_id, old in records.items():
        by_relation.setdefault(_relation_key(old), []).append(record_id)
    changed: dict[str, None] = {}

    def end_until(time: datetime | None) -> None:
        """Apply the endings up to a time; None for all."""
        while waiting and (time is None or waiting[-1].at < time):
            ending = waiting.pop()
            for record_id, other in records.items():
                began = other.timestamp or ending.at
                if ended_at(other) is None and began <= ending.at and ending.ends(other):
                    records[record_id] = _end_at(other, ending.at)
                    changed[record_id] = None

    waiting = sorted(endings, key=lambda one: one.at, reverse=True)
    for fact in sorted(latest.values(), key=lambda one: one.timestamp or now):
        end_until(fact.timestamp or now)
        record, begins = fact.to_record(), fact.timestamp or now
        superseded = [full_id(fact.tenant, other) for other in fact.supersedes]
        same = by_relation.setdefault(_relation_key(record), [])
        for record_id in dict.fromkeys([*superseded, *(same if same_relation else ())]):
            other = records.get(record_id)
            if other is None or ended_at(other) is not None:
                continue
            start = other.timestamp or begins
            if record_id in superseded or start <= begins:
                # A fact cannot end before it begins.
                records[record_id] = _end_at(other, max(begins, start))
                changed[record_id] = None
            elif ended_at(record) is None:
                record = _end_at(record, start)
        records[record.full_id] = record
        changed[record.full_id] = None
        same.append(record.full_id)
    end_until(None)
    return [records[record_id] for record_id in changed]


def _relation_key(record: Record) -> tuple[str, str, str]:
    """Tenant, subject and relation: of two facts with the same key, one may replace the other."""
    subject, relation = (_fold(str(record.metadata[name])) for name in ("subject", "relation"))
    return record.tenant, subject, relation


def _end_at(record: Record, end: datetime) -> Record:
    values = record.to_dict()
    values["metadata"] = {**record.metadata, "superseded_at": end.astimezone(UTC).isoformat()}
    return Record.from_dict(values)


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _digest(*parts: str) -> str:
    return hashlib.blake2b(
        "\x1f".join(map(_fold, parts)).encode(errors="surrogatepass"), digest_size=12
    ).hexdigest()


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_line(name: str, value: object, what: str = "Fact") -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{what}.{name} must be a string, not {type(value).__name__}")
    line = " ".join(value.split())
    if not line:
        raise InvalidInput(f"{what}.{name} must not be empty")
    return line


def _check_strings(what: str, values: object) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} must be a list of strings; put a single one into a list")
    strings = tuple(values)
    if not all(_is_text(one) for one in strings):
        raise InvalidInput(f"{what} must be strings that are not blank")
    return tuple(dict.fromkeys(strings))
