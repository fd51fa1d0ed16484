"""Hits and results, and why a record is among them or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, overload

from sennit.records import Json, Record
from sennit.results.trace import Degraded, Explanation, Standing, Trace

BOUNDARY: Final = "\n[CHUNK BOUNDARY]\n"
"""Between a chunk and its neighbours."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result."""

    record: Record
    score: float
    rank: int
    sources: tuple[str, ...] = ()
    """The lists that found it."""
    neighbours: tuple[Record, ...] = ()
    """The parts of the same whole around this one, itself among them, in order; empty when not asked for."""
    trace: Trace | None = field(default=None, repr=False, compare=False)
    key: int = field(default=0, repr=False, compare=False)

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
        named = (name.partition(":")[2] or self.collection for name in self.sources)
        return tuple(dict.fromkeys(named)) or (self.collection,)

    @property
    def metadata(self) -> Mapping[str, Json]:
        return self.record.metadata

    @property
    def citation(self) -> str:
        """Where the text really is: path with lines, address, or id."""
        return citation(self.record)

    @property
    def passage(self) -> str:
        """The text, with that of its neighbours around it where they were asked for."""
        return BOUNDARY.join(record.text for record in self.neighbours) if self.neighbours else self.text

    @property
    def explanation(self) -> Explanation | None:
        """Why it is where it is, when the search was asked to explain."""
        return self.trace.explain(self.key) if self.trace is not None else None

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "rank": self.rank,
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


def citation(record: Record) -> str:
    """Where a record's text really is."""
    place = record.path or record.url
    if place is None:
        return record.id
    if record.lines is None:
        return place
    first, last = record.lines
    return f"{place}:{first}" if first == last else f"{place}:{first}-{last}"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of which something was found: its summary, its examples if short, and the sections that were found."""

    name: str
    url: str | None
    score: float
    """Of its best hit."""
    chunks: tuple[Record, ...]

    def to_dict(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "url": self.url,
            "score": self.score,
            "chunks": [{"citation": citation(chunk), **chunk.to_dict()} for chunk in self.chunks],
        }


@dataclass(frozen=True, slots=True)
class Result(Sequence[Hit]):
    """The answer to a search: its hits in order, what was missing, and how it came about."""

    query: str
    recipe: str
    hits: tuple[Hit, ...]
    degraded: tuple[Degraded, ...] = ()
    trace: Trace | None = None
    milliseconds: float = 0.0
    answered: int = 1
    """How many of the lists that were asked answered; 0: this is no answer at all."""
    pages: tuple[Page, ...] = ()
    """The hits by page, for a recipe that organises them so."""

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
    """Why a record is in an answer or not: the stage and the number that decided."""

    id: str
    kept: bool
    stage: str
    reason: str
    number: float | None
    needed: float | None
    rank: int | None
    standings: tuple[Standing, ...]
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
            "sources": [standing.to_dict() for standing in self.standings],
            "degraded": [source.to_dict() for source in self.degraded],
        }
