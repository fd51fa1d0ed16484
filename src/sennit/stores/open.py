"""The composition root: binds the roles of a database by what names it. Only this module imports backends."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput, MissingExtra, SettingsError, StoreError
from sennit.settings.attached import AttachedMapping, read_mappings
from sennit.settings.registry import Settings
from sennit.settings.servers import LOCAL, RolesSettings
from sennit.stores.contract import (
    Backend,
    CheckProgress,
    Embed,
    GraphRole,
    IndexOf,
    KeywordQuery,
    KeywordRole,
    TableCopy,
    Upkeep,
    VectorRole,
)
from sennit.stores.embedded.ranges import read_origin
from sennit.stores.embedded.roles import LocalGraph, LocalKeyword, LocalVector
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.sql.connection import SqlPool
from sennit.stores.sql.pool import is_unfinished, open_pool
from sennit.stores.target import describe_target, is_postgres
from sennit.user_cache import cache_folder

if TYPE_CHECKING:
    from sennit.stores.attached import AttachedCollection
    from sennit.stores.findings import Finding
    from sennit.stores.sql.migration import CopyProgress

MEMORY: Final = ":memory:"
DATABASE_NAME: Final = "sennit.db"
INDEX_FOLDER: Final = "index"
GIT_IGNORE: Final = ".gitignore"
IGNORE_EVERYTHING: Final = "*\n"
ALL_LOCAL: Final = RolesSettings()


@dataclass(frozen=True, slots=True)
class Opening:
    """What a server's binding gets to know of the database that is being opened."""

    settings: Settings
    target: str = field(repr=False)
    """What names the database: a folder, or a connection string, which may hold a password."""
    database: str
    """A name of the database for what it has on servers: hexadecimal digits, the same every time, also after it was
    moved. A copy has another."""


def _open_postgres(opening: Opening) -> Any:
    from sennit.stores.servers.postgres.indexes import PostgresIndexes

    settings = opening.settings.postgres
    url = settings.url or (opening.target if is_postgres(opening.target) else "")
    if not url:
        raise SettingsError(
            "postgres.url is not set, and the records are not on Postgres either. Name the database of the indexes, for "
            "example in SENNIT_POSTGRES_URL.",
            key="postgres.url",
        )
    return PostgresIndexes(settings, opening.database, url=url)


def _open_chroma(opening: Opening) -> Any:
    from sennit.stores.servers.chroma import ChromaServer

    return ChromaServer(opening.settings.chroma, opening.database)


def _open_graphiti(opening: Opening) -> Any:
    from sennit.stores.servers.graphiti import GraphitiServer

    return GraphitiServer(opening.settings.graphiti, opening.database)


def _open_qdrant(opening: Opening) -> Any:
    from sennit.stores.servers.qdrant import QdrantServer

    return QdrantServer(opening.settings.qdrant, opening.database)


def _open_opensearch(opening: Opening) -> Any:
    from sennit.stores.servers.opensearch import OpenSearchServer

    return OpenSearchServer(opening.settings.opensearch, opening.database)


SERVERS: Final[dict[str, Callable[[Opening], Any]]] = {
    "opensearch": _open_opensearch,
    "postgres": _open_postgres,
    "qdrant": _open_qdrant,
    "chroma": _open_chroma,
    "graphiti": _open_graphiti,
}
"""The binding of each server by its name in `[roles]`. It is an `IndexServer` with a method for each role that it can
have: `keyword()` and `vector()` return an `IndexOf`, `attach(mapping)` an `AttachedCollection`. A binding imports its
client here, when it is asked for."""


def open_backend(target: str | os.PathLike[str], settings: Settings | None = None) -> Backend:
    """Open the database that a target names (see `open_store`), with the roles of the settings."""
    settings = Settings() if settings is None else settings
    name = os.fspath(target)
    kind = "postgres" if is_postgres(name) else "sqlite"
    wanted = settings.roles.records
    if wanted and wanted != kind:
        raise SettingsError(
            f"roles.records is {wanted!r}, but {describe_target(name)} is a database on {kind}. Change the setting, or "
            f"open {'a folder' if wanted == 'sqlite' else 'postgresql://…'}.",
            key="roles.records",
        )
    store = open_store(target, exact_vectors=settings.privacy.exact_vectors, roles=settings.roles)
    try:
        return _bind_roles(store, kind, name, settings)
    except BaseException:
        store.close()
        raise


