"""Indexing files: new and changed files become records, deleted files lose theirs, and unchanged files are not read.

One transaction replaces the records of a file and updates the row with its size, times and hash. An interrupted run
therefore leaves every file either done or untouched, and the next run does the rest.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from sennit.errors import InvalidInput
from sennit.ingest.file_reader import UnreadableFile, read_regular_file
from sennit.ingest.folder_registry import assign_folders, is_within, unused_folders
from sennit.ingest.git_files import read_revision
from sennit.ingest.readers import MISSING_CODE, check_readers, has_reader, lacks_code_reader, reader_version
from sennit.ingest.record_builder import (
    KNOWN_PREFIX_BYTES,
    FileContent,
    FileRecords,
    IndexTask,
    PortableModel,
    RecordBuilder,
)
from sennit.ingest.report import IndexInterrupted, IndexProgress, IndexReport, Progress, Skipped
from sennit.ingest.text_profile import id_prefixes
from sennit.ingest.walk import FileEntry, Scope, Subtrees, WalkResult, walk
from sennit.ingest.worker_pool import choose_builder
from sennit.places import Folder, FolderOptions, Places, path_to_text
from sennit.records import Record, split_id
from sennit.repositories.folders import IndexedFolders
from sennit.stores.contract import FileRow, NewVectors, RecordsRole, Transaction
from sennit.stores.prepared_records import PreparedRecord, WritableRecords

BATCH_RECORDS: Final = 4000
BATCH_BYTES: Final = 8 * 1024 * 1024
BATCH_FILES: Final = 1000
"""The size of a transaction. A commit costs milliseconds, and vectors are keyed by hash, so that each record touches
another page: many files share one. The limits bound the work that a crash loses and the wait of another writer."""

GROUP_BYTES: Final = 256 * 1024
"""Small files are parsed in groups of this size, about a tenth of a second of work."""

READ_AHEAD_FILES: Final = 256
READ_AHEAD_BYTES: Final = 64 * 1024 * 1024
"""How much may be read and not yet written, so that memory stays bounded."""

MTIME_RESOLUTION_NS: Final = 2_000_000_000
"""File systems may store times in units of up to two seconds. A file younger than that can change again without a new
modification time, so the next run compares its content."""

NO_OPTIONS: Final = FolderOptions()


class ModelSource(Protocol):
    """The embedding models of an open database."""

    def portable_models(self) -> Sequence[tuple[str, str]]: ...


class RecordWriter(Protocol):
    """Prepares and writes records."""

    def embed(
        self, records: WritableRecords, given: Mapping[str, Mapping[bytes, bytes]]
    ) -> tuple[list[PreparedRecord], NewVectors]: ...

    def transaction(self) -> AbstractContextManager[Transaction]: ...


class IndexTarget(Protocol):
    """The part of an open database that indexing needs; `sennit.Database` implements it."""

    @property
    def path(self) -> Path | None: ...

    @property
    def store(self) -> RecordsRole: ...

    @property
    def indexed_folders(self) -> IndexedFolders: ...

    @property
    def embeddings(self) -> ModelSource: ...

    @property
    def writes(self) -> RecordWriter: ...


class _Reading(NamedTuple):
    """One reading of a file: its new row, its old row, and its records unless they are unchanged."""

    row: FileRow
    known: FileRow | None
    built: FileRecords | None = None
    problem: UnreadableFile | None = None


class _FileTask(NamedTuple):
    """A file to read, and what is known of it."""

    entry: FileEntry
    folder: Folder
    path: str
    """Relative to the folder."""
    targets: tuple[str, ...]
    known: Mapping[str, FileRow]
    """The rows of its folder, by target."""
    incomplete: frozenset[str] = frozenset()
    """Targets of which some records were removed since."""
    superseded: tuple[FileRow, ...] = ()
    """Rows of the same file in a folder that it does not belong to any more."""


class _FileOutcome(NamedTuple):
    """The result of reading one file."""

    task: _FileTask
    readings: tuple[_Reading, ...]
    problem: UnreadableFile | None
    size: int


@dataclass(slots=True)
class _Batch:
    """The files of one transaction."""

    records: list[Record | PreparedRecord] = field(default_factory=list)
    vectors: dict[str, dict[bytes, bytes]] = field(default_factory=lambda: defaultdict(dict))
    rows: list[FileRow] = field(default_factory=list)
    replaced: list[FileRow] = field(default_factory=list)
    """Rows whose old records are deleted, because new ones replace them or the file has no text any more."""
    deleted: list[FileRow] = field(default_factory=list)
    """Rows that are deleted with their records."""
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes: int = 0

    def add(self, built: FileRecords) -> None:
        self.records += built.records
        for fingerprint, vectors in built.vectors.items():
            self.vectors[fingerprint].update(vectors)

    def is_full(self) -> bool:
        return (
            len(self.records) >= BATCH_RECORDS
            or self.bytes >= BATCH_BYTES
            or len(self.rows) + len(self.deleted) >= BATCH_FILES
        )

    def write(self, transaction: Transaction, records: Iterable[PreparedRecord], vectors: NewVectors) -> None:
        """Replace the records of the files, and update the manifest, in one transaction."""
        transaction.delete_files(self.deleted)
        transaction.put_files(self.rows)
        old = [
            record_id
            for row in (*self.replaced, *self.deleted)
            for record_id in _record_ids(transaction, row)
        ]
        transaction.write(records, vectors, remove=old, keep_vectors=True)


def index(
    db: IndexTarget,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    only_collections: Sequence[str] = (),
    target: str = "",
    options: FolderOptions = NO_OPTIONS,
    scope: Scope | None = None,
    progress: Progress | None = None,
    only: Iterable[str] | None = None,
) -> IndexReport:
    """Update the database to match the files at and below these paths.

    With `only_collections`, the run adds only files whose reader produces records of these collections. `target` names
    a collection for an additional reading of each file. `options` are remembered for the folders. With `only`, a list
    of real, absolute paths, the run visits only those files and folders. On Ctrl-C it raises IndexInterrupted, a
    KeyboardInterrupt that holds the report so far.
    """
    check_readers(only_collections)
    started = time.perf_counter()
    subtrees = None if only is None else Subtrees.of(only)
    roots = _resolve_paths(paths, db.path)
    run = _IndexRun(db, only_collections, target, scope or Scope(), progress or (lambda *_: None), subtrees)
    try:
        run.execute(roots, options)
    except KeyboardInterrupt:
        run.report.interrupted = True
        raise IndexInterrupted(run.report) from None
    finally:
        run.report.seconds = time.perf_counter() - started
    return run.report


def _resolve_paths(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], database: Path | None
) -> dict[str, str]:
    """The paths as they were given, by the real ones."""
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not listed:
        raise InvalidInput("index() needs at least one file or folder")
    own = None if database is None else os.path.realpath(database)
    out: dict[str, str] = {}
    for path in listed:
        name = os.fspath(path)
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidInput(f"index() takes paths of files and folders, not {path!r}")
        real = os.path.realpath(name)
        if own is not None and (real == own or real.startswith(own + os.sep)):
            raise InvalidInput(
                f"{name!r} belongs to the database itself. Index the folder that you want to search."
            )
        out[real] = name
    return out


def _record_ids(transaction: Transaction, row: FileRow) -> list[str]:
    """The full ids of a file's records: their parent is one of its parents, and their ids have its prefixes."""
    prefixes = id_prefixes(row.place)
    parents = (row.place, *(json.loads(row.other_parents) if row.other_parents else ()))
    found = (full for parent in parents for full in transaction.child_ids(parent, path=row.path))
    return [
        full
        for full in found
        if (record_id := split_id(full)[1]) == row.place or record_id.startswith(prefixes)
    ]


