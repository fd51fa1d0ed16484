"""An answer without a language model: the sentences of what was found that say most about the question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sennit.analysis import words
from sennit.context.plain import cut, one_line
from sennit.context.prompt import Passage
from sennit.records import Record

MOST_SENTENCES: Final = 4
MOST_CHARACTERS: Final = 400
"""Of one sentence."""

AGAIN: Final = 0.3
"""What a word of the question counts that an earlier sentence had."""

TITLE: Final = 0.3
"""What a word of the question counts that only the title above a sentence has."""

LATER: Final = 0.04
"""How much less a sentence says for each one before it in its passage: definitions come first."""

ENOUGH: Final = 0.3
"""A further sentence must say this share of what the first said."""

LEAST: Final = 0.05
"""What a sentence says that has no word of the question: it was found by its meaning."""

NEAREST: Final = "Nothing that was found has a word of the question. Nearest in meaning:"

Weight = Callable[[str], float]
"""How telling a term is; 0 for one that is everywhere."""

_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.M | re.S)
_NO_PROSE: Final = re.compile(r"[ \t]*(?:#|\||<|:::|\[!\w+\]|import |export )")
_UNDERLINED: Final = re.compile(r"^[^\n]*\n {0,3}(?:=+|-{3,})[ \t]*$", re.M)
_QUOTE: Final = re.compile(r"^[ \t]*>[ \t]?", re.M)
_BULLET: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+")
_END: Final = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`*_]*[A-Z0-9`])|(?<=[。！？])")
_LETTERS: Final = re.compile(r"\w")
_NUMBERED: Final = re.compile(r"\[\^?(\d[\d ,;\u2013-]*)\]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and where it stands."""

    text: str
    passage: Passage
    place: int
    """From 0, within its passage."""
    overlaps: bool = False
    """Whether it has a word of the question."""


def extracted(
    query: str, passages: Sequence[Passage], weight: Weight, most: int = MOST_SENTENCES
) -> tuple[Sentence, ...]:
    """The sentences that answer best, in the order of the passages; none when there is no passage."""
    asked = words(query)
    weights = {term: max(0.0, weight(term)) for term in asked}
    total = sum(weights.values()) or 1.0
    highest = max((passage.score for passage in passages), default=0.0) or 1.0
    waiting = [
        (sentence, words(sentence.text) & asked) for passage in passages for sentence in _sentences(passage)
    ]
    titles = {passage.number: words(passage.record.title) & asked for passage in passages}
    covered: set[str] = set()
    chosen: list[Sentence] = []
    first = 0.0

    def gain(one: tuple[Sentence, frozenset[str]]) -> float:
        sentence, terms = one
        said = sum(weights[term] * (AGAIN if term in covered else 1.0) for term in terms)
        said += TITLE * sum(weights[term] for term in titles[sentence.passage.number] - terms - covered)
        near = max(0.0, sentence.passage.score) / highest
        return (said / total + LEAST) * near / (1.0 + LATER * sentence.place)

    while waiting and len(chosen) < most:
        best = max(waiting, key=gain)  # of equals, the one that stands first
        value = gain(best)
        first = first or value
        if value < ENOUGH * first or (chosen and not best[1]):
            break
        waiting.remove(best)
        chosen.append(replace(best[0], overlaps=bool(best[1])))
        covered |= best[1]
    return tuple(sorted(chosen, key=lambda one: (one.passage.number, one.place)))


def told(sentences: Sequence[Sentence]) -> str:
    """Sentences as an answer, each with its citation; numbers in brackets of their own are no citations."""
    lines = [f"{_unnumbered(one.text)} [{one.passage.number}]" for one in sentences]
    if sentences and not any(one.overlaps for one in sentences):
        lines.insert(0, NEAREST)
    return "\n".join(lines)


def _unnumbered(text: str) -> str:
    return _NUMBERED.sub(r"(\1)", text)


def _sentences(passage: Passage) -> Iterator[Sentence]:
    seen: set[str] = set()
    place = 0
    for paragraph in _paragraphs(_FENCED.sub("\n\n", _prose(passage.record))):
        for text in _END.split(paragraph):
            said = cut(one_line(text), MOST_CHARACTERS)
            if _LETTERS.search(said) and said not in seen:
                seen.add(said)
                yield Sentence(said, passage, place)
                place += 1


def _prose(record: Record) -> str:
    """What a record says in words; a finished example says it in its description."""
    if record.kind != "EXAMPLE":
        return record.text
    description = record.metadata.get("description")
    return f"{record.title}: {description}" if isinstance(description, str) and description.strip() else ""


def _paragraphs(text: str) -> Iterator[str]:
    """Lines that belong together: paragraphs and items of lists; headings, tables and markup are not prose."""
    together: list[str] = []
    for line in [*_UNDERLINED.sub("", _QUOTE.sub("", text)).split("\n"), ""]:
        bullet = _BULLET.match(line)
        if together and (not line.strip() or bullet or _NO_PROSE.match(line)):
            yield " ".join(together)
            together = []
        if line.strip() and not _NO_PROSE.match(line):
            together.append(line[bullet.end() :] if bullet else line.strip())
