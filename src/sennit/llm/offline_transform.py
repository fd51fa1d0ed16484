"""Turn a question into keywords without a language model, from the question and the corpus.

`python -m benchmarks.transform` measures it; docs/design/docs-recipe.md has the figures. Pseudo-relevance feedback (words
that co-occur with the question in the best records) was measured too. It made answers worse, so it is not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from sennit.analysis.keywords import extract_keywords

Share = Callable[[str], float]
"""Returns the share of records that hold a word, from 0 to 1."""

MAX_KEYWORDS: Final = 32
MIN_CORRECTED_LETTERS: Final = 5
"""A shorter word has too many neighbours at one edit to be sure of one."""

MAX_CORRECTED_LETTERS: Final = 24
MAX_CORRECTIONS: Final = 3
"""Corrected words of one question: each costs a few hundred lookups."""

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def append_keywords(query: str, share: Share) -> str:
    """Return the question followed by its keywords, which measured better than either alone."""
    return f"{query} {make_keywords(query, share)}" if query.strip() else query


def make_keywords(query: str, share: Share) -> str:
    """Return the keywords of a question, with identifiers split and misspelt words corrected from the corpus."""
    corrections = MAX_CORRECTIONS
    keywords: list[str] = []
    for word in extract_keywords(query, share, MAX_KEYWORDS):
        if corrections and _is_correctable(word) and not share(word):
            corrections -= 1
            word = correct_spelling(word, share)
        keywords += [word, *identifier_parts(word)]
    return " ".join(dict.fromkeys(keywords)) or query


def identifier_parts(word: str) -> list[str]:
    """Return the parts of an identifier: `retryBackoff` has retry and backoff; a plain word has none."""
    parts = [part.lower() for part in _PARTS.findall(word)]
    return parts if len(parts) > 1 else []


def correct_spelling(word: str, share: Share) -> str:
    """Return the most frequent word of the corpus at one edit from this one, or the word itself."""
    best, best_share = word, 0.0
    for other in sorted(set(_one_edit(word.lower()))):
        other_share = share(other)
        if other_share > best_share:
            best, best_share = other, other_share
    return best


def _is_correctable(word: str) -> bool:
    return (
        word.isascii()
        and word.isalpha()
        and MIN_CORRECTED_LETTERS <= len(word) <= MAX_CORRECTED_LETTERS
        and not identifier_parts(word)
    )


def _one_edit(word: str) -> Iterator[str]:
    """Yield the word with one letter removed, added or replaced, or two letters swapped."""
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        for letter in _ALPHABET:
            yield head + letter + tail
            if tail:
                yield head + letter + tail[1:]
        if tail:
            yield head + tail[1:]
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
