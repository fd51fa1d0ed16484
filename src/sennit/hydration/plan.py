"""The parts of a plan: units of code, why each was selected, and why each was dropped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sennit.hydration.code_block import render_block
from sennit.records import Json, shorten

PREVIEW_CHARACTERS: Final = 200
"""Characters of an entity that introspection shows."""

TYPE_KINDS: Final = frozenset({"class", "struct", "enum", "interface", "trait", "type"})
"""Kinds that a capitalised word inside a sentence may name."""

ANCHOR_PREFIX: Final = "anchor:"
"""How the reason of an anchor in a plan begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeUnit:
    """An entity of code, or a passage between entities."""

    key: str
    """`place::Outer.inner`, which is the id of its record."""
    path: str
    """The place of its file: the key of the folder and the path in it."""
    text: str
    lines: tuple[int, int] | None = None
    kind: str = ""
    name: str = ""
    qualified: str = ""
    signature: str = ""
    doc: str = ""
    """The docstring, or the comment above without its markers."""
    language: str = ""
    outer: str = ""
    """The key of the enclosing entity."""
    calls: tuple[str, ...] = ()
    location: str = ""
    """The path of its file as it is shown; empty to show `path`."""

    @property
    def span(self) -> int:
        """The number of lines."""
        return self.lines[1] - self.lines[0] + 1 if self.lines else 0

    def has_line(self, line: int) -> bool:
        return self.lines is not None and self.lines[0] <= line <= self.lines[1]

    def contains(self, other: CodeUnit) -> bool:
        """Whether the text of the other is part of this one."""
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
    """An entity that the query or the episode names; it goes into the plan whatever its score."""

    unit: CodeUnit
    priority: int
    reason: str
    """Such as `explicit_file_mention`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a source found for the query."""

    unit: CodeUnit
    score: float
    """From 0 to 1, with two decimal digits."""
    source: str = "semantic"
    """`semantic` or `keyword`."""

    @property
    def reason(self) -> str:
        return f"{self.source}:{self.score:.2f}"

    @property
    def priority(self) -> int:
        return int(self.score * 100)


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """A warning. It is logged when the plan is made, and stored with the plan."""

    code: str
    message: str
    key: str = ""
    """The entity that the warning is about; empty if it is about the whole plan."""

    def to_dict(self) -> dict[str, Json]:
        return {"code": self.code, "message": self.message, "key": self.key}


@dataclass(frozen=True, slots=True)
class DroppedEntity:
    """An entity that was selected and is not in the plan."""

    key: str
    selection_reason: str
    """Why it was selected."""
    reason: str
    """Why it was dropped."""
    tokens: int

    def to_dict(self) -> dict[str, Json]:
        return {
            "key": self.key,
            "selection_reason": self.selection_reason,
            "reason": self.reason,
            "tokens": self.tokens,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEntity:
    """An entity in the plan."""

    key: str
    reason: str
    """`anchor:explicit_file_mention`, `semantic:0.85`."""
    priority: int
    """The priority of an anchor; for a candidate, its score in percent."""
    tokens: int
    """Tokens of the entity in the prompt, with its heading."""
    position: int
    path: str
    lines: tuple[int, int] | None
    qualified: str
    language: str
    preview: str
    content: str
    """A hash of the whole entity, to detect changes in a replay."""
    text: str = ""
    """The text in the prompt; an episode does not store it."""
    partial: bool = False
    """Whether the text is shortened."""

    @property
    def is_anchor(self) -> bool:
        """Whether the query or the episode names it."""
        return self.reason.startswith(ANCHOR_PREFIX)

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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HydrationPlan:
    """What goes into a prompt, in order, within a budget.

    The same query, episode and database state give the same bytes.
    """

    query: str
    episode: str = ""
    turn: int = 0
    """The turn in the episode, from 1; 0 without an episode."""
    max_tokens: int
    max_entities: int
    allow_partial: bool = False
    tokenizer: str
    entries: tuple[PlannedEntity, ...] = ()
    dropped: tuple[DroppedEntity, ...] = ()
    warnings: tuple[PlanWarning, ...] = field(default=())

    @property
    def tokens(self) -> int:
        """Tokens of all entries."""
        return sum(entry.tokens for entry in self.entries)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(entry.key for entry in self.entries)

    @property
    def prompt(self) -> str:
        """The entries in order, fenced, each under its path and lines; empty if there are none."""
        return "".join(
            render_block(entry.path, entry.lines, entry.qualified, entry.language, entry.text)
            for entry in self.entries
        )

    def __repr__(self) -> str:
        size = f"{len(self.entries)} entities, {self.tokens:,} of {self.max_tokens:,} tokens"
        return f"<HydrationPlan {shorten(self.query)}: {size}, {len(self.dropped)} dropped>"

    def to_dict(self, *, text: bool = True) -> dict[str, Json]:
        """Return the plan as JSON values: integers, booleans and strings only."""
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
        """Return one canonical line of JSON."""
        return json.dumps(self.to_dict(text=text), ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> HydrationPlan:
        """Restore a plan from its JSON values."""
        parts = {name: value for name, value in values.items() if name != "tokens"}
        parts["entries"] = tuple(
            PlannedEntity(**{**one, "lines": tuple(one["lines"]) if one["lines"] else None})
            for one in values["entries"]
        )
        parts["dropped"] = tuple(DroppedEntity(**one) for one in values["dropped"])
        parts["warnings"] = tuple(PlanWarning(**one) for one in values["warnings"])
        return cls(**parts)


def content_hash(text: str) -> str:
    """Return a hash of a text."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
