"""A backend in plain dicts and loops, written from `stores/contract/` alone. It shows that the contract is enough.

What any backend can derive from its records it inherits (`stores/scanned_reads.py`), and what a write has to do it is told
(`stores/write_plan.py`). Its indexes ask a snapshot for everything, so they also work with the snapshots of other backends.
It is as slow as it looks.
"""

from __future__ import annotations

import contextlib
import copy
import math
import threading
import time
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Filter
from sennit.records import Record
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
    Mask,
    Model,
    ModelProgress,
    NewVectors,
    ScoredKeys,
    Snapshot,
    UnusedVectors,
    WriteResult,
)
from sennit.stores.document_terms import DocumentTerms, document_terms
from sennit.stores.prepared_records import PreparedRecord
from sennit.stores.scanned_graph import ScannedGraph
from sennit.stores.scanned_reads import (
    RecordsDefaults,
    ScannedFiles,
    ScannedReads,
    ScannedState,
    ScannedTransaction,
    ScoredIndex,
)
from sennit.stores.write_plan import StoredVersion, WriteRequest, missing_vectors, models_retired_by


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
    unused: dict[tuple[bytes, str | None], float] = field(default_factory=dict)
    """Since when a kept vector is unused, by its hash and the parent of the last record."""
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

    def delete_unused(self, hashes: Collection[bytes]) -> None:
        gone = set(hashes).difference(self.hashes.values())
        self.vectors = {pair: vector for pair, vector in self.vectors.items() if pair[1] not in gone}
        self.unused = {pair: since for pair, since in self.unused.items() if pair[0] not in hashes}


class NaiveState(ScannedState):
    """Keys and values in a dict."""

    def put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self.entries.update(pairs)

    def delete(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self.entries.pop(key, None)


class NaiveTransaction(ScannedTransaction):
    """Changes a copy of the data."""

    def __init__(self, data: _Data) -> None:
        self.data = data
        self.stored = data.records
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
        keep_vectors: bool = False,
    ) -> None:
        data, request = self.data, WriteRequest.of(records, remove)
        stored = {}
        for name, record in self.get(request.ids).items():
            key = data.keys[name]
            stored[name] = StoredVersion(key, bytes.fromhex(record.content_hash), data.hashes[key])
        plan = request.plan(stored)
        for key in plan.delete:
            self._delete(key, keep_vectors=keep_vectors)
        for prepared in plan.insert:
            self._insert(prepared, vectors)
        self.result += plan.result

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

    def _delete(self, key: int, *, keep_vectors: bool) -> None:
        data = self.data
        record, digest = data.records.pop(key), data.hashes.pop(key)
        del data.keys[record.full_id]
        data.changes = [change for change in data.changes if change.key != key]
        data.changes.append(Change(data.next_number(), key, "delete"))
        data.pending = {pair: one for pair, one in data.pending.items() if pair[1] != key}
        data.unused[digest, record.parent] = time.time()
        if not keep_vectors:
            left = [one for one, of in data.unused if of is not None and of == record.parent]
            data.delete_unused([digest, *left])

    def put_files(self, rows: Iterable[FileRow]) -> None:
        self.data.files.update((row[:3], row) for row in rows)

    def delete_files(self, rows: Iterable[FileRow]) -> None:
        for row in rows:
            self.data.files.pop(row[:3], None)


class NaiveSnapshot(ScannedReads):
    """One version, as one audience sees it."""

    def __init__(self, data: _Data, audience: Filter) -> None:
        active = next((model for model in data.models.values() if model.state == "active"), None)
        super().__init__(data.records, audience, active)
        self._data = data
        self.seq = data.seq
        self.has_files = bool(data.files)

    def embedding_hash(self, key: int) -> bytes:
        return self._data.hashes[key]

    def stored_vector(self, model: Model, key: int) -> bytes | None:
        return self._data.vectors.get((model.number, self._data.hashes[key]))

    def changes(self, after: int, limit: int) -> Changes:
        found = [change for change in self._data.changes if change.number > after]
        return Changes(found[:limit], found[limit - 1].number if len(found) > limit else self.seq)

    def applied(self, index: str) -> int:
        return self._data.applied.get(index, 0)


