"""What a plan is made of: entities of code, why each is wanted, and what became of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sennit.records import Json

PREVIEW: Final = 200
"""Characters of an entity that introspection shows."""

TYPES: Final = frozenset({"class", "struct", "enum", "interface", "trait", "type"})
"""Kinds that a capitalised word inside a sentence may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """An entity of code, or a passage between entities, as one piece of a prompt."""

    key: str
    """`path::Outer.inner`."""
    path: str
    text: str
    lines: tuple[int, int] | None = None
    kind: str = ""
    name: str = ""
    qualified: str = ""
    signature: str = ""
    language: str = ""
    outer: str = ""
    """The key of the entity that it is written in."""
    calls: tuple[str, ...] = ()

    @property
    def span(self) -> int:
        """How many lines it has."""
        return self.lines[1] - self.lines[0] + 1 if self.lines else 0

    def has_line(self, line: int) -> bool:
        return self.lines is not None and self.lines[0] <= line <= self.lines[1]

    def holds(self, other: Unit) -> bool:
        """Whether the other stands in it, word for word."""
        return (
            self.path == other.path
            and self.key != other.key
            and self.lines is not None
            and other.lines is not None
            and self.lines[0] <= other.lines[0]
            and other.lines[1] <= self.lines[1]
            and other.text in self.text
        )


@dataclass(frozen=True, slots=True)
class Anchor:
    """An entity that belongs into the plan whatever its score."""

    unit: Unit
    priority: int
    reason: str
    """Such as `explicit_file_mention`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a source thinks is near the question."""

    unit: Unit
    score: float
    source: str = "semantic"
    """Which source: `semantic` or `keyword`."""

    @property
    def reason(self) -> str:
        return f"{self.source}:{self.score:.2f}"


@dataclass(frozen=True, slots=True)
class Notice:
    """A warning: in the log when the plan is made, and with it ever after."""

    code: str
    message: str
    key: str = ""
    """The entity that it is about, if it is about one."""

    def to_dict(self) -> dict[str, Json]:
        return {"code": self.code, "message": self.message, "key": self.key}


@dataclass(frozen=True, slots=True)
class Dropped:
    """An entity that was wanted and is not in the plan."""

    key: str
    wanted: str
    """The reason it would have had."""
    reason: str
    """Why it is not there."""
    tokens: int

    def to_dict(self) -> dict[str, Json]:
        return {"key": self.key, "wanted": self.wanted, "reason": self.reason, "tokens": self.tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entity in the plan."""

    key: str
    reason: str
    """`anchor:explicit_file_mention`, `semantic:0.85`."""
    priority: int
    """Of an anchor; 0 for what a source thinks is near."""
    tokens: int
    """Of the entity as the prompt has it, with its heading."""
    position: int
    path: str
    lines: tuple[int, int] | None
    qualified: str
    language: str
    preview: str
    content: str
    """A hash of the whole entity, by which a later state is compared."""
    text: str = ""
    """As the prompt has it; not kept with an episode."""
    partial: bool = False
    """Whether parts of it are left out."""

    def to_dict(self, *, text: bool = True) -> dict[str, Json]:
        out: dict[str, Json] = {
            "key": self.key,
            "reason": self.reason,
            "priority": self.priority,
            "tokens": self.tokens,
            "position": self.position,
            "path": self.path,
            "lines": list(self.lines) if self.lines else None,
            "qualified": self.qualified,
            "language": self.language,
            "preview": self.preview,
            "content": self.content,
            "partial": self.partial,
        }
        return {**out, "text": self.text} if text else out


@dataclass(frozen=True, slots=True, kw_only=True)
class HydrationPlan:
    """What goes into a prompt, in order, under a budget. The same query, episode and state give the same bytes."""

    query: str
    episode: str = ""
    turn: int = 0
    """From 1 within an episode; 0 without one."""
    max_tokens: int
    max_entities: int
    allow_partial: bool = False
    tokenizer: str
    entries: tuple[Entry, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    warnings: tuple[Notice, ...] = field(default=())

    @property
    def tokens(self) -> int:
        """Of all entries."""
        return sum(entry.tokens for entry in self.entries)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(entry.key for entry in self.entries)

    def to_dict(self, *, text: bool = True) -> dict[str, Json]:
        """The plan as JSON values; whole numbers and texts only."""
        return {
            "query": self.query,
            "episode": self.episode,
            "turn": self.turn,
            "max_tokens": self.max_tokens,
            "max_entities": self.max_entities,
            "allow_partial": self.allow_partial,
            "tokenizer": self.tokenizer,
            "tokens": self.tokens,
            "entries": [entry.to_dict(text=text) for entry in self.entries],
            "dropped": [one.to_dict() for one in self.dropped],
            "warnings": [one.to_dict() for one in self.warnings],
        }

    def to_json(self, *, text: bool = True) -> str:
        """One canonical line of JSON."""
        return json.dumps(self.to_dict(text=text), ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> HydrationPlan:
        """A plan from its JSON values."""
        parts = {name: value for name, value in values.items() if name != "tokens"}
        parts["entries"] = tuple(
            Entry(**{**one, "lines": tuple(one["lines"]) if one["lines"] else None})
            for one in values["entries"]
        )
        parts["dropped"] = tuple(Dropped(**one) for one in values["dropped"])
        parts["warnings"] = tuple(Notice(**one) for one in values["warnings"])
        return cls(**parts)


def content_hash(text: str) -> str:
    """Equal for equal texts."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
