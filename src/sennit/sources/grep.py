"""Passages of files that hold the exact keywords of the question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sennit.filters import Filter, matches
from sennit.folders.access import Folders
from sennit.folders.finding import grep
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepAnswer, Passage
from sennit.records import Record
from sennit.sources.base import Ask
from sennit.stores.contract import Found
from sennit.stores.embedded.snapshot import Snapshot

COLLECTION = "files"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What files count as that were never indexed."""

    sensitivity: str = "normal"
    scope: str = "public"

    def record(self, passage: Passage) -> Record:
        """A passage as a record."""
        return Record(
            id=f"{passage.real}:{passage.first}-{passage.last}",
            text=passage.text,
            collection=COLLECTION,
            kind="passage",
            path=str(passage.real),
            lines=(passage.first, passage.last),
            sensitivity=self.sensitivity,
            scope=self.scope,
            metadata={
                "matched_lines": list(passage.matched),
                "keywords": list(passage.keywords),
                "matches": passage.matches,
            },
        )


class GrepSource:
    """Literal matches in the allowed folders, as they are at this moment."""

    inline = False

    def __init__(
        self, folders: Callable[[], Folders], stamp: Stamp, options: GrepOptions, database: Path | None
    ) -> None:
        """`database` is our own folder, which is no text to anybody."""
        self._folders = folders
        self._database = database
        self._stamp = stamp
        self._options = options

    def search(self, ask: Ask) -> Found:
        question = ask.question
        # Words that were taken from the question are written as a sentence has them, not as files do.
        case = self._options.case if question.names_keywords else "ignore"
        options = replace(self._options, case=case, max_passages=max(ask.pool, self._options.max_passages))
        found = self.passages(question.keywords, question.snapshot, question.audience, options)
        keys: list[int] = []
        scores: list[float] = []
        for passage in found.passages:
            record = self._stamp.record(passage)
            if len(keys) < ask.pool and matches(ask.where, record):
                key = question.bring(record)
                keys.append(key)
                scores.append(score(passage))
                question.note(ask.name, key, f"holds {', '.join(passage.keywords)}")
        for limit in found.limits:
            question.warn(ask.name, limit)
        return Found(np.array(keys, np.int64), np.array(scores, np.float64))

    def scores(self, _ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of records, none: this source finds places in files."""
        return np.full(len(keys), np.nan)

    def passages(
        self, keywords: tuple[str, ...], snapshot: Snapshot, audience: Filter, options: GrepOptions
    ) -> GrepAnswer:
        """What an audience may see of the matches in the allowed folders."""
        return grep(
            self._folders().roots, keywords, options, sees=lambda path: self.sees(path, snapshot, audience)
        )

    def sees(self, path: Path, snapshot: Snapshot, audience: Filter) -> bool:
        """Whether an audience may know a file: as a file of the folder, and by what is indexed of it."""
        if self._database is not None and path.is_relative_to(self._database):
            return False
        unindexed = Record(
            id=str(path), text="", sensitivity=self._stamp.sensitivity, scope=self._stamp.scope
        )
        return matches(audience, unindexed) and not snapshot.hides(str(path))


def score(passage: Passage) -> float:
    """Distinct keywords first, then matches: the order in which grep ranks."""
    return len(passage.keywords) + passage.matches / (passage.matches + 1)
