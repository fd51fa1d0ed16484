"""Access to the files of the allowed folders."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sennit.filters import Filter, matches
from sennit.folders import FileText, Folders, ReadError
from sennit.folders.access import file_of
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult
from sennit.places import absolute_path, path_to_text
from sennit.repositories.folders import IndexedFolders
from sennit.settings import FilesSettings
from sennit.sources.grep import FileOwner, FindOwner, GrepSource, UnindexedAccess
from sennit.stores.contract import FileManifest, Snapshot


class FileAccess:
    """Reads and greps the files that an audience may see in the allowed folders."""

    def __init__(
        self,
        settings: FilesSettings,
        access: UnindexedAccess,
        indexed: IndexedFolders,
        manifest: FileManifest,
        database: Path | None,
    ) -> None:
        self._settings = settings
        self._indexed = indexed
        self._manifest = manifest
        self._database = None if database is None else database.resolve()
        self._access = access
        self.source = GrepSource(self.folders, self._owners, self._access, GrepOptions(), self._database)

    def folders(self, audience: Filter) -> Folders:
        """Return the folders of the settings, else the indexed ones, else the one that holds the database."""
        return Folders(self._roots(audience))

    def read(
        self, path: str, lines: tuple[int, int] | None, snapshot: Snapshot, audience: Filter
    ) -> FileText:
        """Return the text of a file that the audience may see.

        A relative path is looked up in the current folder, where it is shown, and then in each allowed folder.
        """
        roots = self._roots(audience)
        is_visible = self.source.visibility(snapshot, audience)
        folders = Folders(roots, is_hidden=lambda real: not is_visible(real))
        near = _in_current_folder(path, folders)
        if near is not None:
            try:
                return folders.read(near, lines)
            except ReadError as error:
                if error.code not in ("NOT_FOUND", "ACCESS_DENIED"):
                    raise
        return folders.read(path, lines)

    def passages(
        self, keywords: tuple[str, ...], snapshot: Snapshot, audience: Filter, options: GrepOptions
    ) -> GrepResult:
        """Return the matches that the audience may see."""
        return self.source.passages(keywords, snapshot, audience, options)

    def _owners(self) -> FindOwner:
        """Return the function that finds the folder of a file."""
        places = self._indexed.places()

        def find_owner(path: Path) -> FileOwner:
            owners = places.owners(path_to_text(str(path)))

            def parents() -> list[str]:
                return [
                    one for folder, inside in owners for one in self._manifest.parents_of(folder.key, inside)
                ]

            for folder, inside in owners:
                if folder.whole:
                    return FileOwner(folder, inside, parents)
            return FileOwner(None, "", parents)

        return find_owner

    def _roots(self, audience: Filter) -> Sequence[str | os.PathLike[str]]:
        if self._settings.folders:
            return self._settings.folders
        folders = [folder for folder in self._indexed.places().folders if folder.whole]
        # A folder of a tenant does not exist for callers of another.
        visible = [folder.root for folder in folders if matches(audience, self._access.folder_record(folder))]
        if visible or folders:
            return sorted(visible)
        return [self._database.parent] if self._database is not None else []


def _in_current_folder(path: str, folders: Folders) -> str | None:
    """Return a path, or a citation of a part of a file, made absolute if the file is in the current folder."""
    if not isinstance(path, str) or not path or "\0" in path or Path(path).is_absolute():
        return None
    for name in (path, file_of(path)):
        try:
            real = Path(os.path.realpath(absolute_path(name)))
            exists = os.path.lexists(real)
        except (OSError, ValueError):
            return None
        if exists and any(real == root or real.is_relative_to(root) for root in folders.roots):
            return absolute_path(path)
    return None
