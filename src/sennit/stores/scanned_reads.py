"""What follows from the records alone: a start for a new backend, which overrides what it does faster.

A backend writes what only it can know: how records, vectors, state and changes are stored. Everything that a scan of the
records answers has a default here, so that the contract is wide for the engine and small for a backend.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Condition, Filter, flatten, matches
from sennit.ranking.calibration import SAMPLE_RECORDS, CosineSample
from sennit.ranking.fusion import order
from sennit.ranking.stages import read_fields
from sennit.records import Record
from sennit.stores.contract import (
    Capabilities,
    FileRow,
    Floats,
    Keys,
    Mask,
    Model,
    Models,
    ScoredKeys,
    Snapshot,
)
from sennit.stores.graph_rows import NEVER, edge_rows

T = TypeVar("T")
QueryT = TypeVar("QueryT")


class RecordsDefaults(ABC):
    """What the records role can answer by its snapshots and models."""

    models: Models
    notices: Sequence[str] = ()

    @abstractmethod
    def snapshot(self, audience: Filter = EVERYTHING) -> AbstractContextManager[Snapshot]: ...

    def with_snapshot(self, audience: Filter, work: Callable[[Snapshot], T]) -> T:
        with self.snapshot(audience) as snapshot:
            return work(snapshot)

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        with self.snapshot() as snapshot:
            keys = {name: snapshot.find_key(name) for name in ids}
            found = snapshot.records([key for key in keys.values() if key is not None])
        return {name: found[key] for name, key in keys.items() if key is not None}

    def iter_records(self) -> Iterator[Record]:
        with self.snapshot() as snapshot:
            yield from snapshot.iter_records()

    def count(self) -> int:
        with self.snapshot() as snapshot:
            return snapshot.count()

    def has_pending_vectors(self) -> bool:
        return any(one.pending for one in self.models.progress())

    @property
    def last_write_left_pending(self) -> bool:
        return self.has_pending_vectors()

    def close(self) -> None:  # noqa: B027 - a default
        """Nothing is open: a backend in memory keeps its data, and may be opened again."""


class ScannedState:
    """The reads of the `State` over a dict of all of its pairs."""

    def __init__(self, entries: dict[bytes, bytes]) -> None:
        self.entries = entries

    def get(self, key: bytes) -> bytes | None:
        return self.entries.get(key)

    def scan(
        self, low: bytes, high: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        found = (pair for pair in self.entries.items() if low <= pair[0] < high)
        return sorted(found, reverse=reverse)[:limit]


class ScannedTransaction:
    """The reads of a `Transaction` that need nothing but the stored records."""

    stored: Mapping[int, Record]
    """All records by key, as the transaction has changed them."""

    def child_ids(self, parent: str, *, collection: str | None = None, path: str | None = None) -> list[str]:
        own = (one for one in self.stored.values() if one.parent == parent)
        kept = (one for one in own if collection in (None, one.collection) and path in (None, one.path))
        return [one.full_id for one in kept]

    def positions(self, parent: str) -> Iterator[tuple[str, int]]:
        own = [one for one in self.stored.values() if one.parent == parent and one.position is not None]
        placed = sorted(((one.position or 0, one.full_id) for one in own), reverse=True)
        return ((name, position) for position, name in placed)

    def current_facts(self, name: int) -> list[Record]:
        return [
            record
            for key, record in self.stored.items()
            if any(edge[:2] == (name, NEVER) for edge in edge_rows(key, record))
        ]


class ScannedFiles:
    """The manifest of files over all of its rows, and all records."""

    def __init__(self, read: Callable[[], tuple[Collection[FileRow], Collection[Record]]]) -> None:
        """`read` returns both, of one version."""
        self._read = read

    def under(self, folder: str, path: str = "") -> Iterator[tuple[FileRow, bool]]:
        rows, records = self._read()
        for row in rows:
            if row.folder == folder and (not path or row.path == path or row.path.startswith(f"{path}/")):
                yield row, sum(one.parent == row.place for one in records) >= row.records

    def parents_of(self, folder: str, path: str) -> list[str]:
        own = [row for row in self._read()[0] if (row.folder, row.path) == (folder, path)]
        return [one for row in own for one in (row.place, *json.loads(row.other_parents or "[]"))]

    def places_named(self, names: frozenset[str]) -> list[str]:
        rows = self._read()[0]
        return sorted(row.place for row in rows if not row.target and row.place.rpartition("/")[2] in names)


class ScannedIndex:
    """An index that asks the snapshot for everything, and so has applied all changes."""

    capabilities = Capabilities(statistics="none")

    def applied(self, snapshot: Snapshot) -> int:
        return snapshot.seq


class ScoredIndex(ScannedIndex, ABC, Generic[QueryT]):
    """A search that scores every record of the filter, by the `scores` of a keyword or vector role."""

    @abstractmethod
    def scores(self, snapshot: Snapshot, query: QueryT, keys: Keys) -> Floats: ...

    @abstractmethod
    def found(self, scores: Floats) -> Mask:
        """Which of the scores belong to records that match at all."""

    def search(self, snapshot: Snapshot, query: QueryT, limit: int, where: Filter = EVERYTHING) -> ScoredKeys:
        keys = snapshot.keys(where)
        scores = self.scores(snapshot, query, keys)
        keys, scores = keys[self.found(scores)], scores[self.found(scores)]
        first = order(keys, scores, snapshot.ids, limit)
        return ScoredKeys(keys[first], scores[first])


class ScannedReads(ABC):
    """The reads of a `Snapshot` that need nothing but its records and their vectors."""

    def __init__(self, stored: Mapping[int, Record], audience: Filter, model: Model | None) -> None:
        self.stored = stored
        self.audience = audience
        self.model = model
        self.visible = {key: one for key, one in stored.items() if matches(audience, one)}
        """The records that the audience may see, by key."""

    @abstractmethod
    def embedding_hash(self, key: int) -> bytes:
        """Under which hash the vectors of a visible record are."""

    @abstractmethod
    def stored_vector(self, model: Model, key: int) -> bytes | None:
        """The half-precision vector of a visible record, if it has one."""

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        model = self.model
        out = np.zeros((len(keys), 0 if model is None else model.dimensions), np.float32)
        for at, key in enumerate(keys.tolist()):
            stored = self.stored_vector(model, key) if model and key in self.visible else None
            if stored is not None:
                out[at] = np.frombuffer(stored, np.float16)
        return out

    def abandon(self) -> None:  # noqa: B027 - a default
        """Nothing is open that a thread could need."""

    def cosine_sample(self, query: NDArray[np.float32]) -> CosineSample:
        texts = {self.embedding_hash(key): key for key in sorted(self.visible, reverse=True)}
        chosen = [texts[digest] for digest in sorted(texts)[:SAMPLE_RECORDS]]
        vectors = self.vectors(np.array(chosen, np.int64))
        vectors = vectors[vectors.any(axis=1)]
        if not len(vectors):
            return CosineSample(0.0, 0)
        mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        return CosineSample(float(mean @ query), len(vectors))

    def hides_records_of(self, parent: str) -> bool:
        return any(one.parent == parent and key not in self.visible for key, one in self.stored.items())

    def ids(self, keys: Keys) -> list[bytes]:
        visible = self.visible
        return [visible[key].full_id.encode() if key in visible else b"" for key in keys.tolist()]

    def exists(self, keys: Keys) -> Mask:
        return np.array([key in self.visible for key in keys.tolist()], bool)

    def select(self, keys: Keys, where: Filter) -> Mask:
        return np.array([self.matches(key, where) for key in keys.tolist()], bool)

    def matches(self, key: int, where: Filter) -> bool:
        return key in self.visible and matches(where, self.visible[key])

    def keys(self, where: Filter) -> Keys:
        return np.array(sorted(key for key in self.visible if self.matches(key, where)), np.int64)

    def count(self, where: Filter = EVERYTHING) -> int:
        return sum(self.matches(key, where) for key in self.visible)

    def has_any(self, condition: Condition) -> bool:
        return any(self.matches(key, condition) for key in self.visible)

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        return {key: self.visible[key] for key in keys if key in self.visible}

    def records_matching(self, where: Filter) -> list[Record]:
        return sorted(self.records(self.keys(where).tolist()).values(), key=lambda one: one.id)

    def iter_records(self) -> Iterator[Record]:
        return iter(sorted(self.visible.values(), key=lambda record: record.full_id))

    def page(self, where: Filter, limit: int, after: str | None = None) -> list[Record]:
        found = (one for one in self.iter_records() if matches(where, one))
        return list(islice((one for one in found if after is None or one.full_id > after), limit))

    def columns(self, keys: Keys, names: Sequence[str]) -> list[tuple[Any, ...]]:
        if not self.exists(keys).all():
            raise SourceError("a source requested a record that the caller may not see")
        return [read_fields(self.visible[key], names) for key in keys.tolist()]

    def text_counts(self, name: str, where: Filter = EVERYTHING) -> dict[str, int]:
        kept = [one for one in self.visible.values() if matches(where, one)]
        values = (value for one in kept for field, value in set(flatten(one)) if field == name)
        return Counter(value for value in values if isinstance(value, str))

    def children(self, parent: str | None, collection: str) -> list[Record]:
        own = (one for one in self.visible.values() if (one.parent, one.collection) == (parent, collection))
        return sorted((one for one in own if parent), key=lambda one: (one.position or 0, one.id))

    def siblings(self, record: Record, first: int, last: int) -> list[Record]:
        near = self.children(record.parent, record.collection)
        return [one for one in near if one.position is not None and first <= one.position <= last]

    def siblings_of_kind(self, record: Record, kinds: Sequence[str]) -> list[Record]:
        return [one for one in self.children(record.parent, record.collection) if one.kind in kinds]

    def adjacent(self, keys: Keys, where: Filter = EVERYTHING) -> dict[int, list[int]]:
        out: dict[int, list[int]] = {}
        for key, record in self.records(keys.tolist()).items():
            if record.position is None:
                continue
            near = self.siblings(record, record.position - 1, record.position + 1)
            found = [self.find_key(one.full_id) for one in near if one.position != record.position]
            if kept := [one for one in found if one is not None and self.matches(one, where)]:
                out[key] = kept
        return out

    def sample(self, where: Filter, count: int) -> Keys:
        keys = self.keys(where)
        return keys[np.unique(np.linspace(0, len(keys) - 1, min(count, len(keys))).astype(np.intp))]

    def newest(self, where: Filter, count: int) -> Keys:
        def age(key: int) -> tuple[float, int]:
            time = self.visible[key].timestamp
            return (math.inf if time is None else -time.timestamp(), -key)

        return np.array(sorted(self.keys(where).tolist(), key=age)[:count], np.int64)

    def find_key(self, record_id: str) -> int | None:
        return next((key for key, record in self.visible.items() if record.full_id == record_id), None)
