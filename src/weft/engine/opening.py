"""Opening a database."""

from __future__ import annotations

import os
from collections.abc import Mapping

from weft.engine.weft import Weft
from weft.errors import InvalidInput
from weft.privacy import Rule
from weft.settings import Settings, load
from weft.sources.base import Source


def open(  # noqa: A001 - weft.open is the name people use
    path: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    sources: Mapping[str, Source] | None = None,
    rule: Rule | None = None,
    **overrides: object,
) -> Weft:
    """Open the database in a folder, which is created when missing; ":memory:" keeps nothing.

    `overrides` are settings by name with `__` for the dot: `weft.open("db", embedding__provider="none")`.
    `sources` adds sources of your own by name, for recipes to use. `rule` is given each caller and returns a filter
    of what that caller may see at most: it can only take away.
    """
    if settings is None:
        named = {key.replace("__", "."): value for key, value in overrides.items()}
        settings = load(overrides=named)
    elif overrides:
        raise InvalidInput("Give either settings or single overrides, not both")
    return Weft(path, settings, sources, rule)
