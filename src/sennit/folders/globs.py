"""Which files a search wants: patterns as in .gitignore, relative to the folder that is searched."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from sennit.errors import InvalidInput

MAX_GLOBS: Final = 1000
"""Patterns, after {a,b} has become two of them."""

_CHOICE: Final = re.compile(r"\{([^{}]*)\}")

Wanted = Callable[[str], bool]
"""Whether the file at an absolute path is wanted."""


def expanded(globs: Sequence[str]) -> tuple[str, ...]:
    """The patterns with every {a,b} written out."""
    out: list[str] = []
    for glob in globs:
        if not isinstance(glob, str) or not glob.strip("! \t") or "\0" in glob or "\n" in glob:
            raise InvalidInput(f"A glob is a pattern such as '*.md', 'docs/**' or '!build/', not {glob!r}")
        for one in _choices(glob):
            out.append(one)
            if len(out) > MAX_GLOBS:
                raise InvalidInput(f"{glob!r} makes more than {MAX_GLOBS:,} patterns; use fewer choices.")
    return tuple(out)


def names_only(globs: Sequence[str]) -> bool:
    """Whether some patterns say what to take and all of those go by the name of a file alone."""
    taking = [glob for glob in globs if not glob.startswith("!")]
    return bool(taking) and not any("/" in glob or "\\" in glob for glob in taking)


def wanted(roots: Sequence[Path], globs: Sequence[str], *, hidden: bool) -> Wanted | None:
    """Decides by the patterns, of which the last that matches counts; None when every file is wanted.

    A pattern takes files and `!pattern` leaves out files and folders. What is hidden stays hidden: ripgrep's own
    globs would bring back what .gitignore and the leading dot leave out.
    """
    if not globs:
        return None
    # Here and not above: the package around it is large, and most searches have no patterns.
    from sennit.ingest.ignore import Rules

    rules = Rules(globs)
    taking = any(not glob.startswith("!") for glob in globs)
    starts = sorted((f"{str(root).rstrip(os.sep)}{os.sep}" for root in roots), key=len, reverse=True)

    def decide(path: str) -> bool:
        start = next((start for start in starts if path.startswith(start)), None)
        # A root that is a file has no folder of its own: its name is all that the patterns see.
        names = Path(path).parts[-1:] if start is None else Path(path[len(start) :]).parts
        if not hidden and any(name.startswith(".") for name in names):
            return False
        for depth in range(1, len(names)):
            if rules.decide("/".join(names[:depth]), names[depth - 1], folder=True) is False:
                return False
        decided = rules.decide("/".join(names), names[-1], folder=False)
        return decided if decided is not None else not taking

    return decide


def _choices(glob: str) -> Iterator[str]:
    found = _CHOICE.search(glob)
    if found is None:
        yield glob
        return
    for choice in found[1].split(","):
        yield from _choices(f"{glob[: found.start()]}{choice}{glob[found.end() :]}")
