"""The home of the user, and where sennit keeps, outside of a database, what it can make or fetch again."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def home_folder(env: Mapping[str, str] | None = None) -> Path:
    """Return the user's home. Who has none, as in a container, gets the root folder, where others cannot write."""
    given = (os.environ if env is None else env).get("HOME")
    try:
        home = Path(given) if given else Path.home()
    except RuntimeError:
        home = Path()
    return home if home.is_absolute() else Path(os.sep)


def expand_home(path: str | Path) -> Path:
    """Return a path with its `~` replaced. Where nobody knows that home, it stays, and names a file not found."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 - the one of Path raises an error


def cache_folder(name: str, variable: str) -> Path:
    """Return the folder that an environment variable names, or one in the user's cache. It may not exist yet."""
    chosen = os.environ.get(variable)
    if chosen:
        return expand_home(chosen)
    if sys.platform == "darwin":
        cache = home_folder() / "Library" / "Caches"
    elif sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or home_folder() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or home_folder() / ".cache")
    return cache / "sennit" / name
