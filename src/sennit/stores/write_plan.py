"""What a write has to do, decided from the stored versions alone: every backend follows the same rules."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import NamedTuple

from sennit.records import Record, split_id
from sennit.stores.contract import Model, WriteResult
from sennit.stores.prepared_records import PreparedRecord, prepare_record


class StoredVersion(NamedTuple):
    """The key and the hashes of a stored record."""

    key: int
    content_hash: bytes
    embedding_hash: bytes


class WriteRequest(NamedTuple):
    """The arguments of `Transaction.write`, of which the last of several versions of a record counts."""

    records: Mapping[str, PreparedRecord]
    """By full id."""
    remove: Collection[str]
    """The full ids to remove; none of them is in `records`."""

    @classmethod
    def of(cls, records: Iterable[Record | PreparedRecord], remove: Iterable[str]) -> WriteRequest:
        latest = {one.id: one for one in map(prepare_record, records)}
        return cls(latest, [name for name in dict.fromkeys(remove) if name not in latest])

    @property
    def ids(self) -> list[str]:
        """The full ids whose stored versions the plan needs."""
        return [*self.records, *self.remove]

    def plan(self, stored: Mapping[str, StoredVersion]) -> WritePlan:
        """What to delete and to insert, given the versions of `ids` that exist."""
        delete = [stored[name].key for name in self.remove if name in stored]
        removed, unchanged = len(delete), 0
        insert = []
        for name, record in self.records.items():
            version = stored.get(name)
            if version is not None:
                record = record.inherit_vector(version.embedding_hash)
                if version[1:] == (record.content_hash, record.embedding_hash):
                    unchanged += 1
                    continue
                delete.append(version.key)
            insert.append(record)
        updated = len(delete) - removed
        ids = tuple(split_id(name)[1] for name in self.records)
        return WritePlan(delete, insert, WriteResult(len(insert) - updated, updated, unchanged, removed, ids))


class WritePlan(NamedTuple):
    """Delete the versions with these keys, then insert these records."""

    delete: list[int]
    insert: list[PreparedRecord]
    result: WriteResult


def missing_vectors(
    models: Iterable[Model],
    hashes: Collection[bytes],
    given: Mapping[str, Container[bytes]],
    stored: Container[tuple[int, bytes]],
) -> list[tuple[Model, set[bytes]]]:
    """Each model, with the hashes that have a vector neither in `given`, by fingerprint, nor in `stored`, by number."""
    return [
        (
            model,
            {
                digest
                for digest in hashes
                if digest not in given.get(model.fingerprint, ()) and (model.number, digest) not in stored
            },
        )
        for model in models
    ]


def models_retired_by(fingerprint: str, current: Iterable[Model]) -> list[Model]:
    """Which models are given up when this one is registered: those being built, unless it is one of them."""
    building = [model for model in current if model.state == "building"]
    return [] if any(model.fingerprint == fingerprint for model in building) else building
