"""The status message after a search: how much came back, from how many places, and how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sennit.results import Result

if TYPE_CHECKING:
    from sennit.folders.passages import GrepAnswer


def status(answer: Result | GrepAnswer) -> str:
    """`1,234 characters, 5 chunks found, 4 ms` after a search; files matched after a grep."""
    if isinstance(answer, Result):
        characters = sum(len(hit.passage) for hit in answer)
        found = f"{_counted(len(answer), 'chunk')} found"
    else:
        characters = sum(len(passage.text) for passage in answer.passages)
        found = f"{_counted(answer.files, 'file')} matched"
    return f"{_counted(characters, 'character')}, {found}, {_duration(answer.milliseconds)}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _duration(milliseconds: float) -> str:
    return "<1 ms" if milliseconds < 1 else f"{milliseconds:,.0f} ms"
