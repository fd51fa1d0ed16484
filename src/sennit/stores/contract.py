"""The contract between the engine and its stores: four roles, and the values that they exchange.

`records` is the source of truth: transactions, consistent snapshots and a feed of changes. `keyword`, `vector` and
`graph` are indexes that are derived from the feed. A `Backend` binds the four.

Every change has a number from one counter. A record is identified by its key, which is the number of the change that
wrote it: an update is a new key, and no key is used twice. These rules hold for every backend:

- Scores: higher is better. A BM25 score is at least 0; a cosine lies from -1 to 1. An index that cannot promise one of
  these scales returns scores that only their order has a meaning (`Capabilities.scores`). No score that `search`
  returns is nan. In `scores`, nan means that the index has no score for a key, and 0 that the record does not match.
- Order: best first. Equal scores are ordered by id, as UTF-8. No key appears twice.
- Limit: `search` returns fewer keys than its limit only when no other record matches. A filter is applied before the
  limit, never after it.
- Visibility: every answer is of the snapshot that it was asked with. A record that was deleted or replaced before it, or
  written after it, or that its audience may not see, never returns, and has no influence on a score that is promised
  per audience.
- Freshness: a write that was confirmed before a snapshot began is found with it. What an index has not applied yet is
  searched in the process (`stores/buffered_index.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput, SourceError
from sennit.filters import EVERYTHING, Condition, Filter
from sennit.graph.entity_linking import NameMatches
from sennit.graph.names import Hashes, Words
from sennit.graph.traversal import Edge
from sennit.ranking.calibration import CosineSample
from sennit.records import Json, Record
from sennit.stores.findings import Finding
from sennit.stores.prepared_records import PreparedRecord

Keys = NDArray[np.int64]
"""Keys of records: each is the number of the change that wrote this version of a record."""
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FILTER_OPERATORS: Final = frozenset({"equal", "in", "range", "exists", "and", "or", "not"})
"""The nodes of a filter expression, by the names of their classes in lower case."""


# Values.


class ScoredKeys(NamedTuple):
    """The result of one index search, best first. A key identifies one version of one record."""

    keys: Keys
    scores: Floats

    @classmethod
    def empty(cls) -> ScoredKeys:
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))

    def with_scores(self, scores: Floats) -> ScoredKeys:
        """The same keys with other scores."""
        return ScoredKeys(self.keys, scores)


class PartialKeys(ScoredKeys):
    """What was found although a part of the index did not answer. It is used, and `problem` is reported."""

    problem: str

    @classmethod
    def of(cls, found: ScoredKeys, problem: str) -> PartialKeys:
        partial = cls(*found)
        partial.problem = problem
        return partial

    def with_scores(self, scores: Floats) -> PartialKeys:
        """The same keys with other scores, still as a part."""
        return PartialKeys.of(ScoredKeys(self.keys, scores), self.problem)


@dataclass(frozen=True, slots=True)
class BM25:
    """The parameters of the keyword score; see docs/ranking-contract.md."""

    k1: float = 1.2
    b: float = 0.4
    """1.2 and 0.4 are near the optimum on every text collection that we measured; see docs/quality.md."""
    text_weight: float = 1.0
    title_weight: float = 2.0
    """A term in the title tells what a text is about; 2 helps or is neutral on every collection that we measured."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise InvalidInput(f"BM25 k1 must be a number of at least 0, not {self.k1!r}")
        if not 0 <= self.b <= 1:
            raise InvalidInput(f"BM25 b must be between 0 and 1, not {self.b!r}")
        for weight in self.field_weights:
            if not (math.isfinite(weight) and weight >= 0):
                raise InvalidInput(f"A BM25 field weight must be a number of at least 0, not {weight!r}")
        if not any(self.field_weights):
            raise InvalidInput("At least one BM25 field weight must be above 0")

    @property
    def field_weights(self) -> tuple[float, float]:
        """The weights, in the order of the keyword index's fields."""
        return (self.text_weight, self.title_weight)


class BufferStatistics(NamedTuple):
    """What a buffer adds to the statistics of an index that has not applied it yet."""

    records: int
    lengths: tuple[float, float]
    """The sum of the lengths of all texts, and of all titles."""
    holding: Mapping[int, int]
    """How many of the records have each term of the query."""


