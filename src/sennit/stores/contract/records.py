"""The role `records`: the source of truth, its transactions and the state beside the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from sennit.filters import EVERYTHING, Filter
from sennit.records import Record
from sennit.stores.contract.files import FileManifest, FileRow
from sennit.stores.contract.models import NO_VECTORS, Models, NewVectors
from sennit.stores.contract.snapshot import Snapshot
from sennit.stores.prepared_records import PreparedRecord

T = TypeVar("T")


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

    def __add__(self, later: WriteResult) -> WriteResult:
        """What two writes have done together."""
        return WriteResult(
            self.added + later.added,
            self.updated + later.updated,
            self.unchanged + later.unchanged,
            self.removed + later.removed,
            (*self.ids, *later.ids),
        )


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
        keep_vectors: bool = False,
    ) -> None:
        """Remove the records with these full ids, then add or replace records.

        A record that is stored as it is given is not written again, also when `remove` names it. A record without a
        vector in `vectors` and in the store is pending for every current model.

        A vector is deleted with the last record of its text. With `keep_vectors` it stays, as unused, until
        `Models.delete_unused`. Without it, the unused vectors that earlier writes have left under the parents of the
        removed records are deleted too, so that a removal on request leaves nothing behind.
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

    def with_snapshot(self, audience: Filter, work: Callable[[Snapshot], T]) -> T:
        """Run `work` with a snapshot, and return its result. It may run twice, and then its first result is dropped.

        So a backend on a server can suppose that nothing has changed, and ask for that and for the records in one
        round trip.
        """
        with self.snapshot(audience) as snapshot:
            return work(snapshot)

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
        """Record that an index has applied all changes up to a number; deletes after it stay in the feed.

        A process that has an index bound calls this at least every hour, also without changes. A backend need not keep
        deletes for an index of which it has not heard for a week.
        """
        ...

    def close(self) -> None:
        """Stop all work and close the connections. A second call does nothing."""
        ...
