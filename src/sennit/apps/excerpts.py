"""Excerpts of results: code as numbered lines, prose as its best sentences, with the words of the query marked."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sennit.analysis import index_terms, query_terms
from sennit.context.sanitize import sanitize_for_terminal
from sennit.records import OUTLINE_COLLECTION

if TYPE_CHECKING:
    from sennit.records import Record

CODE_LINES: Final = 5
"""Lines of code that are shown: a signature with what follows it."""

TABLE_ROWS: Final = 3
"""Rows of a table that are shown, with its heading."""

MAX_COMPARED_LINES: Final = 2_000
"""Lines of one text in which the best ones are looked for."""

ROW_CHARACTERS: Final = 40
"""What a line of code or of a table takes of the room, however short it is: it has a row of its own."""

LEAD_CHARACTERS: Final = 24
"""Characters shown before the first matching word, so that it is read in its sentence."""

TAB_SIZE: Final = 4

PROSE_LANGUAGES: Final = frozenset({"", "markdown", "mdx", "text", "html", "rst", "restructuredtext", "pdf"})
"""Values of `language` in the metadata of records that are read as sentences."""

PASSAGE_KIND: Final = "passage"
"""The kind of a passage that grep found, which is read as lines."""

ELLIPSIS: Final = "…"

GAP: Final = f" {ELLIPSIS} "
"""Between two sentences that do not follow each other."""

_MARKUP: Final = re.compile(r"\s*(#{1,6}\s|={3,}$|-{3,}$)")
_LIST_ITEM: Final = re.compile(r"\s*([-*+>]|\d+[.)])\s")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_TABLE_ROW: Final = re.compile(r"\s*\|")
_TABLE_RULE: Final = re.compile(r"\s*\|[\s:|-]+$")
_LINK: Final = re.compile(r'!?\[([^\[\]]*)\]\([^()\s]*(?: "[^"()]*")?\)')
_STRONG: Final = re.compile(r"\*\*(?=\S)([^*]+)(?<=\S)\*\*")
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+|(?<=[。！？])")
_WORD: Final = re.compile(r"\w+(?:[-'’]\w+)*")
_UNSPACED_SCRIPT: Final = "[\u0e00-\u0eff\u1000-\u11ff\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]"
"""Compiled on first use, and cached by `re`."""

Span = tuple[int, int]


class ExcerptLine(NamedTuple):
    """One line of an excerpt."""

    number: int | None
    """The line number in the file; None if the text has no numbers."""
    text: str
    spans: Sequence[Span]
    is_verbatim: bool = True
    """Whether it is a line of the text. Sentences are of several lines, and may be wrapped."""


@dataclass(frozen=True, slots=True)
class ExcerptOptions:
    """How much of a text is shown."""

    context: int | None = None
    """Lines before and after the best line; None for the usual excerpt."""
    full: bool = False


BEST_PART: Final = ExcerptOptions()


class QueryMatcher:
    """Finds the words of texts that match a query."""

    def __init__(self, query: str) -> None:
        self._wanted = {term.term for term in query_terms(query)}
        self._matches: dict[str, frozenset[str]] = {}

    def spans(self, text: str) -> list[Span]:
        """Return the spans of the words that match, in order and without overlap."""
        found: list[Span] = []
        for word in _WORD.finditer(text):
            if self._match(word[0]):
                if not word[0].isascii() and re.search(_UNSPACED_SCRIPT, word[0]):
                    found += _matches_in_run(word, self._wanted)
                else:
                    found.append(word.span())
        return found

    def terms(self, text: str) -> set[str]:
        """Return the terms of the query that a text has."""
        return {term for word in _WORD.finditer(text) for term in self._match(word[0])}

    def _match(self, word: str) -> frozenset[str]:
        found = self._matches.get(word)
        if found is None:
            found = self._matches[word] = frozenset(self._wanted.intersection(index_terms(word)))
        return found


def find_matches(text: str, query: str) -> list[Span]:
    """Return the spans of the words that match the query, in order and without overlap."""
    return QueryMatcher(query).spans(text)


def is_code(record: Record) -> bool:
    """Return whether a record is read as lines and not as sentences."""
    language = record.metadata.get("language")
    return record.kind == PASSAGE_KIND or (isinstance(language, str) and language not in PROSE_LANGUAGES)


def quotes_file(record: Record) -> bool:
    """Return whether a record's text is part of its file. The outline of a file of code describes it instead."""
    return record.collection != OUTLINE_COLLECTION


def make_excerpt(
    record: Record, text: str, query: str, characters: int, options: ExcerptOptions = BEST_PART
) -> list[ExcerptLine]:
    """Return the part of a record's text, or of its passage, that fits the query best.

    `characters` limits the passages of prose; lines of a file of code are limited by their number.
    """
    if is_code(record) or options != BEST_PART:
        return excerpt_lines(record, text, query, options)
    return best_passages(text, query, characters)


