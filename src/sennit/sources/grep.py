"""The grep source: passages of files that contain the exact keywords of the query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.filters import EVERYTHING, Filter, fields_of, matches
from sennit.folders.access import Folders
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult, Passage
from sennit.folders.search import grep
from sennit.records import Record
from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys, Snapshot

COLLECTION: Final = "files"

PASSAGE_FIELDS: Final = ("matched_lines", "keywords", "matches")
"""The metadata of a passage, by which a search can filter although no record has it."""


@dataclass(frozen=True, slots=True)
class UnindexedAccess:
    """The sensitivity and scope of files that are not indexed."""

    sensitivity: str = "normal"
    scope: str = "public"

    def file_record(self, path: Path) -> Record:
        """Return what every passage of a file has in common."""
        return Record(
            id=str(path),
            text="",
            collection=COLLECTION,
            kind="passage",
            path=str(path),
            sensitivity=self.sensitivity,
            scope=self.scope,
        )

    def to_record(self, passage: Passage) -> Record:
        """Return a passage as a record."""
        return replace(
            self.file_record(passage.real),
            id=f"{passage.real}:{passage.first}-{passage.last}",
            text=passage.text,
            lines=(passage.first, passage.last),
            metadata=dict(
                zip(
                    PASSAGE_FIELDS,
                    (list(passage.matched), list(passage.keywords), passage.matches),
                    strict=True,
                )
            ),
        )


class GrepSource:
    """Literal matches in the allowed folders, as the files are now."""

    inline = False

    def __init__(
        self,
        folders: Callable[[], Folders],
        access: UnindexedAccess,
        options: GrepOptions,
        database: Path | None,
    ) -> None:
        """`database` is the folder of the database, which is never searched."""
        self._folders = folders
        self._database = database
        self._access = access
        self._options = options

    def search(self, request: SourceRequest) -> ScoredKeys:
        context = request.context
        # Keywords taken from the query have the case of a sentence, not of the files.
        case = self._options.case if context.has_keywords else "ignore"
        options = replace(
            self._options, case=case, max_passages=max(request.limit, self._options.max_passages)
        )
        # A filter that decides by file leaves out whole files, so that others do not take the places of the best ones.
        by_file = fields_of(request.where).isdisjoint(("id", *PASSAGE_FIELDS))
        where = request.where if by_file else EVERYTHING
        found = self.passages(context.keywords, context.snapshot, context.audience, options, where)
        keys: list[int] = []
        scores: list[float] = []
        for passage in found.passages:
            record = self._access.to_record(passage)
            if len(keys) < request.limit and matches(request.where, record):
                key = context.add_ephemeral(record)
                keys.append(key)
                scores.append(score_passage(passage))
                context.add_match_reason(request.list_name, key, f"contains {', '.join(passage.keywords)}")
        for limit in found.limits:
            context.warn(request.list_name, limit)
        return ScoredKeys(np.array(keys, np.int64), np.array(scores, np.float64))

    def scores(self, _request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return nan for every record: this source finds passages of files, not records."""
        return np.full(len(keys), np.nan)

    def passages(
        self,
        keywords: tuple[str, ...],
        snapshot: Snapshot,
        audience: Filter,
        options: GrepOptions,
        where: Filter = EVERYTHING,
    ) -> GrepResult:
        """Return the matches in the allowed folders that an audience may see, in files that match a filter."""
        return grep(
            self._folders().roots,
            keywords,
            options,
            is_visible=lambda path: (
                self.may_see(path, snapshot, audience)
                and (where == EVERYTHING or matches(where, self._access.file_record(path)))
            ),
        )

    def may_see(self, path: Path, snapshot: Snapshot, audience: Filter) -> bool:
        """Return whether an audience may see a file: under the rule for unindexed files, and by its indexed records."""
        if self._database is not None and path.is_relative_to(self._database):
            return False
        unindexed = Record(
            id=str(path), text="", sensitivity=self._access.sensitivity, scope=self._access.scope
        )
        return matches(audience, unindexed) and not snapshot.hides_records_of(str(path))


def score_passage(passage: Passage) -> float:
    """Score by distinct keywords, then by matches: the order of grep's own ranking."""
    return len(passage.keywords) + passage.matches / (passage.matches + 1)
