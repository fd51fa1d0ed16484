"""Glob patterns that select the files of a search. They work as in .gitignore, relative to the searched folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from sennit.errors import InvalidInput

MAX_GLOBS: Final = 1000
"""The most patterns, after {a,b} is expanded."""

_BRACES: Final = re.compile(r"\{([^{}]*)\}")

FileFilter = Callable[[str], bool]
"""Whether a search includes the file at an absolute path."""


def expand_globs(globs: Sequence[str]) -> tuple[str, ...]:
    """Expand every {a,b} in the patterns; raises InvalidInput for what is not a pattern."""
    out: list[str] = []
    for glob in globs:
        if not isinstance(glob, str) or not glob.strip("! \t") or "\0" in glob or "\n" in glob:
            raise InvalidInput(f"A glob is a pattern such as '*.md', 'docs/**' or '!build/', not {glob!r}")
        for expanded in _expand_braces(glob):
            out.append(expanded)
            if len(out) > MAX_GLOBS:
                raise InvalidInput(
                    f"{glob!r} expands to more than {MAX_GLOBS:,} patterns; use fewer alternatives."
                )
    return tuple(out)


def match_names_only(globs: Sequence[str]) -> bool:
    """Whether some patterns include files, and all of these match by the name of a file alone."""
    including = [glob for glob in globs if not glob.startswith("!")]
    return bool(including) and not any("/" in glob or "\\" in glob for glob in including)


def glob_filter(roots: Sequence[Path], globs: Sequence[str], *, hidden: bool) -> FileFilter | None:
    """A filter by the patterns, of which the last that matches decides; None if there are no patterns.

    A pattern includes files, and `!pattern` excludes files and folders. Hidden files stay hidden. ripgrep's own globs
    would include again what .gitignore and the leading dot exclude.
    """
    if not globs:
        return None
    # A local import: sennit.ingest is large, and most searches have no patterns.
    from sennit.ingest.ignore import IgnoreRules

    rules = IgnoreRules(globs)
    has_including = any(not glob.startswith("!") for glob in globs)
    prefixes = sorted((f"{str(root).rstrip(os.sep)}{os.sep}" for root in roots), key=len, reverse=True)

    def includes(path: str) -> bool:
        prefix = next((prefix for prefix in prefixes if path.startswith(prefix)), None)
        # If the root is a single file, the patterns see only its name.
        names = Path(path).parts[-1:] if prefix is None else Path(path[len(prefix) :]).parts
        if not hidden and any(name.startswith(".") for name in names):
            return False
        for depth in range(1, len(names)):
            if rules.decide("/".join(names[:depth]), names[depth - 1], is_folder=True) is False:
                return False
        decided = rules.decide("/".join(names), names[-1], is_folder=False)
        return decided if decided is not None else not has_including

    return includes


def _expand_braces(glob: str) -> Iterator[str]:
    found = _BRACES.search(glob)
    if found is None:
        yield glob
        return
    for choice in found[1].split(","):
        yield from _expand_braces(f"{glob[: found.start()]}{choice}{glob[found.end() :]}")
