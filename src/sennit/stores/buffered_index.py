"""An index on a server as another kind of segment: it covers the changes up to a number, and a buffer covers the rest.

A binding of a server implements `IndexServer` and `ServerIndex` of the contract. `IndexFeeder` applies the feed of
changes to it and records how far it got in the source of truth. `BufferedKeyword` and `BufferedVector` make the server and the buffer one index of the
contract: they search what the server has not applied yet in this process, and check every key that the server returns
against the snapshot. So a server that lags, holds deleted records or ignores a filter changes no answer.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Sequence
from itertools import compress
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sennit.errors import ChangesLost, SourceError
from sennit.filters import EVERYTHING, And, Filter, Not, Or
from sennit.ranking.fusion import order
from sennit.stores.contract import (
    BufferStatistics,
    Cancelled,
    Capabilities,
    Document,
    Floats,
    IndexOf,
    Keys,
    KeywordQuery,
    MatchedKeys,
    PartialKeys,
    RecordsRole,
    ScoredKeys,
    ServerIndex,
    ServerSearch,
    Snapshot,
    Steps,
)
from sennit.stores.document_terms import document_terms
from sennit.stores.lease import Lease
from sennit.stores.search_steps import run_steps

log = logging.getLogger("sennit.store")

QueryT = TypeVar("QueryT")

_Matched: TypeAlias = dict[int, list[bool]]
"""Which of a query's terms each record has, by key."""

BATCH_CHANGES: Final = 1000
"""Changes applied at once. A server confirms a batch of this size in well under a second."""

MAX_BUFFERED_CHANGES: Final = 100_000
"""A server that is further behind, because it is being filled, fails as a source until it is not."""

OVERFETCH: Final = 16
"""How many keys more than wanted are requested at first, for those that the snapshot rejects."""

FETCH_GROWTH: Final = 4
"""By how much the request grows while too few of the returned keys are valid."""

RETRY_SECONDS: Final = (0.2, 1.0, 5.0)
"""The pauses before a failed batch is sent again."""

BOUND_SECONDS: Final = 3600.0
"""How often the source of truth is told that an index is bound, so that it keeps deletes for it."""

LEASE_POLL_SECONDS: Final = 0.2
"""How often a caller who waits looks whether another process has finished feeding an index."""


def for_every_model(index: ServerIndex[QueryT], capabilities: Capabilities) -> IndexOf[QueryT]:
    """The role whose index is the same whatever the model, for what does not depend on vectors."""
    return IndexOf(index.server, capabilities, lambda _model: index)