def excerpt_lines(record: Record, text: str, query: str, options: ExcerptOptions) -> list[ExcerptLine]:
    """Return the lines of a text to show, numbered where the record's lines are those of the text."""
    lines = [_clean_line(line) for line in text.split("\n")]
    first = 1
    numbered = (
        record.lines is not None
        and record.lines[1] - record.lines[0] + 1 >= len(lines)
        and quotes_file(record)
    )
    if numbered and record.lines is not None:
        first = record.lines[0]
    matcher = QueryMatcher(query)
    terms = [matcher.terms(line) for line in lines[:MAX_COMPARED_LINES]]
    terms += [set() for _ in lines[MAX_COMPARED_LINES:]]
    start, stop = _choose_lines(lines, terms, options)
    return [
        ExcerptLine(first + index if numbered else None, lines[index], matcher.spans(lines[index]))
        for index in range(start, stop)
    ]


def best_passages(
    text: str, query: str, characters: int, row_characters: int = ROW_CHARACTERS
) -> list[ExcerptLine]:
    """Return the sentences with the most words of the query in their order, and code and tables as lines.

    They have about so many characters. Sentences that are not separated by code are one line. The room that is left
    shows what follows the best passage.
    """
    matcher = QueryMatcher(query)
    blocks = [block.shorten(matcher, characters, row_characters) for block in _split_blocks(text)]
    if not blocks:
        return []
    terms = [set().union(*map(matcher.terms, block.lines)) for block in blocks]
    ranked = sorted(range(len(blocks)), key=lambda at: (-len(terms[at]), at))
    matching = [at for at in ranked[1:] if terms[at]]
    following = [at for at in range(ranked[0] + 1, len(blocks)) if not terms[at]]
    chosen = [ranked[0]]
    left = characters - blocks[ranked[0]].size(row_characters)
    for wanted in (matching, following):
        for at in wanted:
            size = blocks[at].size(row_characters) + len(GAP)
            if size > left:
                break
            chosen.append(at)
            left -= size
    return _join_blocks(blocks, sorted(chosen), matcher)


def best_sentence_line(text: str, query: str, characters: int) -> str:
    """Return the best passages of a text on one line."""
    lines = (line.text.strip() for line in best_passages(text, query, characters))
    return " ".join(filter(None, lines))


def highlight_spans(line: str, spans: Sequence[Span], style: Callable[[str], str]) -> str:
    """Return a line with its spans styled."""
    return "".join(style(part) if is_match else part for part, is_match in split_spans(line, spans))