class NaiveRecords(RecordsDefaults):
    """The records role, with its models and its manifest of files."""

    location = "a naive backend"

    def __init__(self) -> None:
        self._data = _Data()
        self._lock = threading.RLock()
        self.models = self
        self.files = ScannedFiles(lambda: (self._data.files.values(), self._data.records.values()))

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

    def set_applied(self, index: str, number: int) -> None:
        with self.transaction() as transaction:
            transaction.data.applied[index] = number

    # The models.

    def current(self) -> list[Model]:
        return self._data.current_models()

    def progress(self) -> list[ModelProgress]:
        pending = [number for number, _ in self._data.pending]
        return [
            ModelProgress(model, pending.count(model.number), len(self._data.records))
            for model in self.current()
        ]

    def register(self, fingerprint: str, name: str, spec: str, dimensions: int) -> Model:
        with self.transaction() as transaction:
            data = transaction.data
            for model in models_retired_by(fingerprint, data.current_models()):
                _retire(data, model)
            current = {model.fingerprint: model for model in data.current_models()}
            if fingerprint in current:
                return current[fingerprint]
            number = len(data.models) + 1
            data.models[number] = Model(number, fingerprint, name, spec, dimensions, "building")
            for key, digest in data.hashes.items():
                data.pending[number, key] = digest
            if not current or not data.records:
                _activate(data, number)
            return data.models[number]

    def missing_vectors(
        self, hashes: Iterable[bytes], given: Mapping[str, Container[bytes]]
    ) -> list[tuple[Model, set[bytes]]]:
        return missing_vectors(self.current(), list(hashes), given, self._data.vectors)

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

    def known_hashes(self, fingerprint: str) -> Iterator[bytes]:
        numbers = {model.number for model in self.current() if model.fingerprint == fingerprint}
        return (digest for number, digest in self._data.vectors if number in numbers)

    def unused(self) -> UnusedVectors:
        used = set(self._data.hashes.values())
        sizes = [len(vector) for (_, digest), vector in self._data.vectors.items() if digest not in used]
        return UnusedVectors(len(sizes), sum(sizes))

    def delete_unused(self, before: float, keep_bytes: int = 0) -> int:
        deleted = self.unused().count
        with self.transaction() as transaction:
            data = transaction.data
            data.delete_unused([digest for (digest, _), since in data.unused.items() if since < before])
        while self.unused().bytes > keep_bytes:
            with self.transaction() as transaction:
                data = transaction.data
                (oldest, _), _ = min(data.unused.items(), key=lambda one: one[1])
                data.delete_unused([oldest])
        return deleted - self.unused().count


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


class NaiveKeyword(ScoredIndex[KeywordQuery]):
    """BM25 by the ranking contract, in single precision as the formula is summed there."""

    capabilities = Capabilities()

    def found(self, scores: Floats) -> Mask:
        return scores > 0

    def scores(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        documents = _documents(snapshot)
        bm25, count = query.bm25, max(len(documents), 1)
        text, title = bm25.field_weights
        average = sum(text * one.lengths[0] + title * one.lengths[1] for one in documents.values()) / count
        slope = np.float32(bm25.k1 * bm25.b / average if average else 0.0)
        base = np.float32(max(bm25.k1 * (1 - bm25.b), 1e-6))
        weights = [(weight * (bm25.k1 + 1), term) for weight, term in _information(documents, query)]
        out = np.zeros(len(keys), np.float64)
        for at, key in enumerate(keys.tolist()):
            one = documents.get(key, _NOTHING)
            total = np.float32(0)
            for weight, term in sorted(weights, key=lambda pair: (-pair[0], pair[1])):
                tf = np.float32(text * one.text.get(term, 0) + title * one.title.get(term, 0))
                if tf:
                    norm = np.float32(text * one.lengths[0] + title * one.lengths[1]) * slope + base + tf
                    total += tf / norm * np.float32(weight)
            out[at] = total
        return out

    def coverage(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        documents = _documents(snapshot)
        weights = _information(documents, query)
        found = [documents.get(key, _NOTHING) for key in keys.tolist()]
        shares = [sum(weight for weight, term in weights if one.has(term)) for one in found]
        return np.array(shares, np.float64) / (sum(weight for weight, _ in weights) or np.nan)

    def document_share(self, snapshot: Snapshot, term: int) -> float:
        documents = _documents(snapshot)
        return sum(one.has(term) for one in documents.values()) / max(len(documents), 1)


_NOTHING: Final = DocumentTerms({}, {}, (0, 0))


def _documents(snapshot: Snapshot) -> dict[int, DocumentTerms]:
    """The terms of every visible record."""
    found = snapshot.records(snapshot.keys(EVERYTHING).tolist())
    return {key: document_terms(record) for key, record in found.items()}


def _information(documents: Mapping[int, DocumentTerms], query: KeywordQuery) -> list[tuple[float, int]]:
    """The idf of each term, times its weight in the query."""
    out = []
    for term, weight in query.terms:
        frequency = sum(one.has(term) for one in documents.values())
        out.append((math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5)) * weight, term))
    return out


class NaiveVector(ScoredIndex[NDArray[np.float32]]):
    """The cosine with every vector."""

    def found(self, scores: Floats) -> Mask:
        return ~np.isnan(scores)

    def search(
        self, snapshot: Snapshot, query: NDArray[np.float32], limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        if snapshot.model is None:
            raise SourceError("no vectors: this database has no embedding model")
        return super().search(snapshot, query, limit, where)

    def scores(self, snapshot: Snapshot, query: NDArray[np.float32], keys: Keys) -> Floats:
        vectors = snapshot.vectors(keys)
        if not vectors.shape[1]:
            return np.full(len(keys), np.nan)
        return np.where(vectors.any(axis=1), np.einsum("ij,j->i", vectors, query), np.nan).astype(np.float64)


def naive_backend() -> Backend:
    """A new and empty backend. It may be opened several times, also after `close`."""
    bindings = dict.fromkeys(("records", "keyword", "vector", "graph"), "naive")
    return Backend(NaiveRecords(), NaiveKeyword(), NaiveVector(), ScannedGraph(), bindings=bindings)
