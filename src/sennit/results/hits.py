"""Hits, search results, and the reason why a record is among them or not."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, overload

from sennit.errors import MissingExtra
from sennit.places import FOLDER_FIELD
from sennit.records import FRAGMENT_FIELD, Json, Record, shorten
from sennit.results.hints import Hint
from sennit.results.trace import Degraded, Explanation, SourceScore, Trace

FIT_RELEVANCE: Final = 0.16
"""A hit with at least this relevance fits the query. Of the questions that a dev collection can answer, 4 % have no
such hit, and of questions about other subjects 95 % have none: docs/design/relevance.md."""

if TYPE_CHECKING:
    import pandas
    import polars

SHOWN_HITS: Final = 5
"""Hits in the repr of a result."""

FRAME_COLUMNS: Final = (
    *("rank", "score", "relevance", "id", "collection", "kind", "title", "text", "citation"),
    *("path", "url", "timestamp", "sources"),
)
"""The first columns of a frame; each key of the metadata follows."""

CHUNK_BOUNDARY: Final = "\n[CHUNK BOUNDARY]\n"
"""The line between a chunk and its neighbours."""


@dataclass(frozen=True, slots=True, repr=False)
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
    location: str | None = None
    """The path of its file as it is shown: relative to the current folder where that is shorter."""
    revision: str = ""
    """The git revision of the project at the time of the index run, such as `main@1a2b3c4d`; empty without one."""
    relevance: float = 0.0
    """The calibrated chance that it answers the query, from 0 to 1: comparable across recipes, databases and models."""
    trace: Trace | None = field(default=None, repr=False, compare=False)
    key: int = field(default=0, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<Hit {self.rank}: {self.id!r} {self.score:.4f} {shorten(self.title or self.text)}>"

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
    def kind(self) -> str:
        return self.record.kind

    @property
    def path(self) -> str | None:
        """The path of its file, relative to the indexed folder; `location` is the path as it is shown."""
        return self.record.path

    @property
    def lines(self) -> tuple[int, int] | None:
        return self.record.lines

    @property
    def url(self) -> str | None:
        return self.record.url

    @property
    def timestamp(self) -> datetime | None:
        return self.record.timestamp

    @property
    def metadata(self) -> Mapping[str, Json]:
        return self.record.metadata

    @property
    def project(self) -> str:
        """The name of the indexed folder that it comes from; empty for a record that is from none."""
        return project_of(self.record)

    @property
    def citation(self) -> str:
        """Where the text is: path with lines, URL, or id."""
        return cite_record(self.record, self.location)

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
            "fits": self.fits,
            "score": self.score,
            "citation": self.citation,
            "sources": list(self.sources),
            **self.record.to_dict(),
        }
        if self.project:
            out |= {"project": self.project, "revision": self.revision}
        if self.neighbours:
            out["passage"] = self.passage
        explanation = self.explanation
        if explanation is not None:
            out["explanation"] = explanation.to_dict()
        return out


class _HitDraft:
    """A mutable hit. Setting each attribute of a frozen dataclass would take three times as long."""

    __slots__ = tuple(one.name for one in fields(Hit))


def make_hit(
    record: Record,
    score: float,
    rank: int,
    sources: tuple[str, ...],
    location: str | None,
    revision: str,
    relevance: float,
    key: int,
) -> Hit:
    """Return a hit without neighbours and trace, as every search makes ten of them."""
    draft: Any = _HitDraft()
    draft.record = record
    draft.score = score
    draft.rank = rank
    draft.sources = sources
    draft.neighbours = ()
    draft.location = location
    draft.revision = revision
    draft.relevance = relevance
    draft.trace = None
    draft.key = key
    draft.__class__ = Hit
    hit: Hit = draft
    return hit


def project_of(record: Record) -> str:
    """Return the name of the indexed folder that a record comes from; empty for a record that is from none."""
    name = record.metadata.get(FOLDER_FIELD)
    return name if isinstance(name, str) else ""


def cite_record(record: Record, location: str | None = None) -> str:
    """Return where a record's text is: path with lines, URL, or id. `location` is the path as it is shown."""
    named = (record.metadata.get(name) for name in ("path", "file_path"))
    path = location or record.path or next((name for name in named if isinstance(name, str) and name), None)
    place = path or record.url
    if place is None:
        return record.id
    if record.lines is None:
        fragment = record.metadata.get(FRAGMENT_FIELD)
        return f"{place}#{fragment}" if isinstance(fragment, str) and fragment and path else place
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
    location: str | None = None
    """The path of its file as it is shown: relative to the current folder where that is shorter."""

    def cite(self, chunk: Record) -> str:
        """Return where the text of one of its chunks is."""
        return cite_record(chunk, self.location)

    def to_dict(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "url": self.url,
            "score": self.score,
            "chunks": [{"citation": self.cite(chunk), **chunk.to_dict()} for chunk in self.chunks],
        }


