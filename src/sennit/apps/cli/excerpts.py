"""Excerpts of results: code as numbered lines, prose as its best sentences, with the matches highlighted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sennit.apps.cli.snippets import Span, crop, find_matches, matched_terms
from sennit.context.sanitize import sanitize_for_terminal
from sennit.recipes.builtin import OUTLINES

if TYPE_CHECKING:
    from sennit.records import Record

CODE_LINES: Final = 5
"""Lines of code that are shown: a signature with what follows it."""

MAX_COMPARED_LINES: Final = 2_000
"""Lines of one text in which the best ones are looked for."""

TAB_SIZE: Final = 4

PROSE_LANGUAGES: Final = frozenset({"", "markdown", "mdx", "text", "html", "rst", "restructuredtext", "pdf"})
"""Values of `language` in the metadata of records that are read as sentences."""

PASSAGE_KIND: Final = "passage"
"""The kind of a passage that grep found, which is read as lines."""

_MARKUP: Final = re.compile(r"\s*(#{1,6}\s|```|~~~|={3,}$|-{3,}$)")
_LIST_ITEM: Final = re.compile(r"\s*([-*+|>]|\d+[.)])\s")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])")


class ExcerptLine(NamedTuple):
    """One line of an excerpt."""

    number: int | None
    """The line number in the file; None if the text has no numbers."""
    text: str
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class ExcerptOptions:
    """How much of a text is shown."""

    context: int | None = None
    """Lines before and after the best line; None for the usual excerpt."""
    full: bool = False


def is_code(record: Record) -> bool:
    """Return whether a record is read as lines and not as sentences."""
    language = record.metadata.get("language")
    return record.kind == PASSAGE_KIND or (isinstance(language, str) and language not in PROSE_LANGUAGES)


def quotes_file(record: Record) -> bool:
    """Return whether a record's text is part of its file. The outline of a file of code describes it instead."""
    return record.collection != OUTLINES


def excerpt_lines(record: Record, text: str, query: str, options: ExcerptOptions) -> list[ExcerptLine]:
    """Return the lines of a text to show, numbered where the record's lines are those of the text."""
    lines = [sanitize_for_terminal(line.expandtabs(TAB_SIZE)).rstrip() for line in text.split("\n")]
    first = 1
    numbered = (
        record.lines is not None
        and record.lines[1] - record.lines[0] + 1 >= len(lines)
        and quotes_file(record)
    )
    if numbered and record.lines is not None:
        first = record.lines[0]
    spans = [find_matches(line, query) for line in lines[:MAX_COMPARED_LINES]]
    spans += [[] for _ in lines[MAX_COMPARED_LINES:]]
    terms = [matched_terms(line, found, query) for line, found in zip(lines, spans, strict=True)]
    start, stop = _choose(lines, terms, options)
    return [
        ExcerptLine(first + index if numbered else None, lines[index], spans[index])
        for index in range(start, stop)
    ]


def _choose(lines: Sequence[str], words: Sequence[set[str]], options: ExcerptOptions) -> Span:
    """Return which lines to show: all, those around the best line, or the best few. `words` are those that match."""
    if options.full:
        return 0, len(lines)
    if options.context is not None:
        best = max(range(len(lines)), key=lambda at: (len(words[at]), bool(lines[at]), -at))
        return max(0, best - options.context), min(len(lines), best + options.context + 1)
    size = min(CODE_LINES, len(lines))
    starts = range(min(len(lines), MAX_COMPARED_LINES) - size + 1)

    def value(start: int) -> tuple[int, int, bool, int]:
        window = words[start : start + size]
        # A window that begins with a line of code and its matches reads better than one that ends with them.
        return len(set().union(*window)), sum(map(len, window)), bool(words[start]), -start

    start = max(starts, key=value)
    if not words[start] and not any(words[start : start + size]):
        start = 0
    while start < len(lines) - 1 and not lines[start]:
        start += 1
    return start, min(len(lines), start + size)


def best_sentences(text: str, query: str, characters: int) -> str:
    """Return the sentences with the most words of the query, in their order; about so many characters."""
    sentences = _split_sentences(text)
    if not sentences:
        return ""
    words = [matched_terms(one, find_matches(one, query), query) for one in sentences]
    ranked = sorted(range(len(sentences)), key=lambda at: (-len(words[at]), at))
    if len(sentences[ranked[0]]) > characters:
        return crop(sentences[ranked[0]], find_matches(sentences[ranked[0]], query), characters)
    chosen: list[int] = []
    left = characters
    for at in ranked:
        if len(sentences[at]) > left:
            break
        if chosen and not words[at] and at != chosen[-1] + 1:
            # Without a word of the query, only what follows is worth reading.
            break
        chosen.append(at)
        left -= len(sentences[at]) + 3
    out = ""
    for position, at in enumerate(sorted(chosen)):
        joint = "" if not position else " " if at == sorted(chosen)[position - 1] + 1 else " … "
        out += joint + sentences[at]
    return out if max(chosen) == len(sentences) - 1 else f"{out} …"


def _split_sentences(text: str) -> list[str]:
    """Return the sentences and list items of a text, each on one line, without headings."""
    out: list[str] = []
    paragraph: list[str] = []
    headings: list[str] = []

    def finish() -> None:
        joined = " ".join(paragraph)
        out.extend(filter(None, (one.strip() for one in _SENTENCE_END.split(joined))))
        paragraph.clear()

    for raw in text.split("\n")[:MAX_COMPARED_LINES]:
        line = sanitize_for_terminal(" ".join(raw.split()))
        if _MARKUP.match(raw):
            finish()
            headings.append(line.lstrip("# "))
        elif not line:
            finish()
        else:
            if _LIST_ITEM.match(raw):
                finish()
            paragraph.append(line)
    finish()
    return out or [one for one in headings if one]


def highlight_spans(line: str, spans: Sequence[Span], style: Callable[[str], str]) -> str:
    """Return a line with its spans styled."""
    pieces = []
    position = 0
    for first, last in spans:
        pieces += [line[position:first], style(line[first:last])]
        position = last
    return "".join([*pieces, line[position:]])