class KeywordQuery(NamedTuple):
    """What a keyword index is asked: terms by our analysis, and the text for an index that has its own."""

    terms: Sequence[tuple[int, float]]
    """Pairs of a term hash and the term's weight in the query."""
    bm25: BM25
    text: str = ""
    buffer: BufferStatistics | None = None
    """For an index on a server whose scores need statistics."""


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model of a database."""

    number: int
    fingerprint: str
    name: str
    spec: str
    dimensions: int
    state: str
    """`active`, `building` or `retired`."""


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How many records still lack a vector of a model."""

    model: Model
    pending: int
    total: int

    @property
    def share(self) -> float:
        """The share of records that have a vector of this model."""
        return 1.0 if not self.total else max(0.0, 1 - self.pending / self.total)


NewVectors = Mapping[int, Mapping[bytes, bytes]]
"""Half-precision vectors by model number and by text hash."""

NO_VECTORS: Final[NewVectors] = {}

Embed = Callable[[Model, Sequence[str]], Sequence[bytes] | None]
"""Returns half-precision vectors of texts, or None when this process cannot use the model."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How many records a write added, updated, left unchanged and removed, and the ids of those it was given."""

    added: int
    updated: int
    unchanged: int
    removed: int = 0
    ids: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The id of each record that was added, updated or left unchanged, in order; also of those that got one here."""

    @property
    def changed(self) -> int:
        """How many records are not as they were before."""
        return self.added + self.updated + self.removed


@dataclass(frozen=True, slots=True)
class TableCopy:
    """One table of a migration: its rows, how many this run copied, and the checksum that both sides have."""

    name: str
    rows: int
    copied: int
    checksum: str

    def to_dict(self) -> dict[str, Json]:
        return {"table": self.name, "rows": self.rows, "copied": self.copied, "checksum": self.checksum}


class FileRow(NamedTuple):
    """One reading of a file, as it was then. A tuple, because an index run compares tens of thousands."""

    folder: str
    """The key of the folder."""
    path: str
    """Relative to the folder."""
    target: str
    """The collection of an additional reading; empty for the reading by kind."""
    place: str
    """The parent of its records, and what their ids begin with."""
    other_parents: str
    """The further parents of its records, as JSON; empty if there are none."""
    reader: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    hash: bytes
    records: int
    """How many records of it have the place as their parent."""
    problem: str | None
    """Why the file has no records, if it could not be read as text."""


class LabelledText(NamedTuple):
    """The label of a record, and the words of its text."""

    label: str
    words: Words


class Change(NamedTuple):
    """One change of the feed. Applying it twice does no harm."""

    number: int
    key: int
    action: Literal["put", "delete", "vector"]
    """`put`: the record with this key was written. `delete`: it was removed or replaced. `vector`: it got a vector that
    it did not have when it was written."""


class Changes(NamedTuple):
    """A part of the feed, in order."""

    changes: Sequence[Change]
    through: int
    """Every change up to this number is in this part or an earlier one. A record that was deleted since appears only
    as `delete`."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an index promises beyond the rules above. A skipped test of the conformance kit names one of these."""

    scores: Literal["contract", "own"] = "contract"
    """`contract`: the scores of docs/ranking-contract.md. `own`: the server's own, of which only the order counts."""
    statistics: Literal["audience", "whole", "shard", "none"] = "audience"
    """Which records the document frequencies of a score come from; `none` for a score that needs no statistics."""
    lags: bool = False
    """Whether the index applies changes later, so that a buffer covers the last ones."""
    filters: frozenset[str] = FILTER_OPERATORS
    """The filter operators that the index applies itself. For the others it over-fetches, and the snapshot cuts."""
    waits: bool = False
    """Whether a call may wait on a network. Then the source runs in a thread of its own, under the deadline."""


# The source of truth.


