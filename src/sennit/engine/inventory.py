"""What a database holds, as a caller may see it: collections, records, files, sessions, and the state of its parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, overload

from sennit.embedding_service import EmbeddingService
from sennit.engine.access import Access
from sennit.engine.checks import index_lag
from sennit.engine.file_access import FileAccess
from sennit.engine.maintenance import IndexMaintainer
from sennit.engine.search_request import FilterLike, build_filter
from sennit.engine.validation import SAMPLED_RECORDS, check_id
from sennit.errors import FilterError
from sennit.filters import (
    EVERYTHING,
    Equal,
    Exists,
    Filter,
    flatten,
    format_field,
    parse_filter,
)
from sennit.ingest.changes import FolderChanges, count_changes
from sennit.places import FOLDER_FIELD, Folder, Revision, path_to_text, shown_path
from sennit.privacy import Caller
from sennit.records import Json, Record, full_id
from sennit.repositories.folders import IndexedFolders
from sennit.search_parameters import COLLECTIONS, LIMIT
from sennit.stores.contract import Backend, Snapshot, UnusedVectors

HIDDEN_FIELDS: Final = frozenset({"tenant", FOLDER_FIELD})
"""Fields that are not offered: a caller has one tenant, and the folder is an internal key."""

SESSION_FIELD: Final = "session"
"""The metadata field with the session of a turn or a memory."""


@dataclass(frozen=True, slots=True)
class NamedCount:
    """A collection, file or session, and how many records it has."""

    name: str
    records: int

    def to_dict(self) -> dict[str, Json]:
        return {"name": self.name, "records": self.records}


@dataclass(frozen=True, slots=True)
class FolderStatus:
    """An indexed folder: how many files and records it has, when it was indexed, and what has changed since."""

    path: str
    files: int
    records: int
    indexed_at: datetime | None = None
    """The end of the last index run over the folder."""
    changes: FolderChanges | None = None
    """None if the folder was not compared."""
    project: str = ""
    """Its name as a project."""
    revision: Revision | None = None
    """The git revision of its records; None if it is not under git."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "project": self.project,
            "revision": None if self.revision is None else self.revision.to_dict(),
            "path": self.path,
            "files": self.files,
            "records": self.records,
            "indexed_at": None if self.indexed_at is None else self.indexed_at.isoformat(),
            "changes": None if self.changes is None else self.changes.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """An embedding model: its state, and the share of records that have a vector of it."""

    name: str
    state: str
    dimensions: int
    share: float
    pending: int | None
    """Records without a vector, whoever may see them; None if a caller was given."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "name": self.name,
            "state": self.state,
            "dimensions": self.dimensions,
            "share": round(self.share, 6),
            "pending": self.pending,
        }


@dataclass(frozen=True, slots=True)
class RankerStatus:
    """A learned ranker: what it was trained on, and whose searches it may rank."""

    name: str
    recipe: str
    data: str
    ranks_for: str
    problem: str = ""
    """Why it cannot be read; then no search uses it, and what it was trained on is unknown."""

    def to_dict(self) -> dict[str, Json]:
        values: dict[str, Json] = {
            "name": self.name,
            "recipe": self.recipe,
            "data": self.data,
            "ranks_for": self.ranks_for,
        }
        return {**values, "problem": self.problem} if self.problem else values


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a database, as a caller may see it."""

    database: str
    """Where the database is: a folder, or a server without its password."""
    roles: Mapping[str, str]
    """What holds the records, and what answers keyword, vector and graph search."""
    records: int
    collections: tuple[NamedCount, ...]
    sessions: int
    folders: tuple[FolderStatus, ...]
    models: tuple[ModelStatus, ...]
    last_error: str | None = None
    """Why vectors could not be computed in the background the last time."""
    behind: Mapping[str, int] = field(default_factory=dict)
    """How many changes the index of a role on a server has not applied yet. Searches find them nevertheless."""
    unused_vectors: UnusedVectors = field(default_factory=UnusedVectors)
    """Vectors of texts that have left the indexed files, kept for a branch that brings them back; 0 for a caller."""

    rankers: tuple[RankerStatus, ...] = ()
    """Learned rankers that may rank the caller's searches."""

    @property
    def pending_vectors(self) -> int:
        """How many vectors are still to be computed, as far as the caller may know."""
        return sum(model.pending or 0 for model in self.models)

    def to_dict(self) -> dict[str, Json]:
        return {
            "database": self.database,
            "roles": dict(self.roles),
            "records": self.records,
            "collections": [one.to_dict() for one in self.collections],
            "sessions": self.sessions,
            "folders": [one.to_dict() for one in self.folders],
            "models": [one.to_dict() for one in self.models],
            "pending_vectors": self.pending_vectors,
            "last_error": self.last_error,
            "behind": dict(self.behind),
            **({"rankers": [one.to_dict() for one in self.rankers]} if self.rankers else {}),
            "unused_vectors": asdict(self.unused_vectors),
        }


