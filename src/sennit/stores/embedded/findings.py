"""What a check of the database found, and how it is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sennit.records import Json

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `fix` mends it and says what was done; None where there is nothing to mend."""

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