@dataclass(frozen=True, slots=True, repr=False)
class SearchResult(Sequence[Hit]):
    """The result of a search: its hits in order, the sources that failed, and the trace.

    It is a sequence of hits. `print` shows one line per hit.
    """

    query: str
    recipe: str
    hits: tuple[Hit, ...]
    degraded: tuple[Degraded, ...] = ()
    trace: Trace | None = field(default=None, compare=False)
    milliseconds: float = field(default=0.0, compare=False)
    answered: int = 1
    """How many sources answered. With 0 the search failed as a whole."""
    pages: tuple[Page, ...] = ()
    """The hits grouped by page, for a recipe with the stage `group_by_page`."""
    hints: tuple[Hint, ...] = ()
    """Why there are no hits, and what would find something; empty if there are hits."""
    project: str = ""
    """The project that the search was limited to, as the request named it; empty for all."""
    query_id: str = field(default="", compare=False)
    """The id of this search, which feedback about it names."""
    source_milliseconds: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    """How long each source took that was asked. They run at the same time, so the search takes less than their sum."""

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

    def __repr__(self) -> str:
        best = ", ".join(f"{hit.id} {hit.score:.4f}" for hit in self.hits[:SHOWN_HITS])
        more = ", …" if len(self.hits) > SHOWN_HITS else ""
        missing = f", degraded: {', '.join(one.source for one in self.degraded)}" if self.degraded else ""
        count = f"{len(self.hits)} hit{'s' * (len(self.hits) != 1)}"
        return f"<SearchResult {shorten(self.query)} by {self.recipe}: {count} [{best}{more}]{missing}>"

    def __str__(self) -> str:
        lines = [
            f"{hit.rank:3}. {hit.score:.4f}  {hit.citation}  {hit.title or hit.text:.80}" for hit in self
        ]
        return "\n".join(" ".join(line.splitlines()) for line in lines) or "No results"

    def to_dicts(self) -> list[dict[str, Json]]:
        """Return each hit as JSON values."""
        return [hit.to_dict() for hit in self.hits]

    def to_pandas(self) -> pandas.DataFrame:
        """Return the hits as a pandas frame, one row each; needs pandas."""
        frame: pandas.DataFrame = _import_frames("pandas").DataFrame(self._columns())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """Return the hits as a polars frame, one row each; needs polars."""
        frame: polars.DataFrame = _import_frames("polars").DataFrame(self._columns(), strict=False)
        return frame

    def _columns(self) -> dict[str, list[object]]:
        """The hits as columns: the usual fields, then a column `metadata.KEY` for each key. Objects become JSON."""
        columns: dict[str, list[object]] = {name: [] for name in FRAME_COLUMNS}
        keys = dict.fromkeys(key for hit in self.hits for key in hit.metadata)
        columns |= {f"metadata.{key}": [] for key in keys}
        for hit in self.hits:
            own = {
                "rank": hit.rank,
                "score": hit.score,
                "relevance": hit.relevance,
                "citation": hit.citation,
                "sources": list(hit.sources),
            }
            for name in FRAME_COLUMNS:
                columns[name].append(own[name] if name in own else getattr(hit.record, name))
            for key in keys:
                columns[f"metadata.{key}"].append(_cell(hit.metadata.get(key)))
        return columns

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "query": self.query,
            "recipe": self.recipe,
            "fits": self.fits,
            "hits": [hit.to_dict() for hit in self.hits],
            "degraded": [source.to_dict() for source in self.degraded],
            "milliseconds": self.milliseconds,
            "query_id": self.query_id,
        }
        if self.project:
            out["project"] = self.project
        if self.pages:
            out["pages"] = [page.to_dict() for page in self.pages]
        if self.hints:
            out["hints"] = [hint.to_dict() for hint in self.hints]
        if self.trace is not None:
            out["trace"] = self.trace.to_dict()
        return out


def _cell(value: Json) -> object:
    """Return a value of the metadata for a frame: a list of strings as it is, any other list or object as JSON."""
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return list(value)
    is_nested = isinstance(value, (list, tuple, Mapping))
    return json.dumps(value, ensure_ascii=False) if is_nested else value


def _import_frames(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtra(f"SearchResult.to_{package}()", package=package) from error


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

    @property
    def shortfall(self) -> str:
        """What the record has and what it would need, in words; empty where more would not have helped."""
        has, needs = self.number, self.needed
        if self.kept or has is None or needs is None or has > needs:
            return ""
        if has == needs:
            return f"it has {has:.4f}, as much as the last result; equal scores are ordered by id"
        digits = next((n for n in range(4, 17) if f"{has:.{n}f}" != f"{needs:.{n}f}"), 17)
        return f"it has {has:.{digits}f} and would need {needs:.{digits}f}"

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