def _bind_roles(store: EmbeddedStore, kind: str, target: str, settings: Settings) -> Backend:
    roles = settings.roles
    names: dict[str, str] = {"keyword": roles.keyword, "vector": roles.vector, "graph": roles.graph}
    mappings = read_mappings(settings.attached, settings.origins)
    needed = {f"roles.{role}": name for role, name in names.items() if name != LOCAL}
    needed |= {f"attached.{one.name}": one.server for one in mappings.values()}
    servers = _open_servers(store, target, settings, needed) if needed else {}
    keyword: KeywordRole = LocalKeyword()
    vector: VectorRole = LocalVector()
    feeders: list[Upkeep] = []
    if servers:
        from sennit.stores.buffered_index import BufferedKeyword, BufferedVector, IndexFeeder
    if roles.keyword != LOCAL:
        keyword_index: IndexOf[KeywordQuery] = servers[roles.keyword].keyword()
        keyword = BufferedKeyword(keyword_index)
        feeders.append(IndexFeeder(store, keyword_index))
    if roles.vector != LOCAL:
        vector_index: IndexOf[NDArray[np.float32]] = servers[roles.vector].vector()
        vector = BufferedVector(vector_index)
        feeders.append(IndexFeeder(store, vector_index))
    graph: GraphRole = LocalGraph()
    if roles.graph != LOCAL:
        # Names stay with the records; the server has the facts.
        server = servers[roles.graph]
        graph = server.graph(graph)
        feeders.append(IndexFeeder(store, server.feed()))
    return Backend(
        records=store,
        keyword=keyword,
        vector=vector,
        graph=graph,
        upkeep=(store, *feeders),
        check=partial(_check, store),
        bindings={"records": kind, **names},
        servers=servers,
        attached={name: _attach(servers[one.server], one) for name, one in mappings.items()},
    )


def _check(
    store: EmbeddedStore,
    *,
    quick: bool = False,
    progress: CheckProgress | None = None,
    embed: Embed | None = None,
) -> list[Finding]:
    """Compare derived data with the records."""
    from sennit.stores.embedded.checks import check

    return check(store, quick=quick, progress=progress, embed=embed)


def _attach(server: Any, mapping: AttachedMapping) -> AttachedCollection:
    if not hasattr(server, "attach"):
        raise SettingsError(
            f"attached.{mapping.name} is on {mapping.server}, of which this version cannot attach collections.",
            key=f"attached.{mapping.name}",
        )
    attached: AttachedCollection = server.attach(mapping)
    return attached


def _open_servers(
    store: EmbeddedStore, target: str, settings: Settings, needed: Mapping[str, str]
) -> dict[str, Any]:
    """The servers by name; `needed` has them by the setting that names them."""
    from sennit.stores.sql.server_name import name_on_servers

    opening = Opening(settings, target, name_on_servers(store.pool, partial(_first_name, store.pool)))
    servers: dict[str, Any] = {}
    for key, name in needed.items():
        if name in servers:
            continue
        if name not in SERVERS:
            raise SettingsError(f"{key} needs the server {name!r}, which this version cannot use.", key=key)
        try:
            servers[name] = SERVERS[name](opening)
        except ImportError as error:
            if (error.name or "").startswith("sennit"):
                raise
            raise MissingExtra(f"{key} = {name!r}", name) from error
    return servers


def copy_store(
    source: str | os.PathLike[str], target: str | os.PathLike[str], progress: CopyProgress | None = None
) -> list[TableCopy]:
    """Copy the database that a target names to another place, which must be empty or an earlier run's."""
    from sennit.stores.sql.migration import copy_database

    if _is_same_database(os.fspath(source), os.fspath(target)):
        raise StoreError(
            f"{describe_target(os.fspath(target))} is the database itself; name another place to migrate to."
        )
    # Opened as stores first: so older files are brought up to date, and a folder is created as always.
    pools: list[SqlPool] = []
    try:
        for name, allows in ((source, False), (target, True)):
            open_store(name, allow_unfinished=allows).close()
            pools.append(open_pool(_pool_target(name)))
        return copy_database(pools[0], pools[1], progress)
    finally:
        for pool in pools:
            pool.close()


