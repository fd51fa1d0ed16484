"""The paths that people and programs give for a file, and the path that its records have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def stored_paths(path: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the paths under which the records of a file may be stored, the likeliest first.

    A relative path counts from the current folder, then from the indexed folders.
    """
    found = [path]
    for base in (Path.cwd(), *folders):
        try:
            found.append(os.path.realpath(base / path))
        except ValueError:  # a path with a zero byte is that of no file
            break
    return tuple(dict.fromkeys(found))
