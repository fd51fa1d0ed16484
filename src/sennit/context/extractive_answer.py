"""An answer without a language model: the statements found that answer the question, and what they introduce.

A statement is a sentence, an item of a list or a row of a table. A statement that announces a list or code comes with
it. If no passage covers enough of the question, the answer is that nothing fits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sennit.analysis import content_terms
from sennit.context.citations import Citation
from sennit.context.prompt import PromptPassage
from sennit.context.sanitize import one_line, sanitize, truncate
from sennit.records import Record

MAX_STATEMENTS: Final = 4
MAX_STATEMENT_CHARACTERS: Final = 400

MAX_LIST_ITEMS: Final = 10
MAX_ITEM_CHARACTERS: Final = 200
MAX_CODE_LINES: Final = 20

REPEATED_WORD_WEIGHT: Final = 0.3
"""The weight of a query word that an earlier statement already had."""

TITLE_WORD_WEIGHT: Final = 0.3
"""The weight of a query word that only the title above a statement has."""

POSITION_DISCOUNT: Final = 0.04
"""The discount for each statement before this one in its passage: definitions come first."""

MIN_GAIN_SHARE: Final = 0.4
"""A further statement must gain at least this share of what the first gained."""

BASE_GAIN: Final = 0.05
"""The gain of a statement without a word of the question: the vector search found it."""

NUMBER_FACTOR: Final = 1.6
"""For a statement with a number where the question asks for one; its inverse for one without."""

CODE_FACTOR: Final = 1.2
"""For a statement that announces code where the question asks how to do something."""

MIN_COVERAGE: Final = 0.4
"""The share of the question's information that a passage must have to fit by its words."""

MIN_SIMILARITY: Final = 0.25
"""The cosine that a passage must have to fit by its meaning, with the static model. In benchmarks/answers the nearest
passage of a question from another subject has at most .18, that of an answerable one at least .27."""

CODE_DISTANCE: Final = 2
"""Statements between one and the code that still belongs to it, where the question asks how to do something."""

NOTHING_FITS: Final = "Nothing fits the question."

Weight = Callable[[str], float]
"""Returns how informative a term is; 0 for a term that is everywhere."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_NO_PROSE: Final = re.compile(r"[ \t]*(?:#|<|:::|!!!|\[!\w+\]|import |export )")
_UNDERLINED: Final = re.compile(r"^[^\n]*\n {0,3}(?:=+|-{3,})[ \t]*$", re.M)
_QUOTE: Final = re.compile(r"^[ \t]*>[ \t]?", re.M)
_BULLET: Final = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+")
_TABLE_ROW: Final = re.compile(r"[ \t]*\|.*\|[ \t]*$")
_TABLE_RULE: Final = re.compile(r"[ \t]*\|(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*$")
_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`*_]*[A-Z0-9`])|(?<=[。！？])")
_LETTERS: Final = re.compile(r"\w")
_BACKTICKS: Final = re.compile(r"(?P<code>(?<!`)(?P<run>`+)(?!`).*?(?<!`)(?P=run)(?!`))|`")
"""Inline code, or a backtick outside of it."""

_NUMBERED: Final = re.compile(r"\[\^?(\d[\d ,;\u2013-]*)\]")
_ASKS_FOR_NUMBER: Final = re.compile(
    r"\bhow (?:many|much|long|often|large|big|far|old|fast)\b"
    r"|\b(?:size|limit|maximum|minimum|timeout|port|version|status code)\b",
    re.I,
)
_ASKS_HOW: Final = re.compile(r"\bhow (?:do|can|could|should|would|to)\b", re.I)
_ASKED_IN_WORDS: Final = re.compile(r"\bhow (?:many|much|long|often|large|big|far|old|fast)\b", re.I)
_NUMBER: Final = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|hundred|thousand)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, an item of a list or a row of a table, and its place."""

    text: str
    passage: PromptPassage
    index: int
    """Its index in the passage, from 0."""
    announced: str = ""
    """The list or code that it announces."""
    nearby_code: str = ""
    """Code that follows soon after, for a question that asks how to do something."""


@dataclass(frozen=True, slots=True)
class ExtractiveAnswer:
    """The text of an answer, and the passages that it cites, numbered from 1 in the order of the text."""

    text: str
    citations: tuple[Citation, ...] = ()


def answer_from(
    query: str, passages: Sequence[PromptPassage], weight: Weight, similarity: float = 0.0
) -> ExtractiveAnswer | None:
    """Answer a question from passages; None without passages.

    `similarity` is the highest cosine of a passage, 0 if the model's scale is not known.
    """
    if not passages:
        return None
    if not (similarity >= MIN_SIMILARITY or covers(query, passages, weight)):
        nearest = max(passages, key=lambda passage: passage.score)
        about = one_line(nearest.record.title or "")
        if not about:
            return ExtractiveAnswer(NOTHING_FITS)
        text = f"{NOTHING_FITS} The nearest passage: {_quote(about)} [1]"
        return ExtractiveAnswer(text, (replace(nearest.citation, number=1),))
    statements = select_statements(query, passages, weight)
    return format_answer(statements) if statements else None


