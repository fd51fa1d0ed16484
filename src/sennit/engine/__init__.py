"""The engine: open a database, write to it, search it, and explain the results."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from sennit.engine.database import Database
from sennit.engine.search_request import FilterLike, SearchRequest
from sennit.errors import InvalidInput
from sennit.privacy import Rule
from sennit.settings import Settings, load_settings
from sennit.sources.base import MakeSource, Source
from sennit.stores.contract import Backend
from sennit.stores.open import MEMORY

if TYPE_CHECKING:
    from sennit.engine.async_database import AsyncDatabase, OpeningDatabase

__all__ = ["MEMORY", "AsyncDatabase", "Database", "FilterLike", "SearchRequest", "aopen", "open"]


def open(  # noqa: A001 - sennit.open is the public name
    path: str | os.PathLike[str] | Backend,
    *,
    settings: Settings | None = None,
    sources: Mapping[str, Source | MakeSource] | None = None,
    rule: Rule | None = None,
    **overrides: object,
) -> Database:
    """Open the database in a folder, which is created if it is missing; ":memory:" stores nothing on disk.

    A postgresql:// address opens a database on a server, and a `Backend` one that you have composed yourself.
    `overrides` are settings by name, with `__` for the dot: `sennit.open("db", embedding__provider="none")`.
    `sources` adds your own sources by name, for recipes to use: a source, or a function that gets the backend and
    returns one. `rule` gets each caller and returns a filter; it can
    only narrow what that caller may see.
    """
    if settings is None:
        named = {key.replace("__", "."): value for key, value in overrides.items()}
        settings = load_settings(overrides=named)
    elif overrides:
        raise InvalidInput("Give either settings or single overrides, not both")
    return Database(path, settings, sources, rule)


def aopen(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    settings: Settings | None = None,
    sources: Mapping[str, Source] | None = None,
    rule: Rule | None = None,
    **overrides: object,
) -> OpeningDatabase:
    """Open a database whose methods are awaited: `async with sennit.aopen("notes.sennit") as db: await db.search("…")`.

    The other arguments are those of `sennit.open`. At most `threads` calls run at once, by default 8; further ones wait.
    """
    from sennit.engine.async_database import DEFAULT_THREADS, OpeningDatabase

    start = partial(open, path, settings=settings, sources=sources, rule=rule, **overrides)
    return OpeningDatabase(start, DEFAULT_THREADS if threads is None else threads)


def __getattr__(name: str) -> Any:
    if name != "AsyncDatabase":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # asyncio is not needed by a process that searches and ends.
    from sennit.engine.async_database import AsyncDatabase

    return AsyncDatabase
