"""Where sennit keeps, outside of a database, what it can make or fetch again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder(name: str, variable: str) -> Path:
    """Return the folder that an environment variable names, or one in the user's cache. It may not exist yet."""
    chosen = os.environ.get(variable)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "sennit" / name
