"""Opening a database."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sennit.engine.database import Database
from sennit.errors import InvalidInput
from sennit.privacy import Rule
from sennit.settings import Settings, load
from sennit.sources.base import Source


def open(  # noqa: A001 - sennit.open is the name people use
    path: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    sources: Mapping[str, Source] | None = None,
    rule: Rule | None = None,
    **overrides: object,
) -> Database:
    """Open the database in a folder, which is created when missing; ":memory:" keeps nothing.

    `overrides` are settings by name with `__` for the dot: `sennit.open("db", embedding__provider="none")`.
    `sources` adds sources of your own by name, for recipes to use. `rule` is given each caller and returns a filter
    of what that caller may see at most: it can only take away.
    """
    if settings is None:
        named = {key.replace("__", "."): value for key, value in overrides.items()}
        settings = load(overrides=named)
    elif overrides:
        raise InvalidInput("Give either settings or single overrides, not both")
    return Database(path, settings, sources, rule)
