"""Hints: why an answer is empty, and what would find something."""

from __future__ import annotations

from dataclasses import dataclass

from sennit.records import Json


@dataclass(frozen=True, slots=True)
class Hint:
    """One reason why a search found nothing, or a search that would find something."""

    code: str
    """`nothing_stored`, `empty_query`, `recipe`, `collection`, `filter`, `look_back`, `min_relevance`, `threshold`,
    `no_match`, `project`, or `try`."""
    message: str
    command: str = ""
    """What to run on the command line; empty if nothing helps."""

    def to_dict(self) -> dict[str, Json]:
        return {"code": self.code, "message": self.message, "command": self.command}
