"""A written answer, and the stream of its parts."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from sennit.context.citations import Citation
from sennit.records import Json
from sennit.results import Degraded, Hint, Hit, Page, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a question, with its citations and what was missing."""

    query: str
    text: str
    citations: tuple[Citation, ...]
    """The citations in the text, by number."""
    removed_citations: tuple[int, ...] = ()
    """Numbers that the language model cited and that belong to no passage."""
    pages: tuple[Page, ...] = ()
    examples: tuple[Hit, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    model: str = ""
    """The language model that wrote it; empty if it consists of retrieved sentences."""
    hints: tuple[Hint, ...] = ()
    """Why nothing was found, and what would find something; empty if something was found."""
    answered: int = 1
    """The number of sources that answered; with 0, there was nothing to answer from."""
    editor_keywords: tuple[str, ...] = ()
    prompt: str = field(default="", repr=False)
    """The system prompt."""
    trace: Trace | None = field(default=None, repr=False)
    milliseconds: float = 0.0
    query_id: str = field(default="", compare=False)
    """The id of the search that the answer is made from, which feedback about it names."""

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "query_id": self.query_id,
            "query": self.query,
            "text": self.text,
            "citations": [citation.to_dict() for citation in self.citations],
            "removed_citations": list(self.removed_citations),
            "model": self.model or None,
            "pages": [page.to_dict() for page in self.pages],
            "examples": [hit.to_dict() for hit in self.examples],
            "degraded": [source.to_dict() for source in self.degraded],
            "editor_keywords": list(self.editor_keywords),
            "transform": dict(self.trace.transform) if self.trace is not None else {},
            "milliseconds": self.milliseconds,
        }
        if self.hints:
            out["hints"] = [hint.to_dict() for hint in self.hints]
        return out


class AnswerStream:
    """Yields the text of an answer in parts; `answer` is the whole.

    A reader that stops early must close the stream, so that the request to the language model ends.
    """

    def __init__(self, parts: Generator[str | Answer]) -> None:
        """`parts` yields texts, and last the answer."""
        self._parts = parts
        self._answer: Answer | None = None

    def __iter__(self) -> Iterator[str]:
        for part in self._parts:
            if isinstance(part, Answer):
                self._answer = part
            else:
                yield part

    def close(self) -> None:
        """Stop reading parts."""
        self._parts.close()

    @property
    def answer(self) -> Answer:
        """The whole answer; reading it consumes the remaining parts."""
        for _ in self:
            pass
        assert self._answer is not None
        return self._answer
