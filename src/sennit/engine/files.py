"""Files of the allowed folders, for a caller."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sennit.filters import Filter
from sennit.folders import FileText, Folders
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepAnswer
from sennit.settings import FilesSettings
from sennit.sources.grep import GrepSource, Stamp
from sennit.stores.embedded.permits import Permits
from sennit.stores.embedded.snapshot import Snapshot


class FileAccess:
    """Which folders may be searched and read, and how."""

    def __init__(self, settings: FilesSettings, permits: Permits, database: Path | None) -> None:
        self._settings = settings
        self._permits = permits
        self._database = None if database is None else database.resolve()
        stamp = Stamp(settings.sensitivity, settings.scope)
        self.source = GrepSource(self.folders, stamp, GrepOptions(), self._database)

    def folders(self) -> Folders:
        """Those of the settings, or those that were indexed, or the one that holds the database."""
        return Folders(self._roots())

    def read(
        self, path: str, lines: tuple[int, int] | None, snapshot: Snapshot, audience: Filter
    ) -> FileText:
        """The text of a file that the audience may see."""
        folders = Folders(self._roots(), hides=lambda real: not self.source.sees(real, snapshot, audience))
        return folders.read(path, lines)

    def passages(
        self, keywords: tuple[str, ...], snapshot: Snapshot, audience: Filter, options: GrepOptions
    ) -> GrepAnswer:
        """Matches that the audience may see."""
        return self.source.passages(keywords, snapshot, audience, options)

    def _roots(self) -> Sequence[str | os.PathLike[str]]:
        named = self._settings.folders or self._permits.folders()
        return named or ([self._database.parent] if self._database is not None else [])
