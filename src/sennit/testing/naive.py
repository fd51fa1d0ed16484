"""A backend in plain dicts and loops, written from `stores/contract.py` alone. It shows that the contract is enough.

Its indexes ask a snapshot for everything, so they also work with the snapshots of other backends. It is as slow as it
looks.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import threading
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import count_terms
from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Condition, Filter, flatten, matches
from sennit.graph.entity_linking import NameMatches
from sennit.graph.names import DECLARED, MAX_TEXT_CHARACTERS, Hashes, as_signed, record_names, words_of
from sennit.graph.traversal import Edge
from sennit.ranking.calibration import SAMPLE_RECORDS, CosineSample
from sennit.ranking.fusion import order
from sennit.ranking.stages import read_fields
from sennit.records import Record, split_id
from sennit.stores.contract import (
    NO_VECTORS,
    Backend,
    Capabilities,
    Change,
    Changes,
    FileRow,
    Floats,
    Keys,
    KeywordQuery,
    LabelledText,
    Mask,
    Model,
    ModelProgress,
    NewVectors,
    ScoredKeys,
    Snapshot,
    WriteResult,
)
from sennit.stores.graph_rows import NEVER, EdgeRow, edge_rows, microseconds
from sennit.stores.prepared_records import PreparedRecord, prepare_record


@dataclass
class _Data:
    """One version of everything. A transaction changes a copy, which replaces the original when it commits."""

    seq: int = 0
    records: dict[int, Record] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    hashes: dict[int, bytes] = field(default_factory=dict)
    """Under which hash the vectors of each record are."""
    changes: list[Change] = field(default_factory=list)
    models: dict[int, Model] = field(default_factory=dict)
    vectors: dict[tuple[int, bytes], bytes] = field(default_factory=dict)
    pending: dict[tuple[int, int], bytes] = field(default_factory=dict)
    entries: dict[bytes, bytes] = field(default_factory=dict)
    files: dict[tuple[str, str, str], FileRow] = field(default_factory=dict)
    applied: dict[str, int] = field(default_factory=dict)

    def copy(self) -> _Data:
        return replace(self, **{one.name: copy.copy(getattr(self, one.name)) for one in fields(self)})

    def current_models(self) -> list[Model]:
        return sorted((m for m in self.models.values() if m.state != "retired"), key=lambda m: m.state)

    def next_number(self) -> int:
        self.seq += 1
        return self.seq


class NaiveState:
    """Keys and values in a dict."""

    def __init__(self, entries: dict[bytes, bytes]) -> None:
        self._entries = entries

    def get(self, key: bytes) -> bytes | None:
        return self._entries.get(key)

    def scan(
        self, low: bytes, high: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        found = (pair for pair in self._entries.items() if low <= pair[0] < high)
        return sorted(found, reverse=reverse)[:limit]

    def put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._entries.update(pairs)

    def delete(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._entries.pop(key, None)


class NaiveTransaction:
    """Changes a copy of the data."""

    def __init__(self, data: _Data) -> None:
        self.data = data
        self.result = WriteResult(0, 0, 0)
        self.state = NaiveState(data.entries)

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        return {name: self.data.records[self.data.keys[name]] for name in ids if name in self.data.keys}

    def write(
        self,
        records: Iterable[Record | PreparedRecord],
        vectors: NewVectors = NO_VECTORS,
        *,
        remove: Iterable[str] = (),
    ) -> None:
        data, result = self.data, self.result
        latest = {one.id: one for one in map(prepare_record, records)}
        for name in dict.fromkeys(remove):
            if name in data.keys and name not in latest:
                self._delete(name)
                result = replace(result, removed=result.removed + 1)
        stored = self.get(latest)
        same = set()
        for name, record in stored.items():
            digest = data.hashes[data.keys[name]]
            new = latest[name] = latest[name].inherit_vector(digest)
            if (bytes.fromhex(record.content_hash), digest) == (new.content_hash, new.embedding_hash):
                same.add(name)
            else:
                self._delete(name)
        for name, prepared in latest.items():
            if name not in same:
                self._insert(prepared, vectors)
        self.result = replace(
            result,
            added=result.added + len(latest) - len(stored),
            updated=result.updated + len(stored) - len(same),
            unchanged=result.unchanged + len(same),
            ids=(*result.ids, *(split_id(name)[1] for name in latest)),
        )

    def _insert(self, prepared: PreparedRecord, vectors: NewVectors) -> None:
        data = self.data
        key = data.keys[prepared.id] = data.next_number()
        data.records[key] = prepared.record
        data.changes.append(Change(key, key, "put"))
        digest = data.hashes[key] = prepared.embedding_hash
        for model in data.current_models():
            given = vectors.get(model.number, {}).get(digest)
            if given is not None:
                data.vectors.setdefault((model.number, digest), given)
            elif (model.number, digest) not in data.vectors:
                data.pending[model.number, key] = digest

    def _delete(self, name: str) -> None:
        data = self.data
        key = data.keys.pop(name)
        digest = data.hashes.pop(key)
        del data.records[key]
        data.changes = [change for change in data.changes if change.key != key]
        data.changes.append(Change(data.next_number(), key, "delete"))
        data.pending = {pair: one for pair, one in data.pending.items() if pair[1] != key}
        if digest not in data.hashes.values():
            data.vectors = {pair: vector for pair, vector in data.vectors.items() if pair[1] != digest}

    def child_ids(self, parent: str, *, collection: str | None = None, path: str | None = None) -> list[str]:
        own = (one for one in self.data.records.values() if one.parent == parent)
        kept = (one for one in own if collection in (None, one.collection) and path in (None, one.path))
        return [one.full_id for one in kept]

    def positions(self, parent: str) -> Iterator[tuple[str, int]]:
        own = [one for one in self.data.records.values() if one.parent == parent and one.position is not None]
        placed = sorted(((one.position or 0, one.full_id) for one in own), reverse=True)
        return ((name, position) for position, name in placed)

    def current_facts(self, name: int) -> list[Record]:
        return [
            record
            for key, record in self.data.records.items()
            if any(edge[:2] == (name, NEVER) for edge in edge_rows(key, record))
        ]

    def put_files(self, rows: Iterable[FileRow]) -> None:
        self.data.files.update((row[:3], row) for row in rows)

    def delete_files(self, rows: Iterable[FileRow]) -> None:
        for row in rows:
            self.data.files.pop(row[:3], None)


class NaiveSnapshot:
    """One version, as one audience sees it."""

    def __init__(self, data: _Data, audience: Filter) -> None:
        self._data = data
        self.audience = audience
        self.seq = data.seq
        self.model = next((model for model in data.models.values() if model.state == "active"), None)
        self._visible = {key: one for key, one in data.records.items() if matches(audience, one)}

    def abandon(self) -> None:
        """Nothing is open that a thread could need."""

    def ids(self, keys: Keys) -> list[bytes]:
        visible = self._visible
        return [visible[key].full_id.encode() if key in visible else b"" for key in keys.tolist()]

    def exists(self, keys: Keys) -> Mask:
        return np.array([key in self._visible for key in keys.tolist()], bool)

    def select(self, keys: Keys, where: Filter) -> Mask:
        return np.array([self.matches(key, where) for key in keys.tolist()], bool)

    def matches(self, key: int, where: Filter) -> bool:
        return key in self._visible and matches(where, self._visible[key])

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        return {key: self._visible[key] for key in keys if key in self._visible}

    def columns(self, keys: Keys, names: Sequence[str]) -> list[tuple[Any, ...]]:
        if not self.exists(keys).all():
            raise SourceError("a source requested a record that the caller may not see")
        return [read_fields(self._visible[key], names) for key in keys.tolist()]

    def vectors(self, keys: Keys) -> NDArray[np.float32]:
        if self.model is None:
            return np.zeros((len(keys), 0), np.float32)
        out = np.zeros((len(keys), self.model.dimensions), np.float32)
        for at, key in enumerate(keys.tolist()):
            digest = self._data.hashes[key] if key in self._visible else b""
            stored = self._data.vectors.get((self.model.number, digest))
            if stored is not None:
                out[at] = np.frombuffer(stored, np.float16)
        return out

    def cosine_sample(self, query: NDArray[np.float32]) -> CosineSample:
        texts = {self._data.hashes[key]: key for key in sorted(self._visible, reverse=True)}
        vectors = self.vectors(
            np.array([texts[digest] for digest in sorted(texts)[:SAMPLE_RECORDS]], np.int64)
        )
        vectors = vectors[vectors.any(axis=1)]
        if not len(vectors):
            return CosineSample(0.0, 0)
        mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        return CosineSample(float(mean @ query), len(vectors))

    def children(self, parent: str | None, collection: str) -> list[Record]:
        found = [
            one for one in self._visible.values() if (one.parent, one.collection) == (parent, collection)
        ]
        return sorted((one for one in found if parent), key=lambda one: (one.position or 0, one.id))

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
            found = [self._data.keys[one.full_id] for one in near if one.position != record.position]
            if kept := [one for one in found if self.matches(one, where)]:
                out[key] = kept
        return out

    def records_matching(self, where: Filter) -> list[Record]:
        return sorted(self.records(self.keys(where).tolist()).values(), key=lambda one: one.id)

    def keys(self, where: Filter) -> Keys:
        return np.array(sorted(key for key in self._visible if self.matches(key, where)), np.int64)

    def page(self, where: Filter, limit: int, after: str | None = None) -> list[Record]:
        found = (one for one in self.iter_records() if matches(where, one))
        return list(islice((one for one in found if after is None or one.full_id > after), limit))

    def text_counts(self, name: str, where: Filter = EVERYTHING) -> dict[str, int]:
        kept = (one for one in self._visible.values() if matches(where, one))
        return Counter(
            value
            for one in kept
            for field, value in set(flatten(one))
            if field == name and isinstance(value, str)
        )

    def has_any(self, condition: Condition) -> bool:
        return self.count(condition) > 0

    def iter_records(self) -> Iterator[Record]:
        return iter(sorted(self._visible.values(), key=lambda record: record.full_id))

    def sample(self, where: Filter, count: int) -> Keys:
        keys = self.keys(where)
        return keys[np.unique(np.linspace(0, len(keys) - 1, min(count, len(keys))).astype(np.intp))]

    def newest(self, where: Filter, count: int) -> Keys:
        def age(key: int) -> tuple[float, int]:
            time = self._visible[key].timestamp
            return (math.inf if time is None else -time.timestamp(), -key)

        return np.array(sorted(self.keys(where).tolist(), key=age)[:count], np.int64)

    @property
    def has_files(self) -> bool:
        return bool(self._data.files)

    def hides_records_of(self, parent: str) -> bool:
        return any(
            one.parent == parent and key not in self._visible for key, one in self._data.records.items()
        )

    def find_key(self, record_id: str) -> int | None:
        key = self._data.keys.get(record_id)
        return key if key in self._visible else None

    def count(self, where: Filter = EVERYTHING) -> int:
        return sum(self.matches(key, where) for key in self._visible)

    def changes(self, after: int, limit: int) -> Changes:
        found = [change for change in self._data.changes if change.number > after]
        return Changes(found[:limit], found[limit - 1].number if len(found) > limit else self.seq)

    def applied(self, index: str) -> int:
        return self._data.applied.get(index, 0)


class NaiveRecords:
    """The records role, with its models and its manifest of files."""

    location = "a naive backend"
    notices: Sequence[str] = ()

    def __init__(self) -> None:
        self._data = _Data()
        self._lock = threading.RLock()
        self.models = self.files = self

    @contextlib.contextmanager
    def transaction(self) -> Iterator[NaiveTransaction]:
        with self._lock:
            transaction = NaiveTransaction(self._data.copy())
            yield transaction
            self._data = transaction.data

    @contextlib.contextmanager
    def snapshot(self, audience: Filter = EVERYTHING) -> Iterator[NaiveSnapshot]:
        yield NaiveSnapshot(self._data, audience)

    @contextlib.contextmanager
    def state(self) -> Iterator[NaiveState]:
        yield NaiveState(self._data.entries)

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        return NaiveTransaction(self._data).get(ids)

    def iter_records(self) -> Iterator[Record]:
        return NaiveSnapshot(self._data, EVERYTHING).iter_records()

    def count(self) -> int:
        return len(self._data.records)

    def has_pending_vectors(self) -> bool:
        return bool(self._data.pending)

    @property
    def last_write_left_pending(self) -> bool:
        return self.has_pending_vectors()

    def set_applied(self, index: str, number: int) -> None:
        with self.transaction() as transaction:
            transaction.data.applied[index] = number

    def close(self) -> None:
        """The data stays, so that a test can open the backend again."""

    # The manifest of files.

    def under(self, folder: str, path: str = "") -> Iterator[tuple[FileRow, bool]]:
        data = self._data
        for row in data.files.values():
            if row.folder == folder and (not path or row.path == path or row.path.startswith(f"{path}/")):
                yield row, sum(one.parent == row.place for one in data.records.values()) >= row.records

    def parents_of(self, folder: str, path: str) -> list[str]:
        own = [row for row in self._data.files.values() if (row.folder, row.path) == (folder, path)]
        return [one for row in own for one in (row.place, *json.loads(row.other_parents or "[]"))]

    def places_named(self, names: frozenset[str]) -> list[str]:
        rows = self._data.files.values()
        return sorted(row.place for row in rows if not row.target and row.place.rpartition("/")[2] in names)

    # The models.

    def current(self) -> list[Model]:
        return self._data.current_models()

    def progress(self) -> list[ModelProgress]:
        pending = [number for number, _ in self._data.pending]
        return [ModelProgress(model, pending.count(model.number), self.count()) for model in self.current()]

    def register(self, fingerprint: str, name: str, spec: str, dimensions: int) -> Model:
        with self.transaction() as transaction:
            data = transaction.data
            known = {model.fingerprint: model for model in data.current_models()}
            active = next((model for model in known.values() if model.state == "active"), None)
            if fingerprint not in known or active is known[fingerprint]:
                for model in known.values():
                    if model.state == "building":
                        _retire(data, model)
            if fingerprint in known:
                return data.models[known[fingerprint].number]
            number = len(data.models) + 1
            data.models[number] = Model(number, fingerprint, name, spec, dimensions, "building")
            for key, digest in data.hashes.items():
                data.pending[number, key] = digest
            if active is None or not data.records:
                _activate(data, number)
            return data.models[number]

    def missing_vectors(
        self, hashes: Iterable[bytes], given: Mapping[str, Container[bytes]]
    ) -> list[tuple[Model, set[bytes]]]:
        stored, wanted = self._data.vectors, list(hashes)
        return [
            (m, {d for d in wanted if d not in given.get(m.fingerprint, ()) and (m.number, d) not in stored})
            for m in self.current()
        ]

    def pending_texts(self, model: int, limit: int) -> list[tuple[bytes, str]]:
        data = self._data
        found = {d: data.records[key].embedding_text for (m, key), d in data.pending.items() if m == model}
        return list(found.items())[:limit]

    def add_late_vectors(self, model: int, vectors: Mapping[bytes, bytes]) -> None:
        with self.transaction() as transaction:
            data = transaction.data
            if model not in {one.number for one in data.current_models()}:
                return
            for (number, key), digest in list(data.pending.items()):
                if number == model and digest in vectors:
                    data.vectors[model, digest] = vectors[digest]
                    del data.pending[number, key]
                    data.changes.append(Change(data.next_number(), key, "vector"))

    def activate_if_complete(self, model: int) -> bool:
        with self.transaction() as transaction:
            data = transaction.data
            complete = not any(number == model for number, _ in data.pending)
            if not complete or data.models[model].state != "building":
                return False
            _activate(data, model)
            return True


def _retire(data: _Data, model: Model) -> None:
    data.models[model.number] = replace(model, state="retired")
    data.pending = {pair: one for pair, one in data.pending.items() if pair[0] != model.number}
    data.vectors = {pair: one for pair, one in data.vectors.items() if pair[0] != model.number}


def _activate(data: _Data, number: int) -> None:
    for model in data.current_models():
        if model.state == "active":
            _retire(data, model)
    data.models[number] = replace(data.models[number], state="active")
    data.next_number()


class _UpToDate:
    """An index that asks the snapshot for everything has applied all changes."""

    capabilities = Capabilities(statistics="none")

    def applied(self, snapshot: Snapshot) -> int:
        return snapshot.seq


class NaiveKeyword(_UpToDate):
    """BM25 by the ranking contract, in single precision as the formula is summed there."""

    capabilities = Capabilities()

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        keys = snapshot.keys(where)
        scores = self.scores(snapshot, query, keys)
        return _best(snapshot, keys[scores > 0], scores[scores > 0], limit)

    def scores(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        documents = _documents(snapshot)
        bm25, count = query.bm25, max(len(documents), 1)
        text, title = bm25.field_weights
        average = sum(text * one[1] + title * one[3] for one in documents.values()) / count
        slope = np.float32(bm25.k1 * bm25.b / average if average else 0.0)
        base = np.float32(max(bm25.k1 * (1 - bm25.b), 1e-6))
        weights = []
        for term, weight in query.terms:
            frequency = sum(term in one[0] or term in one[2] for one in documents.values())
            idf = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
            weights.append((idf * weight * (bm25.k1 + 1), term))
        out = np.zeros(len(keys), np.float64)
        for at, key in enumerate(keys.tolist()):
            counts, length, title_counts, title_length = documents.get(key, ({}, 0, {}, 0))
            total = np.float32(0)
            for weight, term in sorted(weights, key=lambda pair: (-pair[0], pair[1])):
                tf = np.float32(text * counts.get(term, 0) + title * title_counts.get(term, 0))
                if tf:
                    norm = np.float32(text * length + title * title_length) * slope + base + tf
                    total += tf / norm * np.float32(weight)
            out[at] = total
        return out

    def coverage(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:  # noqa: ARG002
        return np.full(len(keys), np.nan)

    def document_share(self, snapshot: Snapshot, term: int) -> float:
        documents = _documents(snapshot)
        return sum(term in one[0] or term in one[2] for one in documents.values()) / max(len(documents), 1)


def _documents(snapshot: Snapshot) -> dict[int, tuple[dict[int, int], int, dict[int, int], int]]:
    """Term counts and length of text and title, for every visible record."""
    found = snapshot.records(snapshot.keys(EVERYTHING).tolist())
    return {key: (*count_terms(one.text), *count_terms(one.title)) for key, one in found.items()}


class NaiveVector(_UpToDate):
    """The cosine with every vector."""

    def search(
        self, snapshot: Snapshot, query: NDArray[np.float32], limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        if snapshot.model is None:
            raise SourceError("no vectors: this database has no embedding model")
        keys = snapshot.keys(where)
        scores = self.scores(snapshot, query, keys)
        found = ~np.isnan(scores)
        return _best(snapshot, keys[found], scores[found], limit)

    def scores(self, snapshot: Snapshot, query: NDArray[np.float32], keys: Keys) -> Floats:
        vectors = snapshot.vectors(keys)
        if not vectors.shape[1]:
            return np.full(len(keys), np.nan)
        return np.where(vectors.any(axis=1), np.einsum("ij,j->i", vectors, query), np.nan).astype(np.float64)


def _best(snapshot: Snapshot, keys: Keys, scores: Floats, limit: int) -> ScoredKeys:
    best = order(keys, scores, snapshot.ids, limit)
    return ScoredKeys(keys[best], scores[best])


class NaiveGraph(_UpToDate):
    """Names and facts, derived from all visible records at every question."""

    def view(self, snapshot: Snapshot) -> NaiveGraphView:
        return NaiveGraphView(snapshot)


class NaiveGraphView:
    """The names and facts of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._records = snapshot.records(snapshot.keys(EVERYTHING).tolist())
        self._names = {key: dict(record_names(record)) for key, record in self._records.items()}
        self._edges: list[EdgeRow] = [
            edge for key, record in self._records.items() for edge in edge_rows(key, record)
        ]
        self.has_names = any(self._names.values())
        self.has_facts = bool(self._edges)

    def entities_named(self, names: Hashes, where: Filter = EVERYTHING) -> NameMatches:
        found = [
            (which, key, own[name])
            for which, name in enumerate(as_signed(names).tolist())
            for key, own in sorted(self._names.items())
            if name in own and self._snapshot.matches(key, where)
        ]
        columns = np.array(found, np.int64).reshape(-1, 3).T
        return NameMatches(columns[0].astype(np.intp), columns[1], columns[2].astype(np.uint8))

    def labelled_texts(self, rows: list[int]) -> dict[int, LabelledText]:
        found = {row: self._records[row] for row in rows}
        texts = {row: words_of(one.text[:MAX_TEXT_CHARACTERS]) for row, one in found.items()}
        return {row: LabelledText(one.title or one.id, texts[row]) for row, one in found.items()}

    def synonyms(self, names: Keys, where: Filter) -> dict[int, list[int]]:
        out: dict[int, list[int]] = {}
        found = self.entities_named(names.view(np.uint64), where)
        for which, row, flags in zip(*(column.tolist() for column in found), strict=True):
            if flags & DECLARED:
                known = out.setdefault(int(names[which]), [])
                known += [name for name in sorted(self._names[row]) if name not in known]
        return out

    def known_endpoints(self, names: Keys) -> Mask:
        return np.isin(names, np.array([edge[0] for edge in self._edges], np.int64))

    def edges(
        self, names: Sequence[int], count: int, at: datetime, where: Filter, *, history: bool = False
    ) -> list[list[Edge]]:
        now = microseconds(at)
        valid = [
            (edge[0], Edge(-edge[3], -edge[2], edge[4]))
            for edge in self._edges
            if edge[1] > now
            and not (history and edge[5] is not None and edge[5] > now)
            and self._snapshot.matches(-edge[3], where)
        ]
        own = ([edge for endpoint, edge in valid if endpoint == name] for name in names)
        return [sorted(edges, key=lambda edge: (-edge.weight, -edge.row))[:count] for edges in own]


def naive_backend() -> Backend:
    """A new and empty backend. It may be opened several times, also after `close`."""
    bindings = dict.fromkeys(("records", "keyword", "vector", "graph"), "naive")
    return Backend(NaiveRecords(), NaiveKeyword(), NaiveVector(), NaiveGraph(), bindings=bindings)