class State(Protocol):
    """Pairs of keys and values beside the records, in the order of the keys, for the repositories."""

    def get(self, key: bytes) -> bytes | None: ...

    def scan(
        self, low: bytes, high: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """The pairs with low <= key < high, ascending, or descending with `reverse`."""
        ...


class WritableState(State, Protocol):
    """The state inside a transaction."""

    def put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None: ...

    def delete(self, keys: Iterable[bytes]) -> None: ...


class Transaction(Protocol):
    """One write, all or none. What it reads cannot change before it commits, because no other write runs meanwhile."""

    @property
    def result(self) -> WriteResult:
        """What the transaction has done so far."""
        ...

    @property
    def state(self) -> WritableState: ...

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records that exist, by full id."""
        ...

    def write(
        self,
        records: Iterable[Record | PreparedRecord],
        vectors: NewVectors = NO_VECTORS,
        *,
        remove: Iterable[str] = (),
    ) -> None:
        """Remove the records with these full ids, then add or replace records.

        A record that is stored as it is given is not written again, also when `remove` names it. A record without a
        vector in `vectors` and in the store is pending for every current model.
        """
        ...

    def child_ids(self, parent: str, *, collection: str | None = None, path: str | None = None) -> list[str]:
        """The full ids of the records with this parent; of one collection, or with one path."""
        ...

    def positions(self, parent: str) -> Iterator[tuple[str, int]]:
        """Full id and position of the records with this parent, last position first; read as they are used."""
        ...

    def current_facts(self, name: int) -> list[Record]:
        """The facts that have not ended and have this endpoint, which is the hash of a name."""
        ...

    def put_files(self, rows: Iterable[FileRow]) -> None:
        """Add or replace rows of the manifest of files."""
        ...

    def delete_files(self, rows: Iterable[FileRow]) -> None:
        """Delete the rows of files; their records are deleted separately."""
        ...


class Snapshot(Protocol):
    """All reads of one search, of one version of the records, as one audience sees them.

    For this audience, the snapshot behaves as if hidden records had never been stored.
    """

    @property
    def seq(self) -> int:
        """The number of the last change."""
        ...

    @property
    def audience(self) -> Filter:
        """Which records are visible."""
        ...

    @property
    def model(self) -> Model | None:
        """The active embedding model."""
        ...

    def abandon(self) -> None:
        """Keep the read transaction open for a reading thread that is left behind."""
        ...

    def ids(self, keys: Keys) -> list[bytes]:
        """The full id of each record as UTF-8, which sorts in the order of code points; empty for other keys."""
        ...

    def exists(self, keys: Keys) -> Mask:
        """Which of the keys belong to visible records."""
        ...

    def select(self, keys: Keys, where: Filter) -> Mask:
        """Which of the keys belong to visible records that match a filter. A key may be any number."""
        ...

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        """The visible records among these keys, by key."""
        ...

    def columns(self, keys: Keys, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The values of some fields of visible records: built-in fields, and top-level keys of the metadata."""
        ...

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        """The vector of each record by the active model, a row of zeros for a record without one."""
        ...

    def cosine_sample(self, query: NDArray[np.float32]) -> CosineSample:
        """The mean cosine of a query with a sample of the visible texts: those with the smallest hashes.

        So the sample depends on the texts alone. At most SAMPLE_RECORDS texts are in it, each once.
        """
        ...

    def siblings(self, record: Record, first: int, last: int) -> list[Record]:
        """The records with the same parent at these positions, in order; includes the record itself."""
        ...

    def siblings_of_kind(self, record: Record, kinds: Sequence[str]) -> list[Record]:
        """The records with the same parent and one of these kinds, in order."""
        ...

    def children(self, parent: str, collection: str) -> list[Record]:
        """The records of a collection with this parent, in order."""
        ...

    def adjacent(self, keys: Keys, where: Filter = EVERYTHING) -> dict[int, list[int]]:
        """For each record, the records of the same parent right before and after it that match a filter."""
        ...

    def records_matching(self, where: Filter) -> list[Record]:
        """The records that match a filter, ordered by id."""
        ...

    def keys(self, where: Filter) -> Keys:
        """The keys of the records that match a filter, in no order."""
        ...

    def page(self, where: Filter, limit: int, after: str | None = None) -> list[Record]:
        """The first `limit` records that match a filter and whose full ids are greater than `after`, by full id."""
        ...

    def text_counts(self, name: str, where: Filter = EVERYTHING) -> dict[str, int]:
        """The texts in a field of the records that match a filter, and how many records have each."""
        ...

    def iter_records(self) -> Iterator[Record]:
        """The visible records, ordered by id; read as they are used."""
        ...

    def sample(self, where: Filter, count: int) -> Keys:
        """The keys of at most `count` records that match a filter, evenly spaced."""
        ...

    def newest(self, where: Filter, count: int) -> Keys:
        """The keys of the records that match a filter and have the latest times, latest first.

        Records without a time come last. A backend may look only at the 20,000 records that were written last.
        """
        ...

    def hides_records_of(self, parent: str) -> bool:
        """Whether the audience may not see some record with this parent."""
        ...

    @property
    def has_files(self) -> bool:
        """Whether files are indexed."""
        ...

    def find_key(self, record_id: str) -> int | None:
        """The key of the visible record with this full id."""
        ...

    def matches(self, key: int, where: Filter) -> bool:
        """Whether a visible record matches a filter."""
        ...

    def count(self, where: Filter = EVERYTHING) -> int:
        """The number of visible records that match a filter."""
        ...

    def has_any(self, condition: Condition) -> bool:
        """Whether some visible record satisfies a condition; cheaper than counting."""
        ...

    def changes(self, after: int, limit: int) -> Changes:
        """The feed up to this version: at most `limit` changes after a number, of all records, visible or not.

        Raises ChangesLost when some of them are no longer known; the reader then begins again after 0.
        """
        ...

    def applied(self, index: str) -> int:
        """The last change that an index has recorded as applied, with `RecordsRole.set_applied`; 0 at first."""
        ...


class Models(Protocol):
    """The embedding models of one database, and the vectors that are still missing."""

    def current(self) -> list[Model]:
        """The active model, then the one being built."""
        ...

    def progress(self) -> list[ModelProgress]:
        """The progress of each current model."""
        ...

    def register(self, fingerprint: str, name: str, spec: str, dimensions: int) -> Model:
        """Make this the model of the database.

        It is active at once if there is no other model or no record; otherwise it is built while the old one answers.
        """
        ...

    def missing_vectors(
        self, hashes: Iterable[bytes], given: Mapping[str, Container[bytes]]
    ) -> list[tuple[Model, set[bytes]]]:
        """Every current model, and which of these text hashes have no vector of it; for a caller about to write.

        Hashes in `given`, by model fingerprint, are not looked up.
        """
        ...

    def pending_texts(self, model: int, limit: int) -> list[tuple[bytes, str]]:
        """Hash and text of some records that lack a vector, oldest first and without duplicates."""
        ...

    def add_late_vectors(self, model: int, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors of pending texts. Vectors of a retired model are dropped."""
        ...

    def activate_if_complete(self, model: int) -> bool:
        """Activate a model that is being built, if every record has its vector; whether it was activated."""
        ...


class FileManifest(Protocol):
    """The files that were indexed. Typed, because an index run compares tens of thousands of them with the disk."""

    def under(self, folder: str, path: str = "") -> Iterator[tuple[FileRow, bool]]:
        """The files of a folder at or below a path. The flag is False when some of a file's records were removed."""
        ...

    def parents_of(self, folder: str, path: str) -> list[str]:
        """The parents of all records of a file."""
        ...

    def places_named(self, names: frozenset[str]) -> list[str]:
        """The places of files whose last component is one of these names, sorted."""
        ...


class RecordsRole(Protocol):
    """The source of truth. Safe to use from several threads."""

    @property
    def location(self) -> str:
        """Where the records are, for messages. Holds no password."""
        ...

    @property
    def notices(self) -> Sequence[str]:
        """What was repaired since the store was opened."""
        ...

    @property
    def models(self) -> Models: ...

    @property
    def files(self) -> FileManifest: ...

    def transaction(self) -> AbstractContextManager[Transaction]:
        """One write: durable when the block ends, without effect when it raises. Other writers wait for its end."""
        ...

    def snapshot(self, audience: Filter = EVERYTHING) -> AbstractContextManager[Snapshot]:
        """A consistent snapshot: every earlier write that the audience may see, and nothing else."""
        ...

    def state(self) -> AbstractContextManager[State]:
        """The state of the repositories, in one version."""
        ...

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records that exist, by full id."""
        ...

    def iter_records(self) -> Iterator[Record]:
        """All records of one snapshot, ordered by id."""
        ...

    def count(self) -> int:
        """The number of records."""
        ...

    def has_pending_vectors(self) -> bool:
        """Whether any record lacks a vector."""
        ...

    @property
    def last_write_left_pending(self) -> bool:
        """Whether any record lacked a vector after the last write."""
        ...

    def set_applied(self, index: str, number: int) -> None:
        """Record that an index has applied all changes up to a number; deletes after it stay in the feed."""
        ...

    def close(self) -> None:
        """Stop all work and close the connections. A second call does nothing."""
        ...


# The derived indexes. Each is asked with the snapshot of the search.


class KeywordRole(Protocol):
    """Finds records that contain words."""

    @property
    def capabilities(self) -> Capabilities: ...

    def applied(self, snapshot: Snapshot) -> int:
        """The last change that the index itself covers; later ones come from the buffer."""
        ...

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        """The best records with any of the terms."""
        ...

    def scores(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        """The score of each record, 0 for a record without any of the terms."""
        ...

    def coverage(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        """The share of the query's information that each record has: the idf of the terms that it has, of all terms.

        nan when the index cannot tell, and for a query without terms.
        """
        ...

    def document_share(self, snapshot: Snapshot, term: int) -> float:
        """The share of visible records that contain a term, given by its hash; 0 when the index cannot tell."""
        ...


class VectorRole(Protocol):
    """Finds records by the cosine of their vectors and the vector of the query."""

    @property
    def capabilities(self) -> Capabilities: ...

    def applied(self, snapshot: Snapshot) -> int: ...

    def search(
        self, snapshot: Snapshot, query: NDArray[np.float32], limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        """The records nearest to a unit vector of the snapshot's model. Raises SourceError without a model."""
        ...

    def scores(self, snapshot: Snapshot, query: NDArray[np.float32], keys: Keys) -> Floats:
        """The cosine of each record, nan for a record without a vector."""
        ...


class GraphView(Protocol):
    """The names and facts of one snapshot. A name is given by its hash."""

    @property
    def has_names(self) -> bool:
        """Whether any record has a name, visible or not."""
        ...

    @property
    def has_facts(self) -> bool: ...

    def entities_named(self, names: Hashes, where: Filter = EVERYTHING) -> NameMatches:
        """The visible records with these names that match the filter."""
        ...

    def labelled_texts(self, rows: list[int]) -> dict[int, LabelledText]:
        """The label and the words of each record; the records must exist."""
        ...

    def synonyms(self, names: Keys, where: Filter) -> dict[int, list[int]]:
        """For each name of an entity that declares aliases, all names of that entity."""
        ...

    def known_endpoints(self, names: Keys) -> Mask:
        """Which of the names are an endpoint of some fact, visible or not."""
        ...

    def edges(
        self, names: Sequence[int], count: int, at: datetime, where: Filter, *, history: bool = False
    ) -> list[list[Edge]]:
        """The heaviest visible facts of each name that are valid `at` a time and match the filter.

        Heaviest first, and of equal weight the newest first. Without `history`, `at` is the present, and facts that
        begin later are included.
        """
        ...


class GraphRole(Protocol):
    """Finds records by their names, and facts by their endpoints."""

    @property
    def capabilities(self) -> Capabilities: ...

    def applied(self, snapshot: Snapshot) -> int: ...

    def view(self, snapshot: Snapshot) -> GraphView: ...


# Indexes on servers. A binding of a server implements `IndexServer` and `ServerIndex`; `stores/buffered_index.py` makes
# a role of them.


class Document(NamedTuple):
    """A record as an index on a server gets it."""

    key: int
    record: Record
    vector: NDArray[np.float32]
    """By the active model; zeros while there is none."""


T = TypeVar("T")
QueryT = TypeVar("QueryT")
AskedT = TypeVar("AskedT", contravariant=True)


class ServerIndex(Protocol[AskedT]):
    """An index on a server. A failure to reach it raises SourceError."""

    @property
    def name(self) -> str:
        """Identifies the index in the source of truth. An index of another kind or for another model has another."""
        ...

    @property
    def server(self) -> IndexServer:
        """The connection that its searches go through."""
        ...

    def applied(self) -> int:
        """The number that the last `apply` stored on the server; 0 for an index that is empty or lost."""
        ...

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        """Store and delete documents under their keys, then the number. Applying a batch twice does no harm."""
        ...

    def reset(self) -> None:
        """Delete everything."""
        ...

    def score(self, query: AskedT, documents: Sequence[Document]) -> Floats:
        """The scores of documents on the scale of a search, computed in this process; nan where one does not match."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ServerSearch:
    """One search of one index on a server: the best documents, best first."""

    index: ServerIndex[Any]
    query: Any
    """A KeywordQuery or a unit vector, as the index takes it."""
    limit: int
    where: Filter
    """Has only operators that the capabilities of the role name, and it holds what the audience may see."""
    applied: int = 0
    """The last change that the index must have. A server that has lost some of them answers with an error."""


ServerAnswer: TypeAlias = ScoredKeys | SourceError
"""What a server answers to one search; no key appears twice, and no score is nan."""


class IndexServer(Protocol):
    """A connection to a server, which the indexes of a database share. Any thread may use it.

    Opening it must not need the server: one that is down at the start is reported as degraded, and used when it is back.
    """

    def search_many(self, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
        """The answer to each search, all in one round trip. An error is that of one search; raised, that of all.

        At most `limit` documents, best first; ties in any order. It returns fewer only when no other document matches.
        """
        ...

    def check(self) -> list[Finding]:
        """What is wrong, in words: unreachable, wrong credentials, an extension, a version or an index. Never raises."""
        ...

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class IndexOf(Generic[QueryT]):
    """A role on a server: its index for each embedding model.

    Vectors of two models never mix, so each model has an index of its own, and after a change of model the new one is
    filled from the beginning.
    """

    server: IndexServer
    capabilities: Capabilities
    find: Callable[[Model | None], ServerIndex[QueryT] | None]
    """Returns the index for the active model; None where there can be none."""


Steps: TypeAlias = Generator[Sequence[ServerSearch], Sequence[ServerAnswer], T]
"""A search that yields the server searches that it needs next, and receives their answers. So one request can hold what
several searches need (`stores/search_steps.py`)."""


@runtime_checkable
class SteppedIndex(Protocol):
    """A keyword or vector role on a server. Sources whose indexes have the same server are asked in one request."""

    @property
    def server(self) -> IndexServer: ...

    def steps(
        self, snapshot: Snapshot, query: Any, limit: int, where: Filter = EVERYTHING
    ) -> Steps[ScoredKeys]:
        """`search`, step by step."""
        ...


# Background work, checks, and the four roles together.


class Cancelled(Exception):
    """Work was stopped in the middle because the store closes; a later process repeats it."""


class Upkeep(Protocol):
    """Work that can wait. None of it changes an answer, and it may stop at any point."""

    def flush(self, at_least: int = 1, *, wait: bool = False) -> None:
        """Bring the indexes up to date where at least this many changes are missing; `wait` for another process."""
        ...

    def merge(self, *, whole: bool = False, max_unmerged: int = 0, wait: bool = False) -> None:
        """Merge segments where there are more than `max_unmerged`; into one segment when `whole`."""
        ...

    def purge(self) -> None:
        """Delete what no reader needs any more."""
        ...

    def rest(self) -> None:
        """Do what waits for a pause, and release what only work in progress needs; called when there is none."""
        ...

    def cancel(self) -> None:
        """Make work in progress raise Cancelled."""
        ...


CheckProgress = Callable[[str, int, int], None]
"""Called with the name of the check, the number of records done and their total."""


class Check(Protocol):
    """Compares derived data with the records."""

    def __call__(
        self, *, quick: bool = False, progress: CheckProgress | None = None, embed: Embed | None = None
    ) -> list[Finding]:
        """`quick` compares a sample. With `embed`, some texts are embedded again and compared."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """The four roles of one database, and what keeps them in order."""

    records: RecordsRole
    keyword: KeywordRole
    vector: VectorRole
    graph: GraphRole
    upkeep: tuple[Upkeep, ...] = ()
    check: Check | None = None
    """None where nothing is derived that could be wrong."""
    bindings: Mapping[str, str] = field(default_factory=dict)
    """What each role is bound to, by name, for people: `sqlite`, `postgres`, `local`."""
    servers: Mapping[str, IndexServer] = field(default_factory=dict)
    """The servers of the roles and of attached collections, by name. They are closed with the database."""
    attached: Mapping[str, Any] = field(default_factory=dict)
    """The attached collections by name: `AttachedCollection` of `stores/attached.py`."""