def split_spans(line: str, spans: Sequence[Span]) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a line that are not empty, and whether each is one of its spans."""
    position = 0
    for first, last in spans:
        if position < first:
            yield line[position:first], False
        yield line[first:last], True
        position = last
    if position < len(line):
        yield line[position:], False


def crop(line: str, spans: Sequence[Span], width: int) -> str:
    """Return about `width` characters of a line, those with the most spans, with an ellipsis where it is cut."""
    if len(line) <= width:
        return line
    firsts, lasts = [first for first, _ in spans], [last for _, last in spans]
    starts = [max(0, min(first - LEAD_CHARACTERS, len(line) - width)) for first in firsts] or [0]

    def matches(start: int) -> int:
        return bisect_right(lasts, start + width) - bisect_left(firsts, start)

    start = max(starts, key=lambda start: (matches(start), -start))
    stop = start + width
    if start:
        # A word that is cut in two reads like another word; a text without blanks is cut anywhere.
        start = max(start, line.find(" ", start, start + LEAD_CHARACTERS) + 1)
    if stop < len(line):
        blank = line.rfind(" ", max(start, stop - LEAD_CHARACTERS), stop + 1)
        stop = blank if blank > start else stop
    return f"{ELLIPSIS if start else ''}{line[start:stop]}{ELLIPSIS if stop < len(line) else ''}"


@dataclass(frozen=True, slots=True)
class _Block:
    """A sentence or list item on one line, or the lines of a piece of code or of a table."""

    lines: tuple[str, ...]
    heading: str = ""
    """The first row of a table, which is not one of the lines."""
    is_verbatim: bool = False
    max_lines: int = CODE_LINES

    def size(self, row_characters: int) -> int:
        """Return how many characters of the room it takes."""
        return _rows_size(self.lines, row_characters) if self.is_verbatim else len(self.lines[0])

    def shorten(self, matcher: QueryMatcher, characters: int, row_characters: int) -> _Block:
        """Return the part of it that fits the query best and is not longer."""
        if not self.is_verbatim:
            line = self.lines[0]
            return self if len(line) <= characters else _Block((crop(line, matcher.spans(line), characters),))
        heading = (self.heading,) if self.heading and len(self.heading) < characters else ()
        left = characters - _rows_size(heading, row_characters)
        terms = [matcher.terms(line) for line in self.lines]
        size = self.max_lines
        start, stop = _best_window(self.lines, terms, size)
        while size > 1 and _rows_size(self.lines[start:stop], row_characters) > left:
            size -= 1
            start, stop = _best_window(self.lines, terms, size)
        lines = self.lines[start:stop]
        if len(lines) == 1 and len(lines[0]) > max(left, LEAD_CHARACTERS):
            lines = (crop(lines[0], matcher.spans(lines[0]), max(left, LEAD_CHARACTERS)),)
        return _Block((*heading, *lines), is_verbatim=True)


def _rows_size(lines: Sequence[str], row_characters: int) -> int:
    return sum(max(len(line), row_characters) for line in lines)


def _split_blocks(text: str) -> list[_Block]:
    """Return the sentences, list items, pieces of code and tables of a text, without headings."""
    out: list[_Block] = []
    paragraph: list[str] = []
    verbatim: list[str] = []
    headings: list[str] = []
    fence = ""

    def finish() -> None:
        joined = " ".join(paragraph)
        out.extend(_Block((one.strip(),)) for one in _SENTENCE_END.split(joined) if one.strip())
        paragraph.clear()
        if any(verbatim):
            out.append(_make_verbatim(verbatim))
        verbatim.clear()

    for raw in text.split("\n")[:MAX_COMPARED_LINES]:
        mark = _FENCE.match(raw)
        if fence:
            if mark and mark[1].startswith(fence):
                finish()
                fence = ""
            else:
                verbatim.append(_clean_line(raw))
            continue
        if bool(verbatim) != bool(_TABLE_ROW.match(raw)):
            finish()
        line = sanitize_for_terminal(_drop_markup(" ".join(raw.split())))
        if mark:
            finish()
            fence = mark[1]
        elif _TABLE_ROW.match(raw):
            verbatim.append(line)
        elif _MARKUP.match(raw):
            finish()
            headings.append(line.lstrip("# "))
        elif not line:
            finish()
        else:
            if _LIST_ITEM.match(raw):
                finish()
            paragraph.append(line)
    finish()
    return out or [_Block((one,)) for one in headings if one]


def _drop_markup(line: str) -> str:
    """Return a line of Markdown without the targets of its links and the signs of strong text."""
    return _STRONG.sub(r"\1", _LINK.sub(r"\1", line))


def _make_verbatim(lines: Sequence[str]) -> _Block:
    """Return the block of a piece of code or of a table, whose second row is a rule."""
    if len(lines) > 2 and _TABLE_ROW.match(lines[0]) and _TABLE_RULE.match(lines[1]):
        return _Block(tuple(lines[2:]), heading=lines[0], is_verbatim=True, max_lines=TABLE_ROWS)
    shown = textwrap.dedent("\n".join(lines)).strip("\n").split("\n")
    return _Block(tuple(line.rstrip() for line in shown), is_verbatim=True)


def _join_blocks(blocks: Sequence[_Block], chosen: Sequence[int], matcher: QueryMatcher) -> list[ExcerptLine]:
    """Return the lines of the chosen blocks, with an ellipsis between sentences that do not follow each other."""
    lines: list[tuple[str, bool]] = []
    previous = -1
    for at in chosen:
        block = blocks[at]
        if block.is_verbatim:
            lines += [(line, True) for line in block.lines]
        elif lines and not lines[-1][1]:
            joint = " " if at == previous + 1 else GAP
            lines[-1] = (f"{lines[-1][0]}{joint}{block.lines[0]}", False)
        else:
            lines.append((block.lines[0], False))
        previous = at
    if previous < len(blocks) - 1 and not lines[-1][1] and not lines[-1][0].endswith(ELLIPSIS):
        lines[-1] = (f"{lines[-1][0]} {ELLIPSIS}", False)
    return [ExcerptLine(None, line, matcher.spans(line), verbatim) for line, verbatim in lines]


def _choose_lines(lines: Sequence[str], terms: Sequence[set[str]], options: ExcerptOptions) -> Span:
    """Return which lines to show: all, those around the best line, or the best few. `terms` are those that match."""
    if options.full:
        return 0, len(lines)
    if options.context is not None:
        best = max(range(len(lines)), key=lambda at: (len(terms[at]), bool(lines[at]), -at))
        return max(0, best - options.context), min(len(lines), best + options.context + 1)
    return _best_window(lines, terms, CODE_LINES)


def _best_window(lines: Sequence[str], terms: Sequence[set[str]], size: int) -> Span:
    """Return the window of so many lines that has the most terms; the first, if none has any."""
    size = min(size, len(lines))
    starts = range(min(len(lines), MAX_COMPARED_LINES) - size + 1)

    def value(start: int) -> tuple[int, int, bool, int]:
        window = terms[start : start + size]
        # A window that begins with a line of code and its matches reads better than one that ends with them.
        return len(set().union(*window)), sum(map(len, window)), bool(terms[start]), -start

    start = max(starts, key=value)
    if not terms[start] and not any(terms[start : start + size]):
        start = 0
    while start < len(lines) - 1 and not lines[start]:
        start += 1
    return start, min(len(lines), start + size)


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


def _clean_line(line: str) -> str:
    """Return a line without control characters, with its indentation in blanks."""
    return sanitize_for_terminal(line.expandtabs(TAB_SIZE)).rstrip()
