"""An answer without a language model: the retrieved sentences that say most about the question."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sennit.analysis import content_terms
from sennit.context.prompt import PromptPassage
from sennit.context.sanitize import one_line, truncate
from sennit.records import Record

MAX_SENTENCES: Final = 4
MAX_SENTENCE_CHARACTERS: Final = 400

REPEATED_WORD_WEIGHT: Final = 0.3
"""The weight of a query word that an earlier sentence already had."""

TITLE_WORD_WEIGHT: Final = 0.3
"""The weight of a query word that only the title above a sentence has."""

POSITION_DISCOUNT: Final = 0.04
"""The discount for each sentence before this one in its passage: definitions come first."""

MIN_GAIN_SHARE: Final = 0.3
"""A further sentence must gain at least this share of what the first gained."""

BASE_GAIN: Final = 0.05
"""The gain of a sentence without a word of the question: the vector search found it."""

NEAREST_HEADING: Final = "No passage contains a word of the question. The nearest in meaning:"

Weight = Callable[[str], float]
"""Returns how informative a term is; 0 for a term that is everywhere."""

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
    """A sentence and its place."""

    text: str
    passage: PromptPassage
    index: int
    """Its index in the passage, from 0."""
    overlaps: bool = False
    """Whether it contains a word of the question."""


def select_sentences(
    query: str, passages: Sequence[PromptPassage], weight: Weight, max_sentences: int = MAX_SENTENCES
) -> tuple[Sentence, ...]:
    """Select the sentences that answer best, greedily; return them in the order of the passages."""
    query_words = content_terms(query)
    weights = {term: max(0.0, weight(term)) for term in query_words}
    total = sum(weights.values()) or 1.0
    highest = max((passage.score for passage in passages), default=0.0) or 1.0
    candidates = [
        (sentence, content_terms(sentence.text) & query_words)
        for passage in passages
        for sentence in _sentences(passage)
    ]
    titles = {passage.number: content_terms(passage.record.title) & query_words for passage in passages}
    covered: set[str] = set()
    chosen: list[Sentence] = []
    first = 0.0

    def gain(one: tuple[Sentence, frozenset[str]]) -> float:
        sentence, terms = one
        informative = sum(
            weights[term] * (REPEATED_WORD_WEIGHT if term in covered else 1.0) for term in terms
        )
        informative += TITLE_WORD_WEIGHT * sum(
            weights[term] for term in titles[sentence.passage.number] - terms - covered
        )
        near = max(0.0, sentence.passage.score) / highest
        return (informative / total + BASE_GAIN) * near / (1.0 + POSITION_DISCOUNT * sentence.index)

    while candidates and len(chosen) < max_sentences:
        best = max(candidates, key=gain)  # the first of equals
        value = gain(best)
        first = first or value
        if value < MIN_GAIN_SHARE * first or (chosen and not best[1]):
            break
        candidates.remove(best)
        chosen.append(replace(best[0], overlaps=bool(best[1])))
        covered |= best[1]
    return tuple(sorted(chosen, key=lambda one: (one.passage.number, one.index)))


def format_answer(sentences: Sequence[Sentence]) -> str:
    """Return the sentences as an answer, each with its citation; their own numbers in brackets become plain."""
    lines = [f"{_unbracket_numbers(one.text)} [{one.passage.number}]" for one in sentences]
    if sentences and not any(one.overlaps for one in sentences):
        lines.insert(0, NEAREST_HEADING)
    return "\n".join(lines)


def _unbracket_numbers(text: str) -> str:
    return _NUMBERED.sub(r"(\1)", text)


def _sentences(passage: PromptPassage) -> Iterator[Sentence]:
    seen: set[str] = set()
    index = 0
    for paragraph in _paragraphs(_FENCED.sub("\n\n", _prose(passage.record))):
        for text in _END.split(paragraph):
            sentence = truncate(one_line(text), MAX_SENTENCE_CHARACTERS)
            if _LETTERS.search(sentence) and sentence not in seen:
                seen.add(sentence)
                yield Sentence(sentence, passage, index)
                index += 1


def _prose(record: Record) -> str:
    """Return the prose of a record; for a finished example, its description."""
    if record.kind != "EXAMPLE":
        return record.text
    description = record.metadata.get("description")
    return f"{record.title}: {description}" if isinstance(description, str) and description.strip() else ""


def _paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and list items on one line each; headings, tables and markup are not prose."""
    together: list[str] = []
    for line in [*_UNDERLINED.sub("", _QUOTE.sub("", text)).split("\n"), ""]:
        bullet = _BULLET.match(line)
        if together and (not line.strip() or bullet or _NO_PROSE.match(line)):
            yield " ".join(together)
            together = []
        if line.strip() and not _NO_PROSE.match(line):
            together.append(line[bullet.end() :] if bullet else line.strip())