def _is_same_database(one: str, other: str) -> bool:
    """Whether both name the same database, by whatever path or connection string. Changes neither."""
    if one == other:
        return True
    if is_postgres(one) != is_postgres(other):
        return False
    if not is_postgres(one):
        files = [Path(folder) / DATABASE_NAME for folder in (one, other)]
        return all(file.exists() for file in files) and files[0].samefile(files[1])
    with contextlib.closing(open_pool(one)) as pool, contextlib.closing(open_pool(other)) as other_pool:
        return pool.place() == other_pool.place()


def _pool_target(target: str | os.PathLike[str]) -> str:
    name = os.fspath(target)
    if name == MEMORY:
        raise InvalidInput("A database in memory cannot be migrated: nothing else can open it")
    return name if is_postgres(name) else str(Path(target) / DATABASE_NAME)


def open_store(
    target: str | os.PathLike[str],
    *,
    exact_vectors: bool = False,
    allow_unfinished: bool = False,
    roles: RolesSettings = ALL_LOCAL,
) -> EmbeddedStore:
    """Open the store in a folder, which is created if it is missing, or on a Postgres server.

    ":memory:" stores nothing on disk. For postgresql://…, the indexes live in a cache folder of this machine.
    `exact_vectors`: a search for a restricted audience scans vectors exactly, without codes trained on all of them.
    `roles`: what a server searches has no index on this machine.
    """
    options = {
        "exact_vectors": exact_vectors,
        "has_words": roles.keyword == LOCAL,
        "has_vectors": roles.vector == LOCAL,
    }
    if os.fspath(target) == MEMORY:
        return EmbeddedStore(open_pool(None), None, **options)
    if is_postgres(os.fspath(target)):
        pool = open_pool(os.fspath(target))
        try:
            _refuse_unfinished(pool, allow_unfinished=allow_unfinished)
            return EmbeddedStore(pool, _cache_folder(pool), **options)
        except BaseException:
            pool.close()
            raise
    folder = Path(target)
    _create_folder(folder)
    pool = open_pool(str(folder / DATABASE_NAME))
    try:
        _refuse_unfinished(pool, allow_unfinished=allow_unfinished)
        return EmbeddedStore(pool, folder / INDEX_FOLDER, **options)
    except BaseException:
        pool.close()
        raise


def _refuse_unfinished(pool: SqlPool, *, allow_unfinished: bool) -> None:
    if not allow_unfinished and is_unfinished(pool):
        raise StoreError(
            f"{pool.location} is not complete: a migration into it was begun and not finished. Run the same 'sennit "
            "migrate' again; it goes on where it ended."
        )


def _cache_folder(pool: SqlPool) -> Path:
    """The folder for the indexes of a database that is not on this machine. It may be deleted at any time."""
    folder = cache_folder("indexes", "SENNIT_CACHE") / _identify(pool)
    try:
        # The indexes hold words and values of the records, so nobody else may read them.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{folder}, the cache for the indexes of {pool.location}, cannot be created: {error.strerror}. Choose "
            "another folder with SENNIT_CACHE."
        ) from error
    return folder


def _identify(pool: SqlPool) -> str:
    """The origin of a database, and its place: a copy has the same origin, and other records later."""
    with pool.read() as connection:
        origin = read_origin(connection)
    return f"{origin:016x}-{hashlib.blake2b(pool.identity().encode(), digest_size=4).hexdigest()}"


def _first_name(pool: SqlPool) -> str:
    """The name on servers of a database that was not bound to one before."""
    return hashlib.blake2b(_identify(pool).encode(), digest_size=12).hexdigest()


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
        # Another process may be creating the database, and has not written all of the file yet.
        return path.is_file() and IGNORE_EVERYTHING.encode().startswith(path.read_bytes())
    return path.name == INDEX_FOLDER
