"""The keywords of the code that is open in an editor: few, each once, the most telling first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from sennit.errors import InvalidInput
from sennit.ingest.editor.generic import names_in
from sennit.ingest.editor.guessing import language_of
from sennit.ingest.editor.strudel import words_in

DEFAULT_LIMIT: Final = 10

MAX_CODE: Final = 100_000
"""Characters of an editor that are looked at; a person writes less, and a log file says nothing."""

MAX_WORD: Final = 64
"""A longer name is data."""

Rarity = Callable[[str], float]
"""The share of the corpus's documents that hold a word, 0 to 1."""


def editor_keywords(
    code: str, language: str | None = None, *, rarity: Rarity | None = None, limit: int = DEFAULT_LIMIT
) -> tuple[str, ...]:
    """Words that say what a piece of code is about: sounds, notes and functions for Strudel; else functions, types
    and imports.

    With `rarity`, the rarest in the corpus come first, and what the corpus does not have at all comes last. Without,
    one of each kind in turn, each kind in the order of the code. Half-typed code is fine; no code has no keywords.
    """
    if limit < 0:
        raise InvalidInput(f"The number of keywords must not be negative, not {limit}")
    code = code[:MAX_CODE]
    if not code.strip():
        return ()
    known = language_of(code, language)
    kinds = words_in(code) if known == "strudel" else names_in(code, known)
    words = _once(word for word in _in_turn(kinds) if 1 < len(word) <= MAX_WORD)
    if rarity is not None:
        # Sorting is stable: words that are equally rare stay in turn.
        shares = {word: rarity(word) for word in words}
        words.sort(key=lambda word: shares[word] or 2.0)
    return tuple(words[:limit])


def _in_turn(kinds: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in zip_longest(*kinds):
        yield from (word for word in row if word is not None)


def _once(words: Iterable[str]) -> list[str]:
    """Each word once, whatever its case; the first spelling stays."""
    first: dict[str, str] = {}
    for word in words:
        first.setdefault(word.casefold(), word)
    return list(first.values())
