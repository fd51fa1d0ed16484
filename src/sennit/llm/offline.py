"""Keywords of a question without a language model: from the question, and from the corpus itself.

What it does is measured by `python -m benchmarks.transform`; docs/docs-recipe.md has the figures. Words that stand
beside the question in the best records (pseudo-relevance feedback) were measured too, made answers worse, and are
not here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from sennit.analysis.keywords import extract_keywords

Share = Callable[[str], float]
"""The share of records that hold a word, from 0 to 1."""

MOST_WORDS: Final = 32
SHORTEST: Final = 5
"""Letters; a shorter word has too many neighbours to be sure of one."""

LONGEST: Final = 24
MOST_CORRECTED: Final = 3
"""Words of one question: each costs a few hundred look-ups."""

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def widened(query: str, share: Share) -> str:
    """A question with its keywords behind it: measured, that is better than either alone."""
    return f"{query} {keywords(query, share)}" if query.strip() else query


def keywords(query: str, share: Share) -> str:
    """The telling words of a question, names also in parts, and misspelt words as the corpus spells them."""
    corrections = MOST_CORRECTED
    out: list[str] = []
    for word in extract_keywords(query, share, MOST_WORDS):
        if corrections and _correctable(word) and not share(word):
            corrections -= 1
            word = corrected(word, share)
        out += [word, *parts_of(word)]
    return " ".join(dict.fromkeys(out)) or query


def parts_of(word: str) -> list[str]:
    """The parts of a name: `retryBackoff` has retry and backoff; a plain word has none."""
    parts = [part.lower() for part in _PARTS.findall(word)]
    return parts if len(parts) > 1 else []


def corrected(word: str, share: Share) -> str:
    """The most frequent word of the corpus that is one slip away; the word itself when there is none."""
    best, most = word, 0.0
    for other in sorted(set(_one_slip(word.lower()))):
        found = share(other)
        if found > most:
            best, most = other, found
    return best


def _correctable(word: str) -> bool:
    return word.isascii() and word.isalpha() and SHORTEST <= len(word) <= LONGEST and not parts_of(word)


def _one_slip(word: str) -> Iterator[str]:
    """A letter left out, added, replaced, or two swapped."""
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
