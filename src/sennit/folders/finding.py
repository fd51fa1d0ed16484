"""Finding text in the files of folders: one pass of ripgrep, the best passages, cut out of their files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sennit.errors import NotFound
from sennit.folders.access import Folders
from sennit.folders.cutting import Cutting
from sennit.folders.grouping import Best
from sennit.folders.matching import Held, Matches, expressions, most_keywords
from sennit.folders.options import GrepOptions, checked
from sennit.folders.passages import GrepAnswer
from sennit.folders.ripgrep import Search, Sees, search, whole_lines

SEARCH_SHARE: Final = 0.8
"""Of the time; the rest is for cutting the passages out of the files."""

SPARE: Final = 10
"""Passages that take the place of those whose files cannot be read or have changed."""


def grep(
    roots: Sequence[Path],
    keywords: Sequence[str],
    options: GrepOptions | None = None,
    *,
    sees: Sees | None = None,
) -> GrepAnswer:
    """Find text in the files of some folders.

    A file that `sees` says no to is left out as if it were not there. Text comes from inside the folders only, also
    where a link is put there meanwhile.
    """
    options = options or GrepOptions()
    keywords = checked(keywords)
    started = time.monotonic()
    real = [_real(root) for root in roots]
    if not real:
        return GrepAnswer()
    deadline = started + options.seconds
    until = started + options.seconds * SEARCH_SHARE
    keep = options.max_passages + SPARE
    if whole_lines(keywords, options):
        found, best, held = _by_line(real, keywords, options, (until, deadline), sees)
    else:
        held = Matches(keywords, options)
        best = Best(keep, options.merge_within, held, most_keywords(keywords, options), len(keywords))
        found = search(real, keywords, options, best.take, deadline=until, sees=sees)
    cutting = Cutting(Folders(real), keywords, options, held, whole_lines(keywords, options))
    cutting.run(best.ranked(), deadline, more=best.more)
    return GrepAnswer(
        tuple(cutting.passages),
        found.files,
        best.matches,
        (*found.limits, *cutting.limits),
        (*found.skipped, *cutting.skipped),
        (time.monotonic() - started) * 1000,
    )


def _by_line(
    roots: Sequence[Path],
    keywords: Sequence[str],
    options: GrepOptions,
    deadlines: tuple[float, float],
    sees: Sees | None,
) -> tuple[Search, Best, Mapping[bytes, Held]]:
    """Several expressions: first the lines, then which of the expressions are in them."""
    bodies: dict[str, bytes] = {}
    found = search(roots, keywords, options, bodies.__setitem__, deadline=deadlines[0], sees=sees)
    held, all_told = expressions(keywords, options, bodies.values(), deadlines[1])
    if not all_told:
        found.limits.append("There was no time to tell of all matches which expressions they are of.")
    best = Best(options.max_passages + SPARE, options.merge_within, held)
    for path, body in bodies.items():
        best.take(path, body)
    return found, best, held


def _real(root: Path) -> Path:
    try:
        return Path(root).resolve(strict=True)
    except (OSError, RuntimeError):
        raise NotFound(f"There is no folder {str(root)!r} to search in.") from None