def covers(query: str, passages: Sequence[PromptPassage], weight: Weight) -> bool:
    """Whether a passage has enough of the question's information to answer it, by its words."""
    weights = {term: max(0.0, weight(term)) for term in _query_terms(query)}
    total = sum(weights.values())
    if not total:
        return True

    def covered(passage: PromptPassage) -> float:
        own = content_terms(f"{_titles(passage.record)} {passage.record.text}")
        return sum(value for term, value in weights.items() if term in own)

    return max(map(covered, passages)) >= MIN_COVERAGE * total


def select_statements(
    query: str, passages: Sequence[PromptPassage], weight: Weight, max_statements: int = MAX_STATEMENTS
) -> tuple[Statement, ...]:
    """Select the statements that answer best, greedily; those of one passage together, the best passage first."""
    query_terms = _query_terms(query)
    wants_number, wants_code = bool(_ASKS_FOR_NUMBER.search(query)), bool(_ASKS_HOW.search(query))
    weights = {term: max(0.0, weight(term)) for term in query_terms}
    total = sum(weights.values()) or 1.0
    highest = max((passage.score for passage in passages), default=0.0) or 1.0
    candidates = [
        (statement, content_terms(statement.text) & query_terms)
        for passage in passages
        for statement in find_statements(passage)
    ]
    titles = {passage.number: content_terms(_titles(passage.record)) & query_terms for passage in passages}
    covered: set[str] = set()
    chosen: list[Statement] = []
    first = 0.0

    def gain(one: tuple[Statement, frozenset[str]]) -> float:
        statement, terms = one
        informative = sum(
            weights[term] * (REPEATED_WORD_WEIGHT if term in covered else 1.0) for term in terms
        )
        informative += TITLE_WORD_WEIGHT * sum(
            weights[term] for term in titles[statement.passage.number] - terms - covered
        )
        near = max(0.0, statement.passage.score) / highest
        value = (informative / total + BASE_GAIN) * near / (1.0 + POSITION_DISCOUNT * statement.index)
        if wants_number:
            value *= NUMBER_FACTOR if _NUMBER.search(statement.text) else 1.0 / NUMBER_FACTOR
        if wants_code and (statement.announced or statement.nearby_code):
            value *= CODE_FACTOR
        return value

    while candidates and len(chosen) < max_statements:
        best = max(candidates, key=gain)  # the first of equals
        value = gain(best)
        first = first or value
        if value < MIN_GAIN_SHARE * first or (chosen and not best[1]):
            break
        candidates.remove(best)
        chosen.append(best[0])
        covered |= best[1]
    announced = {one.announced for one in chosen}
    if wants_code:
        chosen = [
            replace(one, announced=one.nearby_code)
            if not one.announced and one.nearby_code not in announced
            else one
            for one in chosen
        ]
    passage_order = list(dict.fromkeys(one.passage.number for one in chosen))
    return tuple(sorted(chosen, key=lambda one: (passage_order.index(one.passage.number), one.index)))


def format_answer(statements: Sequence[Statement]) -> ExtractiveAnswer:
    """Return statements as an answer, each with its citation; their own numbers in brackets become plain."""
    numbers: dict[int, int] = {}
    citations: list[Citation] = []
    shown: set[str] = set()
    lines = []
    for one in statements:
        number = numbers.setdefault(one.passage.number, len(numbers) + 1)
        if number > len(citations):
            citations.append(replace(one.passage.citation, number=number))
        lines.append(f"{_quote(one.text)} [{number}]")
        if one.announced and one.announced not in shown:
            shown.add(one.announced)
            lines.append(one.announced)
    return ExtractiveAnswer("\n".join(lines), tuple(citations))