@dataclass(frozen=True, slots=True)
class RecordPage(Sequence[Record]):
    """Some records in the order of their ids, how many there are in all, and where the next page begins."""

    records: tuple[Record, ...]
    total: int
    next: str | None = None
    """The id to continue after; None on the last page."""

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        return self.records[index]

    def to_dict(self) -> dict[str, Json]:
        return {
            "records": [record.to_dict() for record in self.records],
            "total": self.total,
            "next": self.next,
        }


CheckNames = Callable[[Sequence[str], Filter, Snapshot], None]
"""Refuses names of collections and fields that a snapshot does not have."""


class Inventory:
    """Lists and counts what a database holds."""

    def __init__(
        self,
        backend: Backend,
        access: Access,
        embeddings: EmbeddingService,
        maintainer: IndexMaintainer,
        files: FileAccess,
        folders: IndexedFolders,
        database: Path | None,
        check_names: CheckNames,
    ) -> None:
        self._check_names = check_names
        self._backend = backend
        self._store = backend.records
        self._access = access
        self._embeddings = embeddings
        self._maintainer = maintainer
        self._files = files
        self._folders = folders
        self._database = None if database is None else os.path.realpath(database)

    def status(self, caller: Caller | None, *, changes: bool) -> Status:
        """Return the state of the database; `changes` compares the indexed folders with the disk."""
        audience = self._access.audience(caller)
        # Without a caller, it is the owner of the process, who may also know about other tenants.
        unrestricted = caller is None
        with self._store.snapshot(audience) as snapshot:
            return Status(
                database=self._store.location,
                roles=self._roles(),
                records=snapshot.count(),
                collections=_counts(snapshot, "collection"),
                sessions=len(snapshot.text_counts(SESSION_FIELD)),
                folders=self._folder_states(snapshot, audience, changes=changes, unrestricted=unrestricted),
                models=self._models(unrestricted=unrestricted),
                last_error=self._maintainer.last_error,
                # How many changes there were, also of what a caller may not see.
                behind=index_lag(self._backend) if unrestricted else {},
                unused_vectors=self._store.models.unused() if unrestricted else UnusedVectors(),
            )

    def collections(self, caller: Caller | None, project: str | None = None) -> tuple[NamedCount, ...]:
        """Return each collection with its number of records, the largest first."""
        with self._store.snapshot(self._access.audience(caller, project)) as snapshot:
            return _counts(snapshot, "collection")

    def files(
        self, caller: Caller | None, where: Filter, project: str | None = None
    ) -> tuple[NamedCount, ...]:
        """Return each path with its number of records, in order."""
        with self._store.snapshot(self._access.audience(caller, project)) as snapshot:
            counts = {
                shown_path(folder.absolute(path)): number
                for folder in self._folders.places().folders
                for path, number in snapshot.text_counts("path", where & _in_folder(folder)).items()
            }
            others = snapshot.text_counts("path", where & ~Exists(FOLDER_FIELD))
            return tuple(NamedCount(*pair) for pair in sorted({**others, **counts}.items()))

    def sessions(self, caller: Caller | None) -> tuple[NamedCount, ...]:
        """Return each session with its number of turns and memories, in order."""
        with self._store.snapshot(self._access.audience(caller)) as snapshot:
            return tuple(NamedCount(*pair) for pair in sorted(snapshot.text_counts(SESSION_FIELD).items()))

    def records(
        self,
        filters: FilterLike,
        collections: Sequence[str],
        limit: int,
        after: str | None,
        caller: Caller | None,
        project: str | None = None,
    ) -> RecordPage:
        """Return the records that match a filter, page by page."""
        where = build_filter(filters, COLLECTIONS.check(collections))
        count = LIMIT.check(limit)
        tenant = self._access.resolve(caller).tenant
        start = None if after is None else full_id(tenant, check_id(after))
        with self._store.snapshot(self._access.audience(caller, project)) as snapshot:
            self._check_names(collections, where, snapshot)
            found = snapshot.page(where, count + 1, start)
            total = snapshot.count(where)
        return RecordPage(tuple(found[:count]), total, found[count - 1].id if len(found) > count else None)

    def field_names(self, prefix: str, caller: Caller | None) -> tuple[str, ...]:
        """Return the fields that a filter can compare, from a sample of what the caller may see."""
        with self._store.snapshot(self._access.audience(caller)) as snapshot:
            sampled = snapshot.records(snapshot.sample(EVERYTHING, SAMPLED_RECORDS).tolist()).values()
        found = {name for record in sampled for name, _ in flatten(record)} - HIDDEN_FIELDS
        return tuple(sorted(format_field(name) for name in found if format_field(name).startswith(prefix)))

    def field_values(
        self, name: str, prefix: str, limit: int, caller: Caller | None
    ) -> tuple[NamedCount, ...]:
        """Return the texts of a field, the most frequent first; its name is written as in the text form of a filter."""
        condition = parse_filter(f"exists {name}")
        if not isinstance(condition, Exists):
            raise FilterError(f"{name!r:.80} is not the name of one field")
        with self._store.snapshot(self._access.audience(caller)) as snapshot:
            counts = _counts(snapshot, condition.field)
        return tuple(one for one in counts if one.name.startswith(prefix))[:limit]

    def _roles(self) -> dict[str, str]:
        bindings = dict(self._backend.bindings)
        return bindings | {"vector": "off"} if self._embeddings.disabled else bindings

    def _models(self, *, unrestricted: bool) -> tuple[ModelStatus, ...]:
        return tuple(
            ModelStatus(
                state.model.name,
                state.model.state,
                state.model.dimensions,
                state.share,
                # A number about all records, also about those that a caller may not see.
                state.pending if unrestricted else None,
            )
            for state in self._store.models.progress()
        )

    def _folder_states(
        self, snapshot: Snapshot, audience: Filter, *, changes: bool, unrestricted: bool
    ) -> tuple[FolderStatus, ...]:
        """The indexed folders that have visible records; for the owner of the process, all of them."""
        indexed_at = self._folders.indexed_at()
        is_visible = self._files.source.visibility(snapshot, audience)
        out = []
        for folder in sorted(self._folders.places().folders, key=lambda folder: folder.root):
            inside = snapshot.text_counts("path", _in_folder(folder))
            if not folder.whole or (not inside and not unrestricted):
                continue
            found = None
            if changes:
                found = count_changes(
                    folder,
                    (
                        row
                        for row, _ in self._store.files.under(folder.key)
                        if row.path in inside or not row.records
                    ),
                    lambda name: is_visible(Path(name)),
                    [] if self._database is None else [self._database],
                )
            seconds = indexed_at.get(folder.key)
            moment = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
            path = path_to_text(folder.root)
            out.append(
                FolderStatus(
                    path, len(inside), sum(inside.values()), moment, found, folder.key, folder.revision
                )
            )
        return tuple(out)


def _in_folder(folder: Folder) -> Filter:
    return Equal(FOLDER_FIELD, folder.key)


def in_session(name: str) -> Filter:
    """Return the filter of the turns and memories of a session."""
    return Equal(SESSION_FIELD, check_id(name))


def _counts(snapshot: Snapshot, name: str) -> tuple[NamedCount, ...]:
    counts = snapshot.text_counts(name).items()
    return tuple(
        NamedCount(value, number) for value, number in sorted(counts, key=lambda one: (-one[1], one[0]))
    )
