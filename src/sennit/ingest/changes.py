"""What has changed in an indexed folder since it was indexed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sennit.ingest.walk import Scope, WalkResult, walk
from sennit.places import Folder
from sennit.records import Json
from sennit.stores.contract import FileRow


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """How many files of a folder an index run would read or remove."""

    new: int = 0
    changed: int = 0
    gone: int = 0

    @property
    def total(self) -> int:
        """The number of files that are not as the database has them."""
        return self.new + self.changed + self.gone

    def to_dict(self) -> dict[str, Json]:
        return {"new": self.new, "changed": self.changed, "gone": self.gone}


def count_changes(
    folder: Folder, known: Iterable[FileRow], may_see: Callable[[str], bool], skip_folders: Sequence[str] = ()
) -> FolderChanges:
    """Compare a folder with the files that were indexed, by size and modification time. No file is opened.

    A file counts as new if a run without options would index it.
    """
    tree = WalkResult()
    if os.path.lexists(folder.root):
        walk(folder.root, Scope(), tree, skip_folders=skip_folders)
    rows = {folder.absolute(row.path): row for row in known}
    changed = gone = 0
    for path, row in rows.items():
        entry = tree.files.get(path)
        status = (entry.size, entry.mtime_ns, entry.ctime_ns) if entry is not None else _status(path)
        if status is None:
            gone += 1
        elif not _is_unchanged(row, *status):
            changed += 1
    new = sum(path not in rows and may_see(path) for path in tree.files)
    return FolderChanges(new, changed, gone)


def _is_unchanged(row: FileRow, size: int, mtime_ns: int, ctime_ns: int) -> bool:
    # The modification time of a file that was indexed within seconds of its last change is not stored.
    same_time = row.mtime_ns == mtime_ns if row.mtime_ns >= 0 else row.ctime_ns == ctime_ns
    return row.size == size and same_time


def _status(path: str) -> tuple[int, int, int] | None:
    """Size and times of a file that the walk left out, such as an ignored one."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
