"""The composition root of the store: opens a database by what names it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from sennit.errors import StoreError
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.sql.pool import open_pool

MEMORY: Final = ":memory:"
DATABASE_NAME: Final = "sennit.db"
INDEX_FOLDER: Final = "index"


def open_store(target: str | os.PathLike[str], *, exact_vectors: bool = False) -> EmbeddedStore:
    """Open the store in a folder, which is created if it is missing; ":memory:" stores nothing on disk.

    `exact_vectors`: a search for a restricted audience scans vectors exactly, without codes trained on all of them.
    """
    if os.fspath(target) == MEMORY:
        return EmbeddedStore(open_pool(None), None, exact_vectors=exact_vectors)
    folder = Path(target)
    _create_folder(folder)
    pool = open_pool(str(folder / DATABASE_NAME))
    return EmbeddedStore(pool, folder / INDEX_FOLDER, exact_vectors=exact_vectors)


def _create_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file; a sennit database is a folder. Choose another name.")
    if folder.is_dir() and not (folder / DATABASE_NAME).exists():
        other_files = [path.name for path in folder.iterdir() if path.name != INDEX_FOLDER]
        if other_files:
            raise StoreError(
                f"{folder} holds other files ({other_files[0]!r}) and no sennit database. "
                "Choose a new or empty folder."
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}. Choose another location.") from error
