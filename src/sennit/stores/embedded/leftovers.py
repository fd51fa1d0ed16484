"""Files in a database's folder: what nothing refers to any more, and how much space there is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from sennit.stores.embedded.findings import Finding
from sennit.stores.embedded.segments import SWEEP_AFTER_SECONDS, Entry
from sennit.stores.embedded.store import DATABASE_NAME, INDEX_FOLDER, EmbeddedStore

LITTLE_SPACE: Final = 256 * 1024 * 1024
"""A rebuild of the indexes of a hundred thousand records fits into this."""


def leftovers(store: EmbeddedStore) -> list[Finding]:
    if store.folder is None:
        return []
    files = list(_orphans(store))
    with store.database.read() as connection:
        (retired,) = connection.execute("SELECT count(*) FROM models WHERE state = 'retired'").fetchone()
    if not files and not retired:
        return [Finding("leftovers", "ok", "no file and no model is left over")]
    message = f"{len(files)} files ({_megabytes(sum(map(_size, files)))}) and {retired} replaced models"
    return [Finding("leftovers", "note", f"{message} are left over", partial(_sweep, store))]


def _orphans(store: EmbeddedStore) -> Iterator[Path]:
    """Index files that nothing refers to, and that nobody is about to publish."""
    assert store.folder is not None
    indexes: dict[str, Sequence[Entry]] = {
        "keyword": store.keyword.covered(),
        "fields": store.fields.covered(),
    }
    for model in store.models.wanted():
        indexes[f"vector-{model.number}"] = store.vector_index(model).covered()
    horizon = time.time() - SWEEP_AFTER_SECONDS
    for folder in sorted((store.folder / INDEX_FOLDER).glob("*/")):
        listed = {entry.file for entry in indexes.get(folder.name, ())} | {"manifest.json"}
        for path in sorted(folder.iterdir()):
            unknown = folder.name not in indexes or path.name not in listed
            if unknown and path.is_file() and path.stat().st_mtime < horizon:
                yield path


def _sweep(store: EmbeddedStore) -> str:
    for number in store.models.sweep():
        store.drop_index(number)
    for path in _orphans(store):
        path.unlink(missing_ok=True)
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return "deleted what was left over"


def disk(store: EmbeddedStore) -> list[Finding]:
    if store.folder is None:
        return []
    truth = sum(_size(path) for path in store.folder.glob(f"{DATABASE_NAME}*"))
    derived = sum(_size(path) for path in (store.folder / INDEX_FOLDER).rglob("*"))
    free = shutil.disk_usage(store.folder).free
    message = f"database {_megabytes(truth)}, indexes {_megabytes(derived)}, free {_megabytes(free)}"
    if free < LITTLE_SPACE:
        return [Finding("disk", "note", f"{message}: space is running out")]
    return [Finding("disk", "ok", message)]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
