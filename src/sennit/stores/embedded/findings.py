"""What a check of the database finds, and how to repair it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sennit.records import Json

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of one check. `fix` repairs it and returns what it did; None when there is nothing to repair."""

    check: str
    level: Level
    message: str
    fix: Callable[[], str] | None = None

    def to_dict(self) -> dict[str, Json]:
        return {
            "check": self.check,
            "level": self.level,
            "message": self.message,
            "repairable": self.fix is not None,
        }
