"""The composition root: binds the roles of a database by what names it. Only this module imports backends."""

from __future__ import annotations

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Final

from sennit.errors import StoreError
from sennit.stores.contract import Backend
from sennit.stores.embedded.checks import check
from sennit.stores.embedded.ranges import read_origin
from sennit.stores.embedded.roles import LocalGraph, LocalKeyword, LocalVector
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.sql.connection import SqlPool
from sennit.stores.sql.pool import open_pool
from sennit.stores.target import is_postgres
from sennit.user_cache import cache_folder

MEMORY: Final = ":memory:"
DATABASE_NAME: Final = "sennit.db"
INDEX_FOLDER: Final = "index"
GIT_IGNORE: Final = ".gitignore"
IGNORE_EVERYTHING: Final = "*\n"


def open_backend(target: str | os.PathLike[str], *, exact_vectors: bool = False) -> Backend:
    """Open the database that a target names; see `open_store`."""
    store = open_store(target, exact_vectors=exact_vectors)
    return Backend(
        records=store,
        keyword=LocalKeyword(),
        vector=LocalVector(),
        graph=LocalGraph(),
        upkeep=(store,),
        check=partial(check, store),
        bindings={
            "records": "postgres" if is_postgres(os.fspath(target)) else "sqlite",
            **dict.fromkeys(("keyword", "vector", "graph"), "local"),
        },
    )


def open_store(target: str | os.PathLike[str], *, exact_vectors: bool = False) -> EmbeddedStore:
    """Open the store in a folder, which is created if it is missing, or on a Postgres server.

    ":memory:" stores nothing on disk. For postgresql://…, the indexes live in a cache folder of this machine.
    `exact_vectors`: a search for a restricted audience scans vectors exactly, without codes trained on all of them.
    """
    if os.fspath(target) == MEMORY:
        return EmbeddedStore(open_pool(None), None, exact_vectors=exact_vectors)
    if is_postgres(os.fspath(target)):
        pool = open_pool(os.fspath(target))
        try:
            return EmbeddedStore(pool, _cache_folder(pool), exact_vectors=exact_vectors)
        except BaseException:
            pool.close()
            raise
    folder = Path(target)
    _create_folder(folder)
    pool = open_pool(str(folder / DATABASE_NAME))
    return EmbeddedStore(pool, folder / INDEX_FOLDER, exact_vectors=exact_vectors)


def _cache_folder(pool: SqlPool) -> Path:
    """The folder for the indexes of a database that is not on this machine. It may be deleted at any time."""
    with pool.read() as connection:
        origin = read_origin(connection)
    # A copy of the database has the same origin, and other records later.
    place = hashlib.blake2b(pool.identity().encode(), digest_size=4).hexdigest()
    folder = cache_folder("indexes", "SENNIT_CACHE") / f"{origin:016x}-{place}"
    try:
        # The indexes hold words and values of the records, so nobody else may read them.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}, the cache for the indexes of {pool.location}, cannot be created: {error.strerror}. Choose "
            "another folder with SENNIT_CACHE."
        ) from error
    return folder


def _create_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file; a sennit database is a folder. Choose another name.")
    if folder.is_dir() and not (folder / DATABASE_NAME).exists():
        other_files = [path.name for path in folder.iterdir() if not _is_own_file(path)]
        if other_files:
            raise StoreError(
                f"{folder} holds other files ({other_files[0]!r}) and no sennit database. "
                "Choose a new or empty folder."
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / DATABASE_NAME).exists():
            # A database holds what is in files that git may ignore, and changes with every run.
            (folder / GIT_IGNORE).write_text(IGNORE_EVERYTHING, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}. Choose another location.") from error


def _is_own_file(path: Path) -> bool:
    """Return whether a file is one that a new database consists of."""
    if path.name == GIT_IGNORE:
        return path.is_file() and path.read_bytes() == IGNORE_EVERYTHING.encode()
    return path.name == INDEX_FOLDER