class IndexFeeder:
    """Applies the feed to a server index. It is upkeep: the background of the database calls it.

    One process at a time feeds an index, by a lease. If two do, a batch is applied twice, and a key that one puts back
    after the other deleted it does not pass the check against the snapshot.
    """

    def __init__(
        self,
        records: RecordsRole,
        index_of: IndexOf[Any],
        *,
        retry_seconds: Sequence[float] = RETRY_SECONDS,
    ) -> None:
        self._records = records
        self._index_of = index_of
        self._retry_seconds = retry_seconds
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._report_at: dict[str, float] = {}
        """When to say again that an index is bound, by its name."""

    def flush(self, at_least: int = 1, *, wait: bool = False) -> None:
        """Apply the changes that are missing, if there are at least this many; `wait` also looks for lost ones."""
        if not self._lock.acquire(blocking=wait):
            return
        try:
            with self._records.snapshot() as snapshot:
                index = self._index_of.find(snapshot.model)
                recorded = 0 if index is None else snapshot.applied(index.name)
                behind = snapshot.seq - recorded
            if index is not None and (wait or behind >= at_least):
                self._feed(index, at_least, wait=wait)
        finally:
            self._lock.release()

    def merge(self, *, whole: bool = False, max_unmerged: int = 0, wait: bool = False) -> None:
        """The server merges by itself."""

    def purge(self) -> None:
        """The records role keeps what this index has not applied, and deletes it later."""

    def rest(self) -> None:
        """Apply the last few changes too, and what the server has lost: there is time for it."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            with self._records.snapshot() as snapshot:
                index = self._index_of.find(snapshot.model)
            if index is not None:
                self._feed(index, 1, wait=False)
        finally:
            self._lock.release()

    def cancel(self) -> None:
        """Stop after the current request."""
        self._stop.set()

    def _feed(self, index: ServerIndex[Any], at_least: int, *, wait: bool) -> None:
        lease = Lease(self._records, f"feed {index.name}")
        try:
            while not lease.take():
                if not wait or self._stop.wait(LEASE_POLL_SECONDS):
                    return
            self._check_for_loss(index)
            while self._apply_batch(index, at_least):
                lease.take()
        finally:
            lease.release()

    def _check_for_loss(self, index: ServerIndex[Any]) -> None:
        """Let the buffer cover what the server has lost, for example because it began again with an empty disk."""
        with self._records.snapshot() as snapshot:
            recorded = snapshot.applied(index.name)
        if recorded and time.monotonic() >= self._report_at.get(index.name, 0.0):
            # The index is bound, even if its server is down.
            self._records.set_applied(index.name, recorded)
            self._report_at[index.name] = time.monotonic() + BOUND_SECONDS
        known = index.applied()
        if known < recorded:
            log.warning("the index %s has lost changes after %d; they are applied again", index.name, known)
            self._records.set_applied(index.name, known)

    def _apply_batch(self, index: ServerIndex[Any], at_least: int) -> bool:
        """Apply one batch; whether more changes are left."""
        name = index.name
        with self._records.snapshot() as snapshot:
            after = snapshot.applied(name)
            if snapshot.seq - after < at_least:
                return False
            try:
                found = snapshot.changes(after, BATCH_CHANGES)
            except ChangesLost:
                log.warning("the index %s is too far behind; it is built again", name)
                index.reset()
                self._records.set_applied(name, 0)
                return True
            present = [change.key for change in found.changes if change.action != "delete"]
            documents = read_documents(snapshot, present)
            deleted = [change.key for change in found.changes if change.action == "delete"]
            last = snapshot.seq
        self._send(index, documents, deleted, found.through)
        self._records.set_applied(name, found.through)
        return found.through < last

    def _send(
        self, index: ServerIndex[Any], documents: Sequence[Document], deleted: Sequence[int], through: int
    ) -> None:
        for pause in (*self._retry_seconds, None):
            if self._stop.is_set():
                raise Cancelled
            try:
                index.apply(documents, deleted, through)
                return
            except SourceError:
                if pause is None:
                    raise
                self._stop.wait(pause)


def read_documents(snapshot: Snapshot, keys: Sequence[int]) -> list[Document]:
    """The visible documents among these keys."""
    found = snapshot.records(keys)
    vectors = snapshot.vectors(np.array(list(found), np.int64))
    return [
        Document(key, record, vector) for (key, record), vector in zip(found.items(), vectors, strict=True)
    ]


class _BufferedIndex(Generic[QueryT]):
    """A server index and the buffer of what it has not applied."""

    def __init__(self, index_of: IndexOf[QueryT]) -> None:
        self._index_of = index_of
        self.capabilities = index_of.capabilities
        self.server = index_of.server
        self._lock = threading.Lock()
        self._documents: dict[tuple[int, str], Document] = {}
        """The buffer by key and model. A key is one version of one record, so a document never changes."""

    def applied(self, snapshot: Snapshot) -> int:
        """The last change that the server covers, as the source of truth has it in this version."""
        index = self._index_of.find(snapshot.model)
        return 0 if index is None else snapshot.applied(index.name)

    def search(self, snapshot: Snapshot, query: QueryT, limit: int, where: Filter = EVERYTHING) -> ScoredKeys:
        """The best of the server and the buffer."""
        return run_steps(self.steps(snapshot, query, limit, where))

    def steps(
        self, snapshot: Snapshot, query: QueryT, limit: int, where: Filter = EVERYTHING
    ) -> Steps[ScoredKeys]:
        """The search, step by step; raises what the server answers instead of keys."""
        index = self._index_of.find(snapshot.model)
        if index is None:
            raise SourceError("no vectors: this database has no embedding model")
        applied = snapshot.applied(index.name)
        buffered = self._buffered_keys(snapshot, applied, index.name)
        documents = self._read(snapshot, buffered)
        query = self._with_buffer(query, documents)
        own = [document for document in documents if snapshot.matches(document.key, where)]
        found: ScoredKeys
        score = index.score
        try:
            found = yield from self._server_steps(index, snapshot, query, limit, where, applied, buffered)
        except SourceError as error:
            if not own:
                raise
            # What was written last is found even without the server.
            problem = f"{error}; only what the server has not applied yet was searched"
            found, score = PartialKeys.of(ScoredKeys.empty(), problem), self._score_without_server
        keys, scores = found
        if own:
            keys = np.concatenate([keys, np.array([document.key for document in own], np.int64)])
            scores = np.concatenate([scores, score(query, own)])
            matching = ~np.isnan(scores)
            keys, scores = keys[matching], scores[matching]
        best = order(keys, scores, snapshot.ids, limit)
        return _like(found, ScoredKeys(keys[best], scores[best]))

    def scores(self, snapshot: Snapshot, query: QueryT, keys: Keys) -> Floats:
        """The scores of these records, computed in this process from the source of truth."""
        out = np.full(len(keys), np.nan)
        index = self._index_of.find(snapshot.model)
        documents = {one.key: one for one in read_documents(snapshot, keys.tolist())}
        which = [at for at, key in enumerate(keys.tolist()) if key in documents]
        if which and index is not None:
            query = self._with_snapshot(query, snapshot, index.name)
            out[which] = index.score(query, [documents[key] for key in keys[which].tolist()])
        return out

    def _score_without_server(self, query: QueryT, documents: Sequence[Document]) -> Floats:
        """The scores of documents in the buffer, to be compared with each other only; nan for one that does not match."""
        raise NotImplementedError

    def _with_buffer(self, query: QueryT, documents: Sequence[Document]) -> QueryT:  # noqa: ARG002 - for keywords
        """The query with what the buffer adds to the statistics."""
        return query

    def _with_snapshot(self, query: QueryT, snapshot: Snapshot, name: str) -> QueryT:  # noqa: ARG002 - for keywords
        return query

    def _server_steps(
        self,
        index: ServerIndex[QueryT],
        snapshot: Snapshot,
        query: QueryT,
        limit: int,
        where: Filter,
        applied: int,
        buffered: Sequence[int],
    ) -> Steps[ScoredKeys]:
        """The best valid keys of the server, and all that tie with the last; more are fetched until there are enough."""
        if not applied:
            return ScoredKeys.empty()
        wanted = where if snapshot.audience == EVERYTHING else snapshot.audience & where
        narrowed = expressible(wanted, self.capabilities.filters)
        fetch = limit + OVERFETCH
        while True:
            (answer,) = yield [ServerSearch(index, query, fetch, narrowed, applied)]
            if isinstance(answer, SourceError):
                raise answer
            keys, scores = answer
            valid = keys <= applied
            if buffered:
                valid &= ~np.isin(keys, buffered)
            valid &= snapshot.select(keys, where)
            kept = scores[valid]
            self._note_answer(snapshot, query, answer)
            is_exhausted = len(keys) < fetch
            if is_exhausted or (len(kept) >= limit > 0 and scores[-1] < kept[limit - 1]):
                return _like(answer, ScoredKeys(keys[valid], kept))
            fetch *= FETCH_GROWTH

    def _note_answer(self, snapshot: Snapshot, query: QueryT, answer: ScoredKeys) -> None:
        """Remember what an answer says besides its keys."""

    def _buffered_keys(self, snapshot: Snapshot, applied: int, name: str) -> list[int]:
        found = snapshot.changes(applied, MAX_BUFFERED_CHANGES)
        if found.through < snapshot.seq:
            raise SourceError(
                f"the index {name} is being filled: it is {snapshot.seq - applied:,} changes behind"
            )
        return list(dict.fromkeys(change.key for change in found.changes if change.action != "delete"))

    def _read(self, snapshot: Snapshot, keys: Sequence[int]) -> list[Document]:
        """The documents of the buffer that the snapshot's audience may see."""
        if not keys:
            with self._lock:
                self._documents = {}
            return []
        model = "" if snapshot.model is None else snapshot.model.fingerprint
        visible = [
            key for key, exists in zip(keys, snapshot.exists(np.array(keys, np.int64)), strict=True) if exists
        ]
        with self._lock:
            known = {key: self._documents[key, model] for key in visible if (key, model) in self._documents}
        new = read_documents(snapshot, [key for key in visible if key not in known])
        known |= {document.key: document for document in new}
        buffered = set(keys)
        with self._lock:
            # What the server has applied since is dropped; a document without a vector may get one.
            kept = {
                pair: one for pair, one in self._documents.items() if pair[0] in buffered and pair[1] == model
            }
            self._documents = kept | {(one.key, model): one for one in new if not model or one.vector.any()}
        return list(known.values())


