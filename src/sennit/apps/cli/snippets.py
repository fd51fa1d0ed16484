"""A short piece of a record's text around the words of the question, and where those words are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from sennit.analysis import query_terms, terms
from sennit.apps.cli.output import one_line

LEAD: Final = 24
"""Characters kept before the first word that was asked for, so that it is read in its sentence."""

_WORD: Final = re.compile(r"\w+(?:[-'’]\w+)*")
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]"
)

Span = tuple[int, int]


def snippet(text: str, query: str, width: int, mark: Callable[[str], str]) -> str:
    """At most `width` characters of the text on one line, with the words of the query marked."""
    line = one_line(text[: 100 * width] if len(text) > 100 * width else text)
    spans = matches(line, query)
    start, stop = _window(len(line), spans, width)
    pieces = ["…" if start else ""]
    at = start
    for first, last in spans:
        first, last = max(first, at), min(last, stop)
        if first < last:
            pieces += [line[at:first], mark(line[first:last])]
            at = last
    pieces += [line[at:stop], "…" if stop < len(line) else ""]
    return "".join(pieces)


def matches(text: str, query: str) -> list[Span]:
    """Where the text says what the query asks for, ascending and apart."""
    wanted = {term.term for term in query_terms(query)}
    found: list[Span] = []
    for word in _WORD.finditer(text):
        if not wanted.isdisjoint(terms(word[0])):
            if _UNSPACED.search(word[0]):
                found += _inside(word, wanted)
            else:
                found.append(word.span())
    return found


def _inside(word: re.Match[str], wanted: set[str]) -> list[Span]:
    """The parts of a run without spaces that the query names."""
    covered = [False] * len(word[0])
    # Pairs say more than single characters, which every pair also brings along.
    pairs = {term for term in wanted if len(term) > 1 and term in word[0]}
    for term in pairs or wanted:
        for found in re.finditer(f"(?={re.escape(term)})", word[0]):
            covered[found.start() : found.start() + len(term)] = [True] * len(term)
    spans = re.finditer("1+", "".join("1" if here else "0" for here in covered))
    return [(word.start() + span.start(), word.start() + span.end()) for span in spans]


def _window(length: int, spans: list[Span], width: int) -> Span:
    """The stretch that shows most of the spans; the first of several."""
    if length <= width:
        return 0, length
    starts = [max(0, min(first - LEAD, length - width)) for first, _ in spans] or [0]
    best = max(starts, key=lambda start: (sum(start <= a and b <= start + width for a, b in spans), -start))
    return best, best + width
