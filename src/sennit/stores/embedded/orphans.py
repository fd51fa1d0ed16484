"""Checks of the files in a database folder: orphaned files, and free disk space."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from sennit.stores.embedded.segment_store import ORPHAN_AGE_SECONDS, SegmentInfo
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.findings import Finding

MIN_FREE_BYTES: Final = 256 * 1024 * 1024
"""Enough to rebuild the indexes of a hundred thousand records."""


def check_orphans(store: EmbeddedStore) -> list[Finding]:
    """Report index files that no manifest lists, and replaced models."""
    if store.index_folder is None:
        return []
    files = list(_orphaned_files(store))
    with store.pool.read() as connection:
        (retired,) = connection.execute("SELECT count(*) FROM models WHERE state = 'retired'").fetchone()
    if not files and not retired:
        return [Finding("orphans", "ok", "no orphaned files or replaced models")]
    message = (
        f"{len(files)} orphaned files ({_megabytes(sum(map(_size, files)))}) and {retired} replaced models "
        "can be deleted"
    )
    return [Finding("orphans", "note", message, partial(_delete_orphans, store))]


def _orphaned_files(store: EmbeddedStore) -> Iterator[Path]:
    """Index files that no manifest lists and that are too old to be published soon."""
    assert store.index_folder is not None
    indexes: dict[str, Sequence[SegmentInfo]] = {
        store.keyword.name: store.keyword.segment_infos(),
        "fields": store.fields.segment_infos(),
    }
    for model in store.models.current() if store.has_vectors else ():
        indexes[f"vector-{model.number}"] = store.vector_index(model).segment_infos()
    horizon = time.time() - ORPHAN_AGE_SECONDS
    for folder in sorted(store.index_folder.glob("*/")):
        listed = {info.file for info in indexes.get(folder.name, ())} | {"manifest.json"}
        for path in sorted(folder.iterdir()):
            unlisted = folder.name not in indexes or path.name not in listed
            if unlisted and path.is_file() and path.stat().st_mtime < horizon:
                yield path


def _delete_orphans(store: EmbeddedStore) -> str:
    for number in store.models.delete_retired():
        store.drop_index(number)
    for path in _orphaned_files(store):
        path.unlink(missing_ok=True)
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return "deleted orphaned files and replaced models"


def check_disk(store: EmbeddedStore) -> list[Finding]:
    """Report the size of the database, and too little free space."""
    folder = store.index_folder
    if folder is None:
        return []
    primary = store.pool.size_bytes()
    derived = sum(_size(path) for path in folder.rglob("*"))
    # A folder that was deleted is created again by the next flush.
    free = shutil.disk_usage(folder if folder.exists() else folder.parent).free
    message = f"database {_megabytes(primary)}, indexes {_megabytes(derived)}, free {_megabytes(free)}"
    if free < MIN_FREE_BYTES:
        return [Finding("disk", "note", f"{message}: the disk is almost full")]
    return [Finding("disk", "ok", message)]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
