"""The status message after a search: how much it returned, from how many chunks or files, and how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sennit.results import SearchResult

if TYPE_CHECKING:
    from sennit.folders.passages import GrepResult

ONLY_NEAREST: Final = "Nothing fits; these are the nearest"
"""What a person reads above the hits of a result in which no hit fits the query."""


def status_message(result: SearchResult | GrepResult) -> str:
    """Return `1,234 characters, 5 chunks found, 4 ms` for a search; for a grep, the files matched."""
    if isinstance(result, SearchResult):
        characters = sum(len(hit.passage) for hit in result)
        found = f"{_count_noun(len(result), 'chunk')} found"
    else:
        characters = sum(len(passage.text) for passage in result.passages)
        found = f"{_count_noun(result.files, 'file')} matched"
    return f"{_count_noun(characters, 'character')}, {found}, {_format_duration(result.milliseconds)}"


def _count_noun(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _format_duration(milliseconds: float) -> str:
    return "<1 ms" if milliseconds < 1 else f"{milliseconds:,.0f} ms"
