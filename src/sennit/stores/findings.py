"""What a check of the database finds, and how to repair it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


def repair(findings: Iterable[Finding], progress: Callable[[int, int], None] | None = None) -> list[str]:
    """Run the repairs of all findings; returns what was done, without duplicates."""
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    done: dict[str, None] = {}
    for index, fix in enumerate(fixes):
        if progress is not None:
            progress(index, len(fixes))
        done[fix()] = None
    return list(done)
