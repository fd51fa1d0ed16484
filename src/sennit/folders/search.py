"""Exact text search in folders: ripgrep finds the matches, and the best passages are read from the files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sennit.errors import NotFound
from sennit.folders.access import Folders
from sennit.folders.matches import (
    KeywordMatch,
    MatchCache,
    TopGroups,
    keyword_upper_bound,
    match_expressions,
)
from sennit.folders.options import GrepOptions, check_keywords
from sennit.folders.passage_reader import PassageReader
from sennit.folders.passages import GrepResult
from sennit.folders.ripgrep import IsVisible, RipgrepSummary, needs_whole_lines, run_ripgrep

SEARCH_TIME_SHARE: Final = 0.8
"""The share of the time for ripgrep. The rest is for reading the passages from the files."""

SPARE_GROUPS: Final = 10
"""Extra groups, which replace those whose files cannot be read or have changed."""


def grep(
    roots: Sequence[Path],
    keywords: Sequence[str],
    options: GrepOptions | None = None,
    *,
    is_visible: IsVisible | None = None,
) -> GrepResult:
    """Find text in the files of some folders.

    If `is_visible` returns false for a file, the search behaves as if it did not exist. Text only comes from inside the
    folders, even if a file is replaced by a link during the search.
    """
    options = options or GrepOptions()
    keywords = check_keywords(keywords)
    started = time.monotonic()
    real_roots = [_resolve(root) for root in roots]
    if not real_roots:
        return GrepResult()
    deadline = started + options.seconds
    search_deadline = started + options.seconds * SEARCH_TIME_SHARE
    whole_lines = needs_whole_lines(keywords, options)
    if whole_lines:
        deadlines = (search_deadline, deadline)
        summary, groups, found = _search_lines(real_roots, keywords, options, deadlines, is_visible)
    else:
        found = MatchCache(keywords, options)
        groups = TopGroups(
            options.max_passages + SPARE_GROUPS,
            options.merge_within,
            found,
            keyword_upper_bound(keywords, options),
            len(keywords),
        )
        summary = run_ripgrep(
            real_roots, keywords, options, groups.add_file, deadline=search_deadline, is_visible=is_visible
        )
    reader = PassageReader(Folders(real_roots), keywords, options, found, whole_lines)
    reader.read_passages(groups.ranked(), deadline, has_more=groups.has_more)
    return GrepResult(
        tuple(reader.passages),
        summary.files,
        groups.matches,
        (*summary.limits, *reader.limits),
        (*summary.skipped, *reader.skipped),
        (time.monotonic() - started) * 1000,
    )


def _search_lines(
    roots: Sequence[Path],
    keywords: Sequence[str],
    options: GrepOptions,
    deadlines: tuple[float, float],
    is_visible: IsVisible | None,
) -> tuple[RipgrepSummary, TopGroups, Mapping[bytes, KeywordMatch]]:
    """Search for several regular expressions: find the lines first, then the expressions in each line."""
    bodies: dict[str, bytes] = {}
    summary = run_ripgrep(
        roots, keywords, options, bodies.__setitem__, deadline=deadlines[0], is_visible=is_visible
    )
    found, is_complete = match_expressions(keywords, options, bodies.values(), deadlines[1])
    if not is_complete:
        summary.limits.append("The time was too short to find which expressions each match belongs to.")
    groups = TopGroups(options.max_passages + SPARE_GROUPS, options.merge_within, found)
    for path, body in bodies.items():
        groups.add_file(path, body)
    return summary, groups, found


def _resolve(root: Path) -> Path:
    try:
        return Path(root).resolve(strict=True)
    except (OSError, RuntimeError):
        raise NotFound(f"There is no folder {str(root)!r} to search in.") from None