def find_statements(passage: PromptPassage) -> Iterator[Statement]:
    """Yield the statements of a passage, each once, with what they announce."""
    blocks = list(_blocks(_prose(passage.record)))
    heading = one_line(passage.record.title or "").rpartition(" > ")[2]
    if blocks and blocks[0].kind == "list" and heading:
        # A section that is only a list has its heading as introduction.
        blocks.insert(0, _Block("text", f"{heading}:"))
    seen: set[str] = set()
    index = 0
    for at, block in enumerate(blocks):
        following = blocks[at + 1] if at + 1 < len(blocks) else None
        texts = _split_block(block)
        for number, text in enumerate(texts, 1):
            statement = truncate(one_line(text), MAX_STATEMENT_CHARACTERS)
            if not _LETTERS.search(statement) or statement in seen:
                continue
            seen.add(statement)
            announces = number == len(texts) and statement.endswith(":") and following is not None
            nearby = next(
                (one for one in blocks[at + 1 : at + 2 + CODE_DISTANCE] if one.kind == "code"), None
            )
            yield Statement(
                statement,
                passage,
                index,
                _show_block(following) if announces and following is not None else "",
                _show_block(nearby) if nearby is not None else "",
            )
            index += 1


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph, a list, the rows of a table, or code."""

    kind: str
    text: str = ""
    items: tuple[str, ...] = ()


def _split_block(block: _Block) -> Sequence[str]:
    if block.kind == "text":
        return _END.split(block.text)
    return block.items


def _show_block(block: _Block) -> str:
    if block.kind == "code":
        first, *lines, last = block.text.split("\n")
        if len(lines) > MAX_CODE_LINES:
            lines = [*lines[:MAX_CODE_LINES], "…"]
        return "\n".join([first, *lines, last])
    items = block.items[:MAX_LIST_ITEMS]
    more = ["- …"] if len(block.items) > len(items) else []
    shown = (truncate(one_line(item), MAX_ITEM_CHARACTERS) for item in items)
    return "\n".join([*(f"- {_quote(item)}" for item in shown), *more])


def _blocks(text: str) -> Iterator[_Block]:
    """Yield the blocks of a text; headings and markup are left out."""
    lines = _UNDERLINED.sub("", _QUOTE.sub("", text)).split("\n")
    prose: list[str] = []
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            prose.append(lines[at])
            at += 1
            continue
        yield from _prose_blocks(prose)
        prose = []
        ends = (n for n in range(at + 1, len(lines)) if lines[n].lstrip().startswith(fence[1]))
        after = next(ends, len(lines) - 1) + 1
        yield _Block("code", _close_fence(lines[at:after], fence[1]))
        at = after
    yield from _prose_blocks(prose)


def _prose_blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """Yield paragraphs, lists and tables."""
    for kind, run in _runs(lines):
        if kind == "table":
            header, *rows = (_cells(line) for line in run if not _TABLE_RULE.match(line))
            yield _Block("table", items=tuple(_describe_row(header, row) for row in rows))
        elif kind == "list":
            items: list[str] = []
            for line in run:
                bullet = _BULLET.match(line)
                if bullet:
                    items.append(line[bullet.end() :])
                else:
                    items[-1] += f" {line.strip()}"
            yield _Block("list", items=tuple(items))
        elif kind == "text":
            yield _Block("text", " ".join(line.strip() for line in run))


def _runs(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield lines that belong together with their kind. A blank line ends everything but a list that goes on."""
    kind = ""
    run: list[str] = []
    after_blank = False
    for line in lines:
        if not line.strip():
            after_blank = True
            continue
        new = _line_kind(line, kind, after_blank=after_blank)
        if run and (new != kind or (after_blank and kind != "list")):
            yield kind, run
            run = []
        kind, after_blank = new, False
        if kind != "markup":
            run.append(line)
    if run:
        yield kind, run


def _line_kind(line: str, before: str, *, after_blank: bool) -> str:
    """Return what a line is part of; a plain line continues the list before it, after a blank one if indented."""
    if _TABLE_ROW.match(line):
        return "table"
    if _NO_PROSE.match(line):
        return "markup"
    goes_on = before == "list" and (not after_blank or line.startswith("  "))
    return "list" if goes_on or _BULLET.match(line) else "text"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _close_fence(lines: Sequence[str], marks: str) -> str:
    """Return fenced code with plain fences that nothing in it can close."""
    inside = lines[1:-1] if len(lines) > 1 and lines[-1].lstrip().startswith(marks) else lines[1:]
    language = lines[0].strip().strip("`~").split(" ")[0]
    indent = min((len(line) - len(line.lstrip()) for line in inside if line.strip()), default=0)
    body = sanitize("\n".join(line[indent:] for line in inside))
    longest = max((len(run) for run in re.findall(r"`{3,}", body)), default=2)
    plain = "`" * (longest + 1)
    return f"{plain}{language if language.isalnum() else ''}\n{body}\n{plain}"


def _describe_row(header: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row of a table as a statement: each cell with the head of its column."""
    pairs = [(name, cell) for name, cell in zip(header, cells, strict=False) if cell]
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in pairs)


def _query_terms(query: str) -> frozenset[str]:
    """Return the terms of a question without the words that only ask for a number."""
    return content_terms(_ASKED_IN_WORDS.sub(" ", query)) or content_terms(query)


def _titles(record: Record) -> str:
    page = record.metadata.get("page_name")
    return f"{record.title or ''} {page if isinstance(page, str) else ''}"


def _prose(record: Record) -> str:
    """Return the prose of a record: the description of a finished example, and the doc of a code entity."""
    metadata = record.metadata
    if record.kind == "EXAMPLE":
        description = metadata.get("description")
        return (
            f"{record.title}: {description}" if isinstance(description, str) and description.strip() else ""
        )
    signature = metadata.get("signature")
    if not isinstance(signature, str):
        return record.text
    doc, qualified = metadata.get("doc"), metadata.get("qualified") or record.title
    return f"`{qualified}`: {doc if isinstance(doc, str) and doc.strip() else signature}"


def _quote(text: str) -> str:
    """Return a text that cannot change how citations beside it are read: no number in brackets, no open backtick."""
    return _BACKTICKS.sub(lambda found: found["code"] or "'", _NUMBERED.sub(r"(\1)", text))
