"""Writes: check what a caller may write, embed the texts, and write everything in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from sennit.embedding.given import check_vector
from sennit.embedding_service import NO_PRECOMPUTED_VECTORS, EmbeddingService, PrecomputedVectors
from sennit.engine.maintenance import IndexMaintainer
from sennit.errors import AccessDenied, Conflict, InvalidInput, NotFound
from sennit.facts import Fact, FactEnding, end_superseded_facts, is_fact
from sennit.filters import Exists, Filter, matches
from sennit.records import CHUNK_COLLECTION, Record, full_id, split_id
from sennit.repositories.facts import find_superseded
from sennit.repositories.sessions import read_positions
from sennit.stores.contract import NewVectors, RecordsRole, Transaction, WriteResult
from sennit.stores.prepared_records import PreparedRecord, WritableRecords, prepare_record
from sennit.turns import Turn, position_turns

if TYPE_CHECKING:
    from sennit.ingest.artifacts import ArtifactSplitter

FLOAT16_BYTES: Final = 2
"""Bytes of one stored number of a vector."""

Build = Callable[[Transaction], Iterable[Record]]
"""Reads in a transaction what the records depend on, and returns them."""


class WriteService:
    """All writes of one database. `audience` limits a write to what its caller may see; None is the owner."""

    def __init__(self, store: RecordsRole, embeddings: EmbeddingService, maintainer: IndexMaintainer) -> None:
        self._store = store
        self._embeddings = embeddings
        self._maintainer = maintainer

    def embed(
        self, records: WritableRecords, given: PrecomputedVectors = NO_PRECOMPUTED_VECTORS
    ) -> tuple[list[PreparedRecord], NewVectors]:
        """Prepare records and compute the vectors that are missing, before a transaction makes others wait."""
        own = _own_vectors(records)
        prepared = [prepare_record(record, own.get(at, b"")) for at, record in enumerate(records)]
        if own:
            length = len(next(iter(own.values()))) // FLOAT16_BYTES
            vectors = {prepared[at].embedding_hash: vector for at, vector in own.items()}
            given = {**given, self._embeddings.accept_given(length): vectors}
        return prepared, self._embeddings.embed_records(prepared, given) if prepared else {}

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One write; when the block ends it is durable, and the next search sees it."""
        with self._store.transaction() as transaction:
            yield transaction
        self._maintainer.on_write(transaction.result.changed)

    def add(self, records: Sequence[Record], audience: Filter | None = None) -> WriteResult:
        """Add or replace records."""
        _check_readable(records, audience)
        prepared, vectors = self.embed(records)
        with self.transaction() as transaction:
            _check_replaceable(transaction, records, audience)
            transaction.write(prepared, vectors)
        if any(record.vector is not None for record in records):
            # They may complete a model that is being built, which the background then activates.
            self._maintainer.wake()
        return transaction.result

    def add_artifacts(
        self, documents: Sequence[Record], split: ArtifactSplitter | None = None
    ) -> WriteResult:
        """Add or replace whole documents with their chunks; those of an earlier version are removed."""
        # Chunking is not needed by a process that only searches.
        from sennit.ingest.artifacts import chunk_records, split_artifact

        split = split or split_artifact
        records: list[Record] = []
        for whole in documents:
            if whole.collection == "default":
                whole = replace(whole, collection="artifacts")
            records += [whole, *chunk_records(whole, split(whole))]
        prepared, vectors = self.embed(records)
        with self.transaction() as transaction:
            old = [name for whole in documents for name in _find_chunks(transaction, whole.tenant, whole.id)]
            transaction.write(prepared, vectors, remove=old)
        return transaction.result

    def add_turns(self, turns: Sequence[Turn], audience: Filter | None = None) -> WriteResult:
        """Add turns; one without a position goes to the end of its session."""
        return self._add_built(
            [turn.to_record() for turn in turns],
            lambda transaction: position_turns(turns, *read_positions(transaction, turns)),
            audience,
        )

    def add_facts(
        self,
        facts: Sequence[Fact],
        *,
        same_relation: bool = False,
        endings: Sequence[FactEnding] = (),
        audience: Filter | None = None,
    ) -> WriteResult:
        """Add facts, and end those that they supersede and those that `endings` say are over."""

        def build(transaction: Transaction) -> list[Record]:
            before = find_superseded(transaction, facts, same_relation=same_relation, endings=endings)
            hidden = [record for record in before if audience is not None and not matches(audience, record)]
            if hidden:
                raise NotFound(f"There is no fact {hidden[0].id!r} to supersede")
            return end_superseded_facts(
                facts, before, datetime.now(UTC), same_relation=same_relation, endings=endings
            )

        return self._add_built([fact.to_record() for fact in facts], build, audience)

    def remove(self, ids: Iterable[str], audience: Filter | None = None) -> WriteResult:
        """Remove the records with these full ids that the audience may see, with the chunks of documents."""
        names = list(ids)
        with self.transaction() as transaction:
            if audience is not None:
                found = transaction.get(names)
                names = [name for name in names if name in found and matches(audience, found[name])]
            self._remove(transaction, names)
        return transaction.result

    def remove_matching(
        self, where: Filter, audience: Filter, *, with_derived_facts: bool = False
    ) -> WriteResult:
        """Remove the records that match a filter and that the audience may see, with the chunks of documents.

        It removes what matches when the call begins and still does when it writes, all or none.
        `with_derived_facts` also removes the facts that have no other source than these records.
        """
        with self._store.snapshot(audience) as snapshot:
            matching = snapshot.records_matching(where)
            facts = snapshot.records_matching(Exists("sources")) if with_derived_facts else []
        removed = {(record.tenant, record.id) for record in matching}
        derived = [fact for fact in facts if is_fact(fact) and _has_only_sources(fact, removed)]
        with self.transaction() as transaction:
            stored = transaction.get(record.full_id for record in (*matching, *derived))
            names = [
                record.full_id
                for records, condition in ((matching, where & audience), (derived, audience))
                for record in records
                if record.full_id in stored and matches(condition, stored[record.full_id])
            ]
            self._remove(transaction, names)
        return transaction.result

    @staticmethod
    def _remove(transaction: Transaction, names: Sequence[str]) -> None:
        """Remove records by their full ids, with the chunks of documents."""
        chunks = [part for name in names for part in _find_chunks(transaction, *split_id(name))]
        transaction.write((), remove=[*names, *chunks])

    def _add_built(self, drafts: Sequence[Record], build: Build, audience: Filter | None) -> WriteResult:
        """Add records that depend on what is stored. The drafts have their texts, which are embedded first."""
        _check_readable(drafts, audience)
        _, vectors = self.embed(drafts)
        with self.transaction() as transaction:
            records = list(build(transaction))
            _check_replaceable(transaction, records, audience)
            transaction.write(records, vectors)
        return transaction.result