class BufferedVector(_BufferedIndex[NDArray[np.float32]]):
    """The vector role on a server."""

    def scores(self, snapshot: Snapshot, query: NDArray[np.float32], keys: Keys) -> Floats:
        """The cosines of these records, from the vectors alone; nan for one that is not visible or has no vector."""
        out = np.full(len(keys), np.nan)
        if snapshot.model is not None:
            visible = snapshot.exists(keys)
            out[visible] = _cosines(query, snapshot.vectors(keys[visible]))
        return out

    def _score_without_server(self, query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
        return cosine_scores(query, documents)


class BufferedKeyword(_BufferedIndex[KeywordQuery]):
    """The keyword role on a server."""

    def __init__(self, index_of: IndexOf[KeywordQuery]) -> None:
        super().__init__(index_of)
        self._matched: WeakKeyDictionary[Snapshot, dict[tuple[int, ...], _Matched]] = WeakKeyDictionary()
        """Which terms the records have that a query has found, for as long as its snapshot is used."""

    def _with_buffer(self, query: KeywordQuery, documents: Sequence[Document]) -> KeywordQuery:
        if self.capabilities.statistics == "none":
            return query
        counted = [document_terms(document.record) for document in documents]
        return query._replace(
            buffer=BufferStatistics(
                len(counted),
                (sum(one.lengths[0] for one in counted), sum(one.lengths[1] for one in counted)),
                {term: sum(one.has(term) for one in counted) for term, _ in query.terms},
            )
        )

    def _with_snapshot(self, query: KeywordQuery, snapshot: Snapshot, name: str) -> KeywordQuery:
        if self.capabilities.statistics == "none":
            return query
        buffered = self._buffered_keys(snapshot, snapshot.applied(name), name)
        return self._with_buffer(query, self._read(snapshot, buffered))

    def _score_without_server(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The weight of the terms that each document has: document frequencies are known to the server alone."""
        counted = [document_terms(document.record) for document in documents]
        found = [sum(weight for term, weight in query.terms if one.has(term)) for one in counted]
        return np.array([weight or np.nan for weight in found], np.float64)

    def scores(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        """The scores of these records, 0 for a record without any of the terms."""
        return np.nan_to_num(super().scores(snapshot, query, keys))

    def coverage(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        """Known of what a server has found whose answers tell the terms; it does not tell their frequencies."""
        out = np.full(len(keys), np.nan)
        with self._lock:
            matched = dict(self._matched.get(snapshot, {}).get(_hashes(query), {}))
        if matched:
            count = snapshot.count()
            information = [weight * math.log(1 + (count + 0.5) / 0.5) for _, weight in query.terms]
            total = sum(information)
            for at, key in enumerate(keys.tolist()):
                if key in matched:
                    out[at] = sum(compress(information, matched[key])) / total
        return out

    def _note_answer(self, snapshot: Snapshot, query: KeywordQuery, answer: ScoredKeys) -> None:
        if isinstance(answer, MatchedKeys):
            visible = snapshot.exists(answer.keys)
            found = zip(answer.keys[visible].tolist(), answer.matched[visible].tolist(), strict=True)
            with self._lock:
                self._matched.setdefault(snapshot, {}).setdefault(_hashes(query), {}).update(found)

    def document_share(self, snapshot: Snapshot, term: int) -> float:  # noqa: ARG002 - part of the role
        """0: a server does not tell how often our terms occur."""
        return 0.0


def _hashes(query: KeywordQuery) -> tuple[int, ...]:
    return tuple([term for term, _ in query.terms])


def _like(found: ScoredKeys, kept: ScoredKeys) -> ScoredKeys:
    """What was kept of an answer is as partial as the answer."""
    return PartialKeys.of(kept, found.problem) if isinstance(found, PartialKeys) else kept


def cosine_scores(query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
    """The cosine of each document, nan for one without a vector; the `score` of every vector server."""
    return _cosines(query, np.stack([document.vector for document in documents]))


def _cosines(query: NDArray[np.float32], vectors: NDArray[np.float32]) -> Floats:
    return np.where(vectors.any(axis=1), np.einsum("ij,j->i", vectors, query), np.nan).astype(np.float64)


def expressible(where: Filter, operators: frozenset[str]) -> Filter:
    """The part of a filter that an index can apply: what it leaves out lets more records through, never fewer."""
    if _operators_of(where) <= operators:
        return where
    if not isinstance(where, And):
        return EVERYTHING
    kept = [part for part in where.parts if _operators_of(part) <= operators]
    if "and" in operators:
        return And(tuple(kept))
    return kept[0] if kept else EVERYTHING


def _operators_of(where: Filter) -> frozenset[str]:
    if where == EVERYTHING:
        return frozenset()
    nested = where.parts if isinstance(where, And | Or) else (where.part,) if isinstance(where, Not) else ()
    return frozenset({type(where).__name__.lower()}).union(*map(_operators_of, nested))
