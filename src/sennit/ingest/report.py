"""The report of an index run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from sennit.records import Json

_TOO_LARGE: Final = re.compile(r"[\d,]+ bytes; the limit is ([\d,]+)")


class Skipped(NamedTuple):
    """A file or folder that was found and not indexed, and the reason."""

    path: str
    reason: str


IndexPhase = Literal["scan", "read", "write", "merge"]
"""Looking for files; reading, embedding and writing them; writing the last of them; merging index segments."""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far an index run is. Only files that are new or changed are counted."""

    phase: IndexPhase
    files: int = 0
    total_files: int = 0
    bytes: int = 0
    total_bytes: int = 0
    path: str = ""
    """The file that is read now."""


Progress = Callable[[IndexProgress], None]


@dataclass(slots=True)
class IndexReport:
    """Counts of files and records, the skipped files, and the duration."""

    seen: int = 0
    """Files found, including the skipped ones."""
    added: int = 0
    updated: int = 0
    renamed: int = 0
    removed: int = 0
    unchanged: int = 0
    records_added: int = 0
    records_updated: int = 0
    records_removed: int = 0
    records_unchanged: int = 0
    """Records of changed files that did not change themselves."""
    embedded: int = 0
    """Texts whose vectors were computed; a text that the database has a vector of is not embedded again."""
    skipped: list[Skipped] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    """What would improve the index, one sentence each."""
    ignored: list[Skipped] = field(default_factory=list)
    """Files and folders that are ignored by default, such as virtual environments. They are not counted as seen."""
    bytes_read: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def records(self) -> int:
        """The number of records written."""
        return self.records_added + self.records_updated

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0

    def to_dict(self) -> dict[str, Json]:
        """The report as JSON values."""
        return {
            "files": {
                "seen": self.seen,
                "added": self.added,
                "updated": self.updated,
                "renamed": self.renamed,
                "removed": self.removed,
                "unchanged": self.unchanged,
                "skipped": len(self.skipped),
            },
            "records": {
                "added": self.records_added,
                "updated": self.records_updated,
                "removed": self.records_removed,
                "unchanged": self.records_unchanged,
            },
            "embedded": self.embedded,
            "skipped": [{"path": path, "reason": reason} for path, reason in self.skipped],
            "hints": list(self.hints),
            "ignored": [{"path": path, "reason": reason} for path, reason in self.ignored],
            "bytes_read": self.bytes_read,
            "seconds": round(self.seconds, 3),
            "records_per_second": round(self.records_per_second, 1),
            "interrupted": self.interrupted,
        }


class ReasonGroup(NamedTuple):
    """What was left out for one reason, in the order of the paths."""

    reason: str
    paths: list[str]


def is_too_large(reason: str) -> bool:
    """Return whether a file was left out because it has more bytes than files may have."""
    return _TOO_LARGE.fullmatch(reason) is not None


def group_by_reason(skipped: Iterable[Skipped]) -> list[ReasonGroup]:
    """Group by reason, the largest group first. What differs by file is left out of the reason."""
    groups: dict[str, list[str]] = {}
    for path, reason in skipped:
        kind = "binary" if reason.startswith("binary:") else _TOO_LARGE.sub(r"larger than \1 bytes", reason)
        groups.setdefault(kind, []).append(path)
    return sorted((ReasonGroup(*group) for group in groups.items()), key=lambda group: -len(group.paths))


class IndexInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run. Everything that `report` counts is durable, and the next run continues from there."""

    def __init__(self, report: IndexReport) -> None:
        self.report = report
        super().__init__("interrupted; run it again to continue")