def _find_chunks(transaction: Transaction, tenant: str, document: str) -> list[str]:
    """Return the full ids of the chunks that are stored for a document."""
    found = transaction.child_ids(document, collection=CHUNK_COLLECTION)
    return [record_id for record_id in found if split_id(record_id)[0] == tenant]


def _has_only_sources(fact: Record, records: set[tuple[str, str]]) -> bool:
    """Whether a fact names sources, and all of them are among these records."""
    sources = fact.metadata.get("sources")
    return (
        isinstance(sources, (list, tuple))
        and bool(sources)
        and all((fact.tenant, source) in records for source in sources)
    )


def _own_vectors(records: WritableRecords) -> dict[int, bytes]:
    """The vectors that come with records, as they are stored, by the place of the record."""
    out: dict[int, bytes] = {}
    for at, record in enumerate(records):
        if isinstance(record, Record) and record.vector is not None:
            vector = check_vector(record.vector, f"The vector of record {record.id!r}")
            out[at] = vector.astype(np.float16).tobytes()
            if len(out[at]) != len(next(iter(out.values()))):
                raise InvalidInput(
                    f"The vector of record {record.id!r} has {len(vector):,} numbers, and one before it has another length"
                )
    return out


def _check_readable(records: Iterable[Record], audience: Filter | None) -> None:
    """Refuse records that the caller could not read afterwards."""
    for record in records:
        if audience is not None and not matches(audience, record):
            raise AccessDenied(
                f"You cannot write a record that you could not read: sensitivity {record.sensitivity!r} and scope "
                f"{record.scope!r} of {record.id!r} are not both yours."
            )


def _check_replaceable(transaction: Transaction, records: Iterable[Record], audience: Filter | None) -> None:
    """Refuse ids of records that the caller may not see; inside the transaction, so that none can appear meanwhile."""
    if audience is None:
        return
    stored = transaction.get(full_id(record.tenant, record.id) for record in records)
    for existing in stored.values():
        if not matches(audience, existing):
            raise Conflict(f"The id {existing.id!r} is taken. Choose another.")
