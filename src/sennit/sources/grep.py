"""The grep source: passages of files that contain the exact keywords of the query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.filters import EVERYTHING, Filter, fields_of, matches
from sennit.folders.access import Folders
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult, Passage
from sennit.places import FOLDER_FIELD, Folder, path_to_text, record_place
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

    def file_record(self, path: Path, owner: FileOwner) -> Record:
        """Return what every passage of a file has in common."""
        folder = owner.folder
        relative = path_to_text(str(path)) if folder is None else owner.path or "."
        return Record(
            id="file",
            text="",
            collection=COLLECTION,
            kind="passage",
            path=relative,
            tenant="" if folder is None else folder.tenant,
            sensitivity=self.sensitivity,
            scope=self.scope,
            metadata={} if folder is None else {**folder.metadata, FOLDER_FIELD: folder.key},
        )

    def folder_record(self, folder: Folder) -> Record:
        """Return what every passage of the files of a folder has in common."""
        return self.file_record(Path(folder.root), FileOwner(folder, "", list))

    def to_record(self, passage: Passage, owner: FileOwner) -> Record:
        """Return a passage as a record."""
        file = self.file_record(passage.real, owner)
        place = record_place(file.metadata.get(FOLDER_FIELD), file.path)
        values = (list(passage.matched), list(passage.keywords), passage.matches)
        return replace(
            file,
            id=f"{place}:{passage.first}-{passage.last}",
            text=passage.text,
            lines=(passage.first, passage.last),
            metadata={**file.metadata, **dict(zip(PASSAGE_FIELDS, values, strict=True))},
        )


class FileOwner(NamedTuple):
    """The indexed folder of a file, if there is one."""

    folder: Folder | None
    path: str
    """Relative to the folder."""
    parents: Callable[[], Sequence[str]]
    """Returns the parents of the file's records."""


FindOwner = Callable[[Path], FileOwner]


class GrepSource:
    """Literal matches in the allowed folders, as the files are now."""

    inline = False

    def __init__(
        self,
        folders: Callable[[Filter], Folders],
        owners: Callable[[], FindOwner],
        access: UnindexedAccess,
        options: GrepOptions,
        database: Path | None,
    ) -> None:
        """`database` is the folder of the database, which is never searched."""
        self._folders = folders
        self._owners = owners
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
        find_owner = self._owners()
        for passage in found.passages:
            record = self._access.to_record(passage, find_owner(passage.real))
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
        from sennit.folders.search import grep

        return grep(
            self._folders(audience).roots,
            keywords,
            options,
            is_visible=self.visibility(snapshot, audience, where),
        )

    def visibility(
        self, snapshot: Snapshot, audience: Filter, where: Filter = EVERYTHING
    ) -> Callable[[Path], bool]:
        """Return the function that decides which files an audience may see, of those that match a filter."""
        return partial(self._may_see, snapshot, audience, self._owners(), where)

    def _may_see(
        self, snapshot: Snapshot, audience: Filter, find_owner: FindOwner, where: Filter, path: Path
    ) -> bool:
        """Return whether an audience may see a file: under the rule for unindexed files, and by its indexed records."""
        if self._database is not None and path.is_relative_to(self._database):
            return False
        owner = find_owner(path)
        file = self._access.file_record(path, owner)
        if not matches(audience, file) or not (where == EVERYTHING or matches(where, file)):
            return False
        return audience == EVERYTHING or not any(map(snapshot.hides_records_of, owner.parents()))


def score_passage(passage: Passage) -> float:
    """Score by distinct keywords, then by matches: the order of grep's own ranking."""
    return len(passage.keywords) + passage.matches / (passage.matches + 1)