class _IndexRun:
    """One run over some root paths."""

    def __init__(
        self,
        db: IndexTarget,
        only_collections: Sequence[str],
        target: str,
        scope: Scope,
        progress: Progress,
        subtrees: Subtrees | None,
    ) -> None:
        self.report = IndexReport()
        self._table = db.store.files
        self._db = db
        self._only_collections = tuple(only_collections)
        self._target = target
        self._scope = scope
        self._progress = progress
        self._subtrees = subtrees
        self._places = Places()
        self._single_files: dict[str, Folder] = {}
        self._bytes_to_read = 0
        self._batch = _Batch()

    def execute(self, given: Mapping[str, str], options: FolderOptions) -> None:
        """Walk the roots, compare with the known files, read and write what changed, and delete what is gone."""
        self._progress(IndexProgress("scan"))
        report = self.report
        with self._db.writes.transaction() as transaction:
            assigned = assign_folders(transaction, self._db.indexed_folders, self._table, given, options)
        self._places, self._single_files = assigned.places, assigned.single_files
        # Read first: if somebody switches the branch during the run, the next run reads what changed.
        revisions = {
            folder.key: read_revision(folder.root)
            for folder in self._places.folders
            if folder.key in self._covered(given)
        }
        tree, known, incomplete = self._walk(list(given), assigned.adopted)
        report.ignored = [Skipped(path, reason) for path, reason in tree.ignored.items()]
        gone = {
            path: rows
            for path, rows in known.items()
            if path not in tree.files and not is_within(path, tree.unreadable_folders)
        }
        moved_targets = {(row.inode, row.size): path for path, rows in gone.items() for row in rows}
        to_read = []
        for path, entry in tree.files.items():
            task = self._plan(entry, known.get(path, ()), incomplete)
            if task is None:
                continue
            report.seen += 1
            moved_from = None if path in known else moved_targets.get((entry.inode, entry.size))
            if moved_from is not None:
                more = (row.target for row in gone[moved_from])
                task = task._replace(targets=tuple(dict.fromkeys((*task.targets, *more))))
            if task.superseded or any(not self._is_current(task, target) for target in task.targets):
                to_read.append(task)
            elif (
                problem := next((row.problem for row in task.known.values() if row.problem), None)
            ) is not None:
                report.skipped.append(Skipped(path, problem))
            else:
                report.unchanged += 1
        report.seen += len(tree.skipped)
        report.skipped += [Skipped(path, reason) for path, reason in tree.skipped.items()]
        if any(lacks_code_reader(task.path) for task in to_read):
            report.hints.append(MISSING_CODE)
        vanished = self._vanished(list(given)) if to_read else {}
        by_hash: dict[bytes, list[str]] = defaultdict(list)
        for path, rows in (*vanished.items(), *gone.items()):
            if rows[0].problem is None and rows[0].size:
                by_hash[rows[0].hash].append(path)
        removable = {**vanished, **gone}
        self._bytes_to_read = sum(task.entry.size for task in to_read)
        self._report_read(to_read, 0, 0)
        done_bytes = 0
        for done, outcome in enumerate(self._read_all(to_read), 1):
            self._add_to_batch(outcome, removable, by_hash)
            done_bytes += outcome.task.entry.size
            self._report_read(to_read, done, done_bytes)
        self._progress(IndexProgress("write"))
        for path, rows in gone.items():
            if path in removable:
                self._batch.deleted += rows
                self._batch.counts["removed"] += rows[0].problem is None
                self._write_batch(only_if_full=True)
        self._write_batch()
        self._delete_unused_folders()
        self._db.indexed_folders.mark_indexed(revisions, complete=self._subtrees is None)
        report.skipped.sort()

    def _covered(self, given: Mapping[str, str]) -> list[str]:
        """The keys of the folders that the run has visited as a whole."""
        return [
            folder.key
            for folder in self._places.folders
            if folder.whole and is_within(path_to_text(folder.root), [path_to_text(root) for root in given])
        ]

    def _delete_unused_folders(self) -> None:
        unused = unused_folders(self._db.indexed_folders.places(), self._table)
        if unused:
            with self._db.writes.transaction() as transaction:
                for folder in unused:
                    self._db.indexed_folders.delete(transaction, folder.key)

    def _report_read(self, tasks: Sequence[_FileTask], done: int, size: int) -> None:
        """Report how many files are read, and the one that is next: files are read in this order."""
        path = tasks[done].entry.path if done < len(tasks) else ""
        self._progress(IndexProgress("read", done, len(tasks), size, self._bytes_to_read, path))

    def _walk(
        self, roots: Sequence[str], adopted: Sequence[Folder]
    ) -> tuple[WalkResult, dict[str, list[FileRow]], set[tuple[str, str, str]]]:
        """The files that exist, the rows of those that are known, by absolute path, and which rows lack records."""
        tree = WalkResult()
        known: dict[str, list[FileRow]] = defaultdict(list)
        incomplete: set[tuple[str, str, str]] = set()
        skip_folders = [os.path.realpath(self._db.path)] if self._db.path is not None else []
        seen: set[tuple[str, str, str]] = set()
        for root in roots:
            for path in [root] if self._subtrees is None else self._subtrees.within(root):
                text = path_to_text(path)
                for folder in (*self._places.folders, *adopted):
                    inside = folder.relative(text)
                    if inside is None and not is_within(path_to_text(folder.root), [text]):
                        continue
                    for row, complete in self._table.under(folder.key, inside or ""):
                        if row[:3] not in seen:
                            seen.add(row[:3])
                            known[folder.absolute(row.path)].append(row)
                            if not complete:
                                incomplete.add(row[:3])
            if os.path.lexists(root):
                walk(root, self._scope, tree, skip_folders=skip_folders, subtrees=self._subtrees)
        return tree, known, incomplete

    def _vanished(self, roots: Sequence[str]) -> dict[str, list[FileRow]]:
        """The rows of folders that do not exist any more: a new file may be one of theirs."""
        out: dict[str, list[FileRow]] = defaultdict(list)
        for folder in self._places.folders:
            if folder.whole and not os.path.lexists(folder.root) and folder.root not in roots:
                for row, _ in self._table.under(folder.key):
                    out[folder.absolute(row.path)].append(row)
        return out

    def _plan(
        self, entry: FileEntry, rows: Sequence[FileRow], incomplete: set[tuple[str, str, str]]
    ) -> _FileTask | None:
        """How a file is to be read; None if this run does not read it."""
        owner = self._owner(entry.path, rows)
        if owner is None:
            return None
        folder, path = owner
        own = {row.target: row for row in rows if row.folder == folder.key}
        targets = dict.fromkeys(row.target for row in rows)
        if self._target:
            targets[self._target] = None
        elif has_reader(path, self._only_collections):
            targets[""] = None
        if not targets:
            return None
        damaged = frozenset(target for target, row in own.items() if row[:3] in incomplete)
        superseded = tuple(row for row in rows if row.folder != folder.key)
        return _FileTask(entry, folder, path, tuple(targets), own, damaged, superseded)

    def _owner(self, path: str, rows: Sequence[FileRow]) -> tuple[Folder, str] | None:
        """The folder that a file belongs to, and its relative path."""
        single = self._single_files.get(path)
        # Of a folder that is not indexed as a whole, only the known files belong to it.
        keys = {row.folder for row in rows} if single is None else {single.key}
        for folder, relative in self._places.owners(path):
            if folder.whole or folder.key in keys:
                return folder, relative
        return None

    def _reader(self, folder: Folder, path: str) -> str:
        version, options = reader_version(path), folder.options_digest
        return f"{version}>{options}" if options else version

    def _is_current(self, task: _FileTask, target: str) -> bool:
        """Whether the row of a reading matches the file."""
        row, entry = task.known.get(target), task.entry
        return (
            row is not None
            and target not in task.incomplete
            and row.size == entry.size
            and row.mtime_ns == entry.mtime_ns
            and row.ctime_ns == entry.ctime_ns
            and row.inode == entry.inode
            and row.reader == self._reader(task.folder, task.path)
        )

    # Reading, in a pool of threads.

    def _read_all(self, files: Sequence[_FileTask]) -> Iterator[_FileOutcome]:
        """Read the files and build their records, in order; a bounded number of files ahead of the writer."""
        folders = {task.folder.key: task.folder for task in files}
        index_task = IndexTask(tuple(folders.values()), self._only_collections)
        builder = choose_builder(index_task, [task.entry.size for task in files], self._portable_models)
        ahead: deque[tuple[Future[list[_FileOutcome]], int, int]] = deque()
        files_ahead = bytes_ahead = 0
        pool = ThreadPoolExecutor(builder.threads, thread_name_prefix="sennit-read")
        try:
            # Closed before the thread pool, so that an interrupted run does not wait for files in progress.
            with builder:
                for group in _group_files(files, builder.group_size):
                    group_bytes = sum(task.entry.size for task in group)
                    while ahead and (
                        files_ahead + len(group) > READ_AHEAD_FILES
                        or bytes_ahead + group_bytes > READ_AHEAD_BYTES
                    ):
                        future, done_files, done_bytes = ahead.popleft()
                        files_ahead -= done_files
                        bytes_ahead -= done_bytes
                        yield from future.result()
                    ahead.append((pool.submit(self._read_group, group, builder), len(group), group_bytes))
                    files_ahead += len(group)
                    bytes_ahead += group_bytes
                while ahead:
                    yield from ahead.popleft()[0].result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _portable_models(self) -> tuple[PortableModel, ...]:
        """The models that workers embed with, each with the texts that need no embedding."""
        hashes = self._db.store.models.known_hashes
        return tuple(
            PortableModel(
                fingerprint, spec, b"".join(sorted(one[:KNOWN_PREFIX_BYTES] for one in hashes(fingerprint)))
            )
            for fingerprint, spec in self._db.embeddings.portable_models()
        )

    def _read_group(self, group: Sequence[_FileTask], builder: RecordBuilder) -> list[_FileOutcome]:
        """Read some files, and build the records of those whose content changed."""
        read = [self._read_one(task) for task in group]
        contents = [content for _, listed in read for content in listed if content is not None]
        built = iter(builder.build(contents))
        return [
            outcome._replace(
                readings=tuple(
                    reading if content is None else _complete(reading, next(built))
                    for reading, content in zip(outcome.readings, listed, strict=True)
                )
            )
            for outcome, listed in read
        ]

    def _read_one(self, task: _FileTask) -> tuple[_FileOutcome, list[FileContent | None]]:
        """Read one file; returns its readings, each with the content if that differs from the known row."""
        entry, folder = task.entry, task.folder
        try:
            data, status = read_regular_file(entry.os_path, self._scope.max_bytes)
        except UnreadableFile as problem:
            return _FileOutcome(task, (), problem, 0), []
        digest = hashlib.blake2b(data, digest_size=16).digest()
        reader = self._reader(folder, task.path)
        # A recent time may not change with the content. -1 matches no file, so the next run compares the content.
        is_settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > MTIME_RESOLUTION_NS
        readings: list[_Reading] = []
        contents: list[FileContent | None] = []
        for target in task.targets:
            known = task.known.get(target)
            row = FileRow(
                folder.key,
                task.path,
                target,
                folder.place(task.path, target),
                "",
                reader,
                status.st_size,
                status.st_mtime_ns if is_settled else -1,
                status.st_ctime_ns,
                status.st_ino & ((1 << 63) - 1),
                digest,
                0,
                None,
            )
            is_same = known is not None and (known.hash, known.reader) == (digest, reader)
            if known is not None and is_same and target not in task.incomplete:
                kept = row._replace(
                    other_parents=known.other_parents, records=known.records, problem=known.problem
                )
                readings.append(_Reading(kept, known))
                contents.append(None)
            else:
                readings.append(_Reading(row, known))
                contents.append(FileContent(folder.key, task.path, target, data, status.st_mtime_ns))
        return _FileOutcome(task, tuple(readings), None, len(data)), contents

    # Writing, in the calling thread.

    def _add_to_batch(
        self,
        outcome: _FileOutcome,
        removable: dict[str, list[FileRow]],
        by_hash: dict[bytes, list[str]],
    ) -> None:
        """Add the outcome of one file to the batch."""
        batch, task = self._batch, outcome.task
        path = task.entry.path
        self.report.bytes_read += outcome.size
        problem = outcome.problem or next((one.problem for one in outcome.readings if one.problem), None)
        if problem is not None:
            self.report.skipped.append(Skipped(path, str(problem)))
        built = [reading for reading in outcome.readings if reading.built is not None]
        for reading in outcome.readings:
            if reading.problem is not None:
                if reading.problem.permanent:
                    # The file has no text any more, so its old records are deleted.
                    batch.rows.append(reading.row)
                    batch.replaced.append(reading.known or reading.row)
                continue
            batch.rows.append(reading.row)
            if reading.built is not None:
                batch.replaced.append(reading.known or reading.row)
                batch.add(reading.built)
                batch.bytes += outcome.size
        if outcome.problem is None:
            batch.deleted += task.superseded
        if built:
            self._count_change(task, built, removable, by_hash)
        elif problem is None:
            known_problem = next((one.row.problem for one in outcome.readings if one.row.problem), None)
            if known_problem is None:
                batch.counts["unchanged"] += 1
            else:
                self.report.skipped.append(Skipped(path, known_problem))
        self._write_batch(only_if_full=True)

    def _count_change(
        self,
        task: _FileTask,
        built: Sequence[_Reading],
        removable: dict[str, list[FileRow]],
        by_hash: dict[bytes, list[str]],
    ) -> None:
        """Count a changed file as added, updated or renamed; a renamed file leaves its old path."""
        counts = self._batch.counts
        is_new = not task.known and not task.superseded
        same_content = by_hash.get(built[0].row.hash) if is_new else None
        if same_content:
            self._batch.deleted += removable.pop(same_content.pop())
            counts["renamed"] += 1
        elif is_new or all(row.problem is not None for row in (*task.known.values(), *task.superseded)):
            counts["added"] += 1
        elif task.superseded and not task.known:
            counts["unchanged"] += 1  # the same file, which another folder has now
        else:
            counts["updated"] += 1

    def _write_batch(self, *, only_if_full: bool = False) -> None:
        batch, report = self._batch, self.report
        if only_if_full and not batch.is_full():
            return
        if batch.rows or batch.deleted:
            records, vectors = self._db.writes.embed(batch.records, batch.vectors)
            report.embedded += max((len(computed) for computed in vectors.values()), default=0)
            with self._db.writes.transaction() as transaction:
                batch.write(transaction, records, vectors)
            written = transaction.result
            report.records_added += written.added
            report.records_updated += written.updated
            report.records_removed += written.removed
            report.records_unchanged += written.unchanged
        for name, count in batch.counts.items():
            setattr(report, name, getattr(report, name) + count)
        self._batch = _Batch()


def _group_files(files: Iterable[_FileTask], max_files: int) -> Iterator[list[_FileTask]]:
    """Group the files in order: small files together, up to GROUP_BYTES."""
    group: list[_FileTask] = []
    size = 0
    for task in files:
        if group and (len(group) >= max_files or size + task.entry.size > GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(task)
        size += task.entry.size
    if group:
        yield group


def _complete(reading: _Reading, built: FileRecords | UnreadableFile) -> _Reading:
    if isinstance(built, UnreadableFile):
        return reading._replace(row=reading.row._replace(problem=str(built)), problem=built)
    others = json.dumps(built.other_parents) if built.other_parents else ""
    in_place = len(built.records) if not others else built.in_place
    return reading._replace(row=reading.row._replace(records=in_place, other_parents=others), built=built)
