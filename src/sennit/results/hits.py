"""Hits, search results, and the reason why a record is among them or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, overload

from sennit.records import Json, Record
from sennit.results.trace import Degraded, Explanation, SourceScore, Trace

FIT_RELEVANCE: Final = 0.18
"""A hit with at least this relevance fits the query. Of the questions that a dev collection can answer, 4 % have no
such hit, and of questions about other subjects 95 % have none: docs/design/relevance.md."""

CHUNK_BOUNDARY: Final = "\n[CHUNK BOUNDARY]\n"
"""The line between a chunk and its neighbours."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result."""

    record: Record
    score: float
    """What the results are ordered by. Its scale is the recipe's."""
    rank: int
    sources: tuple[str, ...] = ()
    """The names of the lists that found it."""
    neighbours: tuple[Record, ...] = ()
    """The adjacent chunks of the same document, with this one among them, in order; empty unless requested."""
    relevance: float = 0.0
    """The calibrated chance that it answers the query, from 0 to 1: comparable across recipes, databases and models."""
    trace: Trace | None = field(default=None, repr=False, compare=False)
    key: int = field(default=0, repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """Whether it is relevant enough to count as an answer."""
        return self.relevance >= FIT_RELEVANCE

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def text(self) -> str:
        return self.record.text

    @property
    def title(self) -> str:
        return self.record.title

    @property
    def collection(self) -> str:
        return self.record.collection

    @property
    def collections(self) -> tuple[str, ...]:
        """The collections in which it was found."""
        names = (name.partition(":")[2] or self.collection for name in self.sources)
        return tuple(dict.fromkeys(names)) or (self.collection,)

    @property
    def metadata(self) -> Mapping[str, Json]:
        return self.record.metadata

    @property
    def citation(self) -> str:
        """Where the text is: path with lines, URL, or id."""
        return cite_record(self.record)

    @property
    def passage(self) -> str:
        """The text, with that of its neighbours where they were requested."""
        return (
            CHUNK_BOUNDARY.join(record.text for record in self.neighbours) if self.neighbours else self.text
        )

    @property
    def explanation(self) -> Explanation | None:
        """Why it has this rank; None unless the search was run with `explain`."""
        return self.trace.explain(self.key) if self.trace is not None else None

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "rank": self.rank,
            "relevance": self.relevance,
            "score": self.score,
            "citation": self.citation,
            "sources": list(self.sources),
            **self.record.to_dict(),
        }
        if self.neighbours:
            out["passage"] = self.passage
        explanation = self.explanation
        if explanation is not None:
            out["explanation"] = explanation.to_dict()
        return out


def cite_record(record: Record) -> str:
    """Return where a record's text is: path with lines, URL, or id."""
    place = record.path or record.url
    if place is None:
        return record.id
    if record.lines is None:
        return place
    first, last = record.lines
    return f"{place}:{first}" if first == last else f"{place}:{first}-{last}"


@dataclass(frozen=True, slots=True)
class Page:
    """A page with hits: its summary, its examples if short, and the sections that were found."""

    name: str
    url: str | None
    score: float
    """The score of its best hit."""
    chunks: tuple[Record, ...]

    def to_dict(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "url": self.url,
            "score": self.score,
            "chunks": [{"citation": cite_record(chunk), **chunk.to_dict()} for chunk in self.chunks],
        }


@dataclass(frozen=True, slots=True)
class SearchResult(Sequence[Hit]):
    """The result of a search: its hits in order, the sources that failed, and the trace."""

    query: str
    recipe: str
    hits: tuple[Hit, ...]
    degraded: tuple[Degraded, ...] = ()
    trace: Trace | None = None
    milliseconds: float = 0.0
    answered: int = 1
    """How many sources answered. With 0 the search failed as a whole."""
    pages: tuple[Page, ...] = ()
    """The hits grouped by page, for a recipe with the stage `group_by_page`."""

    @property
    def fits(self) -> bool:
        """Whether any hit is relevant enough to count as an answer. If not, the hits are only the nearest records."""
        return any(hit.fits for hit in self.hits)

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "query": self.query,
            "recipe": self.recipe,
            "fits": self.fits,
            "hits": [hit.to_dict() for hit in self.hits],
            "degraded": [source.to_dict() for source in self.degraded],
            "milliseconds": self.milliseconds,
        }
        if self.pages:
            out["pages"] = [page.to_dict() for page in self.pages]
        if self.trace is not None:
            out["trace"] = self.trace.to_dict()
        return out


@dataclass(frozen=True, slots=True)
class Why:
    """Why a record is in a result or not: the stage and the number that decided."""

    id: str
    kept: bool
    stage: str
    reason: str
    number: float | None
    needed: float | None
    rank: int | None
    source_scores: tuple[SourceScore, ...]
    degraded: tuple[Degraded, ...] = ()
    answered: int = 1

    def to_dict(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "kept": self.kept,
            "stage": self.stage,
            "reason": self.reason,
            "number": self.number,
            "needed": self.needed,
            "rank": self.rank,
            "sources": [source_score.to_dict() for source_score in self.source_scores],
            "degraded": [source.to_dict() for source in self.degraded],
        }
