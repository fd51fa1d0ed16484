"""Snippets: a short piece of a text around the words of the query, with those words highlighted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from sennit.analysis import index_terms, query_terms
from sennit.apps.cli.output import one_line

LEAD_CHARACTERS: Final = 24
"""Characters shown before the first matching word, so that it is read in its sentence."""

_WORD: Final = re.compile(r"\w+(?:[-'’]\w+)*")
_UNSPACED_SCRIPT: Final = "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]"
"""Compiled on first use, and cached by `re`."""

Span = tuple[int, int]


def make_snippet(text: str, query: str, width: int, highlight: Callable[[str], str]) -> str:
    """Return at most `width` characters of the text on one line; `highlight` styles the words of the query."""
    line = one_line(text[: 100 * width] if len(text) > 100 * width else text)
    spans = find_matches(line, query)
    start, stop = _window(len(line), spans, width)
    pieces = ["…" if start else ""]
    position = start
    for first, last in spans:
        first, last = max(first, position), min(last, stop)
        if first < last:
            pieces += [line[position:first], highlight(line[first:last])]
            position = last
    pieces += [line[position:stop], "…" if stop < len(line) else ""]
    return "".join(pieces)


def crop(line: str, spans: list[Span], width: int) -> str:
    """Return about `width` characters of a line, those with the most spans, with an ellipsis where it is cut."""
    start, stop = _window(len(line), spans, width)
    return f"{'…' if start else ''}{line[start:stop]}{'…' if stop < len(line) else ''}"


def find_matches(text: str, query: str) -> list[Span]:
    """Return the spans of the words that match the query, in order and without overlap."""
    wanted_terms = {term.term for term in query_terms(query)}
    found: list[Span] = []
    for word in _WORD.finditer(text):
        if not wanted_terms.isdisjoint(_terms_of(word[0])):
            if not word[0].isascii() and re.search(_UNSPACED_SCRIPT, word[0]):
                found += _matches_in_run(word, wanted_terms)
            else:
                found.append(word.span())
    return found


@lru_cache(maxsize=4096)
def _terms_of(word: str) -> frozenset[str]:
    """The terms of a word; the sentences of a result share most of their words."""
    return frozenset(index_terms(word))


def matched_terms(text: str, spans: Sequence[Span], query: str) -> set[str]:
    """Return the terms of the query that the spans of a text match."""
    wanted_terms = {term.term for term in query_terms(query)} if spans else set()
    return {term for first, last in spans for term in index_terms(text[first:last])} & wanted_terms


def _matches_in_run(word: re.Match[str], wanted_terms: set[str]) -> list[Span]:
    """Return the parts of a run of unspaced text (Chinese, Japanese, Thai) that match the query."""
    covered = [False] * len(word[0])
    # The analyzer yields bigrams and their single characters; bigrams are the more precise match.
    bigrams = {term for term in wanted_terms if len(term) > 1 and term in word[0]}
    for term in bigrams or wanted_terms:
        for found in re.finditer(f"(?={re.escape(term)})", word[0]):
            covered[found.start() : found.start() + len(term)] = [True] * len(term)
    spans = re.finditer("1+", "".join("1" if here else "0" for here in covered))
    return [(word.start() + span.start(), word.start() + span.end()) for span in spans]


def _window(length: int, spans: list[Span], width: int) -> Span:
    """Return the window that shows the most spans; the earliest, if several show as many."""
    if length <= width:
        return 0, length
    starts = [max(0, min(first - LEAD_CHARACTERS, length - width)) for first, _ in spans] or [0]
    best = max(starts, key=lambda start: (sum(start <= a and b <= start + width for a, b in spans), -start))
    return best, best + width
