"""Access to the files of the allowed folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sennit.filters import Filter
from sennit.folders import FileText, Folders
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult
from sennit.repositories.folders import IndexedFolders
from sennit.settings import FilesSettings
from sennit.sources.grep import GrepSource, UnindexedAccess
from sennit.stores.contract import Snapshot


class FileAccess:
    """Reads and greps the files that an audience may see in the allowed folders."""

    def __init__(self, settings: FilesSettings, indexed: IndexedFolders, database: Path | None) -> None:
        self._settings = settings
        self._indexed = indexed
        self._database = None if database is None else database.resolve()
        access = UnindexedAccess(settings.sensitivity, settings.scope)
        self.source = GrepSource(self.folders, access, GrepOptions(), self._database)

    def folders(self) -> Folders:
        """Return the folders of the settings, else the indexed ones, else the one that holds the database."""
        return Folders(self._roots())

    def read(
        self, path: str, lines: tuple[int, int] | None, snapshot: Snapshot, audience: Filter
    ) -> FileText:
        """Return the text of a file that the audience may see."""
        folders = Folders(
            self._roots(), is_hidden=lambda real: not self.source.may_see(real, snapshot, audience)
        )
        return folders.read(path, lines)

    def passages(
        self, keywords: tuple[str, ...], snapshot: Snapshot, audience: Filter, options: GrepOptions
    ) -> GrepResult:
        """Return the matches that the audience may see."""
        return self.source.passages(keywords, snapshot, audience, options)

    def _roots(self) -> Sequence[str | os.PathLike[str]]:
        named = self._settings.folders or self._indexed.paths()
        return named or ([self._database.parent] if self._database is not None else [])
