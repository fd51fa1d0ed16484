"""Indexing files: new and changed files become records, deleted files lose theirs, and unchanged files are not read.

One transaction replaces the records of a file and updates the row with its size, times and hash. An interrupted run
therefore leaves every file either done or untouched, and the next run does the rest.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from sennit.errors import InvalidInput, NotFound
from sennit.ingest.file_reader import UnreadableFile, read_regular_file
from sennit.ingest.profiles import get_profile
from sennit.ingest.record_builder import FileContent, FileRecords, IndexTask, PortableModel, RecordBuilder
from sennit.ingest.report import IndexInterrupted, IndexProgress, IndexReport, Progress, Skipped
from sennit.ingest.text_profile import id_prefixes
from sennit.ingest.walk import FileEntry, Scope, Subtrees, WalkResult, path_to_text, walk
from sennit.ingest.worker_pool import choose_builder
from sennit.records import Record
from sennit.stores.embedded.files import FileManifest, FileRow, path_range
from sennit.stores.embedded.prepared_records import PreparedRecord, WritableRecords
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.embedded.transaction import NewVectors, Transaction

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
    def store(self) -> EmbeddedStore: ...

    @property
    def embeddings(self) -> ModelSource: ...

    @property
    def writes(self) -> RecordWriter: ...


class _FileOutcome(NamedTuple):
    """The result of reading one file: its row, and its records unless they are unchanged."""

    entry: FileEntry
    row: FileRow | None
    built: FileRecords | None
    problem: UnreadableFile | None
    size: int


@dataclass(slots=True)
class _Batch:
    """The files of one transaction."""

    records: list[Record | PreparedRecord] = field(default_factory=list)
    vectors: dict[str, dict[bytes, bytes]] = field(default_factory=lambda: defaultdict(dict))
    rows: list[FileRow] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """Paths whose old records are deleted, because new ones replace them or the file has no text any more."""
    deleted: list[str] = field(default_factory=list)
    """Paths whose rows and records are deleted."""
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
        FileManifest.delete(transaction, self.deleted)
        FileManifest.upsert(transaction, self.rows)
        old = [
            record_id
            for path in (*self.replaced, *self.deleted)
            for record_id in FileManifest.record_ids(transaction, path, id_prefixes(path))
        ]
        transaction.write(records, vectors, remove=old)


def index(
    db: IndexTarget,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    collection: str = "files",
    scope: Scope | None = None,
    progress: Progress | None = None,
    only: Iterable[str] | None = None,
    profile: str = "text",
) -> IndexReport:
    """Update the database to match the files at and below these paths.

    With `only`, a list of real, absolute paths, the run visits only those files and folders. `profile` selects how
    files become records. On Ctrl-C it raises IndexInterrupted, a KeyboardInterrupt that holds the report so far.
    """
    started = time.perf_counter()
    subtrees = None if only is None else Subtrees.of(only)
    run = _IndexRun(db, collection, scope or Scope(), progress or (lambda *_: None), subtrees, profile)
    try:
        run.execute(_resolve_roots(paths, run.table))
    except KeyboardInterrupt:
        run.report.interrupted = True
        raise IndexInterrupted(run.report) from None
    finally:
        run.report.seconds = time.perf_counter() - started
    return run.report


def _resolve_roots(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], table: FileManifest
) -> dict[str, None]:
    """The real paths. A path that does not exist is allowed if it was indexed before: its records are deleted."""
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not listed:
        raise InvalidInput("index() needs at least one file or folder")
    out: dict[str, None] = {}
    for path in listed:
        name = os.fspath(path)
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidInput(f"index() takes paths of files and folders, not {path!r}")
        real = os.path.realpath(name)
        if not os.path.lexists(real) and next(table.under(path_to_text(real)), None) is None:
            raise NotFound(f"There is no file or folder {name!r}, and none was indexed there before")
        out[real] = None
    return out


class _IndexRun:
    """One run over some root paths."""

    def __init__(
        self,
        db: IndexTarget,
        collection: str,
        scope: Scope,
        progress: Progress,
        subtrees: Subtrees | None,
        profile: str,
    ) -> None:
        self.report = IndexReport()
        self.table = FileManifest(db.store.pool)
        self._db = db
        self._collection = collection
        self._scope = scope
        self._progress = progress
        self._subtrees = subtrees
        self._profile = profile
        self._reader_version = get_profile(profile).reader_version
        self._roots: list[str] = []
        self._bytes_to_read = 0
        self._batch = _Batch()

    def execute(self, roots: Iterable[str]) -> None:
        """Walk the roots, compare with the known files, read and write what changed, and delete what is gone."""
        self._roots = list(roots)
        self._progress(IndexProgress("scan"))
        tree, known, incomplete = self._walk(self._roots)
        report = self.report
        report.seen = len(tree.files) + len(tree.skipped)
        report.skipped = [Skipped(path, reason) for path, reason in tree.skipped.items()]
        report.ignored = [Skipped(path, reason) for path, reason in tree.ignored.items()]
        gone = {
            path: row
            for path, row in known.items()
            if path not in tree.files and not _is_within(path, tree.unreadable_folders)
        }
        to_read = []
        for path, entry in tree.files.items():
            row = known.get(path)
            if row is None or path in incomplete or not self._is_unchanged(row, entry):
                to_read.append((entry, row if path not in incomplete else None))
            elif row.problem is not None:
                report.skipped.append(Skipped(path, row.problem))
            else:
                report.unchanged += 1
        by_hash: dict[bytes, list[str]] = defaultdict(list)
        for path, row in gone.items():
            if row.records:
                by_hash[row.hash].append(path)
        self._bytes_to_read = sum(entry.size for entry, _ in to_read)
        self._report_read(to_read, 0, 0)
        done_bytes = 0
        for done, outcome in enumerate(self._read_all(to_read), 1):
            self._add_to_batch(outcome, known.get(outcome.entry.path), gone, by_hash)
            done_bytes += outcome.entry.size
            self._report_read(to_read, done, done_bytes)
        self._progress(IndexProgress("write"))
        for path in gone:
            self._batch.deleted.append(path)
            self._batch.counts["removed"] += gone[path].problem is None
            self._write_batch(only_if_full=True)
        self._write_batch()
        report.skipped.sort()

    def _report_read(self, files: Sequence[tuple[FileEntry, FileRow | None]], done: int, size: int) -> None:
        """Report how many files are read, and the one that is next: files are read in this order."""
        path = files[done][0].path if done < len(files) else ""
        self._progress(IndexProgress("read", done, len(files), size, self._bytes_to_read, path))

    def _walk(self, roots: Iterable[str]) -> tuple[WalkResult, dict[str, FileRow], set[str]]:
        tree = WalkResult()
        known: dict[str, FileRow] = {}
        incomplete: set[str] = set()
        skip_folders = [os.path.realpath(self._db.path)] if self._db.path is not None else []
        for root in roots:
            for path in [root] if self._subtrees is None else self._subtrees.within(root):
                for row, complete in self.table.under(path_to_text(path)):
                    known[row.path] = row
                    if not complete:
                        incomplete.add(row.path)
            if os.path.lexists(root):
                walk(root, self._scope, tree, skip_folders=skip_folders, subtrees=self._subtrees)
        return tree, known, incomplete

    def _is_unchanged(self, row: FileRow, entry: FileEntry) -> bool:
        return (
            row.size == entry.size
            and row.mtime_ns == entry.mtime_ns
            and row.ctime_ns == entry.ctime_ns
            and row.inode == entry.inode
            and row.collection == self._collection
            and row.reader == self._reader_version(entry.path)
        )

    # Reading, in a pool of threads.

    def _read_all(self, files: Sequence[tuple[FileEntry, FileRow | None]]) -> Iterator[_FileOutcome]:
        """Read the files and build their records, in order; a bounded number of files ahead of the writer."""
        models = tuple(PortableModel(*model) for model in self._db.embeddings.portable_models())
        task = IndexTask(self._profile, self._collection, tuple(self._roots), models)
        builder = choose_builder(task, [entry.size for entry, _ in files])
        ahead: deque[tuple[Future[list[_FileOutcome]], int, int]] = deque()
        files_ahead = bytes_ahead = 0
        pool = ThreadPoolExecutor(builder.threads, thread_name_prefix="sennit-read")
        try:
            # Closed before the thread pool, so that an interrupted run does not wait for files in progress.
            with builder:
                for group in _group_files(files, builder.group_size):
                    group_bytes = sum(entry.size for entry, _ in group)
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

    def _read_group(
        self, group: Sequence[tuple[FileEntry, FileRow | None]], builder: RecordBuilder
    ) -> list[_FileOutcome]:
        """Read some files, and build the records of those whose content changed."""
        read = [self._read_one(entry, known) for entry, known in group]
        built = iter(builder.build([content for _, content in read if content is not None]))
        return [outcome if content is None else _complete(outcome, next(built)) for outcome, content in read]

    def _read_one(self, entry: FileEntry, known: FileRow | None) -> tuple[_FileOutcome, FileContent | None]:
        """Read one file; returns its new row, and its content if that differs from the known row."""
        try:
            data, status = read_regular_file(entry.os_path, self._scope.max_bytes)
        except UnreadableFile as problem:
            return _FileOutcome(entry, None, None, problem, 0), None
        digest = hashlib.blake2b(data, digest_size=16).digest()
        reader = self._reader_version(entry.path)
        # A recent time may not change with the content. -1 matches no file, so the next run compares the content.
        is_settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > MTIME_RESOLUTION_NS
        row = FileRow(
            entry.path,
            self._collection,
            reader,
            status.st_size,
            status.st_mtime_ns if is_settled else -1,
            status.st_ctime_ns,
            status.st_ino & ((1 << 63) - 1),
            digest,
            0,
            None,
        )
        if known is not None and (known.hash, known.reader, known.collection) == (
            digest,
            reader,
            self._collection,
        ):
            row = row._replace(records=known.records, problem=known.problem)
            return _FileOutcome(entry, row, None, None, len(data)), None
        return _FileOutcome(entry, row, None, None, len(data)), FileContent(
            entry.path, data, status.st_mtime_ns
        )

    # Writing, in the calling thread.

    def _add_to_batch(
        self,
        outcome: _FileOutcome,
        known: FileRow | None,
        gone: dict[str, FileRow],
        by_hash: dict[bytes, list[str]],
    ) -> None:
        """Add the outcome of one file to the batch."""
        batch, row = self._batch, outcome.row
        path = outcome.entry.path
        self.report.bytes_read += outcome.size
        if outcome.problem is not None:
            self.report.skipped.append(Skipped(path, str(outcome.problem)))
            if row is not None and outcome.problem.permanent:
                # The file has no text any more, so its old records are deleted.
                batch.rows.append(row)
                batch.replaced.append(path)
        elif row is None or outcome.built is None:
            if row is not None:
                batch.rows.append(row)
                if row.problem is None:
                    batch.counts["unchanged"] += 1
                else:
                    self.report.skipped.append(Skipped(path, row.problem))
        else:
            same_content = by_hash.get(row.hash) if known is None else None
            if same_content:
                old_path = same_content.pop()
                del gone[old_path]
                batch.deleted.append(old_path)
                batch.counts["renamed"] += 1
            else:
                batch.counts["added" if known is None or known.problem is not None else "updated"] += 1
            batch.rows.append(row)
            batch.replaced.append(path)
            batch.add(outcome.built)
            batch.bytes += outcome.size
        self._write_batch(only_if_full=True)

    def _write_batch(self, *, only_if_full: bool = False) -> None:
        batch, report = self._batch, self.report
        if only_if_full and not batch.is_full():
            return
        if batch.rows or batch.deleted:
            records, vectors = self._db.writes.embed(batch.records, batch.vectors)
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


def _group_files(
    files: Iterable[tuple[FileEntry, FileRow | None]], max_files: int
) -> Iterator[list[tuple[FileEntry, FileRow | None]]]:
    """Group the files in order: small files together, up to GROUP_BYTES."""
    group: list[tuple[FileEntry, FileRow | None]] = []
    size = 0
    for entry, row in files:
        if group and (len(group) >= max_files or size + entry.size > GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append((entry, row))
        size += entry.size
    if group:
        yield group


def _complete(outcome: _FileOutcome, built: FileRecords | UnreadableFile) -> _FileOutcome:
    assert outcome.row is not None
    if isinstance(built, UnreadableFile):
        return outcome._replace(row=outcome.row._replace(problem=str(built)), problem=built)
    return outcome._replace(row=outcome.row._replace(records=len(built.records)), built=built)


def _is_within(path: str, folders: Sequence[str]) -> bool:
    for folder in folders:
        low, high = path_range(folder)
        if path == folder or low <= path < high:
            return True
    return False
