"""Taking files in: what is new or changed becomes records, what is gone leaves, the rest is not even read.

Each file goes from its old records to its new ones in one transaction, with the row that says how it looked.
A run that stops anywhere has therefore done some files and not others, and the next run does the others.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from sennit.errors import InvalidInput, NotFound
from sennit.ingest.making import Content, Made, Maker, Model, Task
from sennit.ingest.profiles import profile_named
from sennit.ingest.readers import prefixes_of
from sennit.ingest.reading import Unreadable, contents
from sennit.ingest.report import IndexInterrupted, IndexReport, Skipped
from sennit.ingest.walk import Found, Part, Scope, Tree, known_as, walk
from sennit.ingest.workers import maker_for
from sennit.records import Record
from sennit.stores.embedded.files import FileRow, FileTable, below
from sennit.stores.embedded.prepared import Prepared, Writables
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.embedded.writing import Also, Written

BATCH_RECORDS: Final = 4000
BATCH_BYTES: Final = 8 * 1024 * 1024
BATCH_FILES: Final = 1000
"""Files share a transaction: it costs milliseconds to be durable, and vectors are filed under hashes, so that every one
of its records changes another page. Never so many that much is lost, or that another writer waits for long."""

GROUP_BYTES: Final = 256 * 1024
"""What small files are handed over together: a tenth of a second of work."""

AHEAD_FILES: Final = 256
AHEAD_BYTES: Final = 64 * 1024 * 1024
"""What may be read and not yet written, so that memory stays bounded."""

SETTLED_NS: Final = 2_000_000_000
"""A file changed less than this ago may change again without a new time, on file systems that count whole
seconds; it is compared by content the next time."""

Progress = Callable[[int, int, str], None]
"""Called with how many files are done, of how many, and the path of the last."""


class Models(Protocol):
    """The embedding models of an open database."""

    def portable(self) -> Sequence[tuple[str, str]]: ...


class Target(Protocol):
    """The open database, as far as ingest needs it; `sennit.Database` is one."""

    @property
    def path(self) -> Path | None: ...

    @property
    def store(self) -> EmbeddedStore: ...

    @property
    def vectors(self) -> Models: ...

    def apply(
        self, records: Writables, also: Also, given: Mapping[str, Mapping[bytes, bytes]]
    ) -> Written: ...


class _Read(NamedTuple):
    """What became of one file: its row, and what was made of it unless that is known to be as it was."""

    found: Found
    row: FileRow | None
    made: Made | None
    problem: Unreadable | None
    size: int


@dataclass(slots=True)
class _Batch:
    """Files that are written in one transaction."""

    records: list[Record | Prepared] = field(default_factory=list)
    vectors: dict[str, dict[bytes, bytes]] = field(default_factory=lambda: defaultdict(dict))
    rows: list[FileRow] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """Paths whose records are replaced or removed."""
    dropped: list[str] = field(default_factory=list)
    """Paths that are forgotten."""
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes: int = 0

    def put(self, made: Made) -> None:
        self.records += made.records
        for fingerprint, vectors in made.vectors.items():
            self.vectors[fingerprint].update(vectors)

    def full(self) -> bool:
        return (
            len(self.records) >= BATCH_RECORDS
            or self.bytes >= BATCH_BYTES
            or len(self.rows) + len(self.dropped) >= BATCH_FILES
        )

    def write(self, connection: sqlite3.Connection) -> Iterator[str]:
        FileTable.drop(connection, self.dropped)
        FileTable.put(connection, self.rows)
        for path in (*self.replaced, *self.dropped):
            yield from FileTable.records_of(connection, path, prefixes_of(path))


def index(
    db: Target,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    collection: str = "files",
    scope: Scope | None = None,
    progress: Progress | None = None,
    only: Iterable[str] | None = None,
    profile: str = "text",
) -> IndexReport:
    """Make the database hold what the files at and below these paths hold now.

    With `only`, no more is looked at than what is at and below these real, absolute places among them. `profile`
    names the way in which files become records. Raises IndexInterrupted, a KeyboardInterrupt with the report so
    far, on Ctrl-C.
    """
    started = time.perf_counter()
    part = None if only is None else Part.of(only)
    run = _Run(db, collection, scope or Scope(), progress or (lambda *_: None), part, profile)
    try:
        run.work(_roots(paths, run.table))
    except KeyboardInterrupt:
        run.report.interrupted = True
        raise IndexInterrupted(run.report) from None
    finally:
        run.report.seconds = time.perf_counter() - started
    return run.report


def _roots(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], table: FileTable
) -> dict[str, None]:
    """The real places of the paths; one that is gone is allowed when it was indexed once."""
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not listed:
        raise InvalidInput("index() needs at least one file or folder")
    out: dict[str, None] = {}
    for path in listed:
        name = os.fspath(path)
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidInput(f"index() takes paths of files and folders, not {path!r}")
        real = os.path.realpath(name)
        if not os.path.lexists(real) and next(table.under(known_as(real)), None) is None:
            raise NotFound(f"There is no file or folder {name!r}, and none was indexed there before")
        out[real] = None
    return out


class _Run:
    """One run over some roots."""

    def __init__(
        self,
        db: Target,
        collection: str,
        scope: Scope,
        progress: Progress,
        part: Part | None,
        profile: str,
    ) -> None:
        self.report = IndexReport()
        self.table = FileTable(db.store.database)
        self._db = db
        self._collection = collection
        self._scope = scope
        self._progress = progress
        self._part = part
        self._profile = profile
        self._reader_of = profile_named(profile).reader_of
        self._roots: list[str] = []
        self._batch = _Batch()

    def work(self, roots: Iterable[str]) -> None:
        """The whole run: look, compare, read, write, and remove what is gone."""
        self._roots = list(roots)
        tree, known, incomplete = self._look(self._roots)
        report = self.report
        report.seen = len(tree.files) + len(tree.skipped)
        report.skipped = [Skipped(path, reason) for path, reason in tree.skipped.items()]
        gone = {
            path: row
            for path, row in known.items()
            if path not in tree.files and not _within(path, tree.closed)
        }
        wanted = []
        for path, found in tree.files.items():
            row = known.get(path)
            if row is None or path in incomplete or not self._is_current(row, found):
                wanted.append((found, row if path not in incomplete else None))
            elif row.problem is not None:
                report.skipped.append(Skipped(path, row.problem))
            else:
                report.unchanged += 1
        by_hash: dict[bytes, list[str]] = defaultdict(list)
        for path, row in gone.items():
            if row.records:
                by_hash[row.hash].append(path)
        for done, read in enumerate(self._read_all(wanted), 1):
            self._take(read, known.get(read.found.path), gone, by_hash)
            self._progress(done, len(wanted), read.found.path)
        for path in gone:
            self._batch.dropped.append(path)
            self._batch.counts["removed"] += gone[path].problem is None
            self._flush(only_full=True)
        self._flush()
        report.skipped.sort()

    def _look(self, roots: Iterable[str]) -> tuple[Tree, dict[str, FileRow], set[str]]:
        tree = Tree()
        known: dict[str, FileRow] = {}
        incomplete: set[str] = set()
        leave_out = [os.path.realpath(self._db.path)] if self._db.path is not None else []
        for root in roots:
            for place in [root] if self._part is None else self._part.within(root):
                for row, whole in self.table.under(known_as(place)):
                    known[row.path] = row
                    if not whole:
                        incomplete.add(row.path)
            if os.path.lexists(root):
                walk(root, self._scope, tree, leave_out=leave_out, part=self._part)
        return tree, known, incomplete

    def _is_current(self, row: FileRow, found: Found) -> bool:
        return (
            row.size == found.size
            and row.mtime_ns == found.mtime_ns
            and row.ctime_ns == found.ctime_ns
            and row.inode == found.inode
            and row.collection == self._collection
            and row.reader == self._reader_of(found.path)
        )

    # Reading, in threads.

    def _read_all(self, wanted: Sequence[tuple[Found, FileRow | None]]) -> Iterator[_Read]:
        """Every file's outcome, in order, read ahead within bounds."""
        models = tuple(Model(*model) for model in self._db.vectors.portable())
        task = Task(self._profile, self._collection, tuple(self._roots), models)
        maker = maker_for(task, [found.size for found, _ in wanted])
        ahead: deque[tuple[Future[list[_Read]], int, int]] = deque()
        files = size = 0
        pool = ThreadPoolExecutor(maker.readers, thread_name_prefix="sennit-read")
        try:
            # Left before the pool is: what is still under way when a run is interrupted ends at once.
            with maker:
                for group in _groups(wanted, maker.at_once):
                    more = sum(found.size for found, _ in group)
                    while ahead and (files + len(group) > AHEAD_FILES or size + more > AHEAD_BYTES):
                        future, its_files, its_size = ahead.popleft()
                        files -= its_files
                        size -= its_size
                        yield from future.result()
                    ahead.append((pool.submit(self._read, group, maker), len(group), more))
                    files += len(group)
                    size += more
                while ahead:
                    yield from ahead.popleft()[0].result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _read(self, group: Sequence[tuple[Found, FileRow | None]], maker: Maker) -> list[_Read]:
        """What becomes of some files."""
        looked = [self._looked_at(found, known) for found, known in group]
        outcomes = iter(maker.make([content for _, content in looked if content is not None]))
        return [read if content is None else _completed(read, next(outcomes)) for read, content in looked]

    def _looked_at(self, found: Found, known: FileRow | None) -> tuple[_Read, Content | None]:
        """What is known of a file once it is read, and its content if records are to be made of it."""
        try:
            data, status = contents(found.opened, self._scope.max_bytes)
        except Unreadable as problem:
            return _Read(found, None, None, problem, 0), None
        digest = hashlib.blake2b(data, digest_size=16).digest()
        reader = self._reader_of(found.path)
        # A time that is not settled is not kept: no file has it, so the file is compared by content next time.
        settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > SETTLED_NS
        row = FileRow(
            found.path,
            self._collection,
            reader,
            status.st_size,
            status.st_mtime_ns if settled else -1,
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
            return _Read(found, row, None, None, len(data)), None
        return _Read(found, row, None, None, len(data)), Content(found.path, data, status.st_mtime_ns)

    # Writing, in the caller's thread.

    def _take(
        self, read: _Read, known: FileRow | None, gone: dict[str, FileRow], by_hash: dict[bytes, list[str]]
    ) -> None:
        """Put one file's outcome into the batch."""
        batch, row = self._batch, read.row
        path = read.found.path
        self.report.bytes_read += read.size
        if read.problem is not None:
            self.report.skipped.append(Skipped(path, str(read.problem)))
            if row is not None and read.problem.lasting:
                # It has no text any more, so what was its text goes.
                batch.rows.append(row)
                batch.replaced.append(path)
        elif row is None or read.made is None:
            if row is not None:
                batch.rows.append(row)
                if row.problem is None:
                    batch.counts["unchanged"] += 1
                else:
                    self.report.skipped.append(Skipped(path, row.problem))
        else:
            before = by_hash.get(row.hash) if known is None else None
            if before:
                moved = before.pop()
                del gone[moved]
                batch.dropped.append(moved)
                batch.counts["renamed"] += 1
            else:
                batch.counts["added" if known is None or known.problem is not None else "updated"] += 1
            batch.rows.append(row)
            batch.replaced.append(path)
            batch.put(read.made)
            batch.bytes += read.size
        self._flush(only_full=True)

    def _flush(self, *, only_full: bool = False) -> None:
        batch, report = self._batch, self.report
        if only_full and not batch.full():
            return
        if batch.rows or batch.dropped:
            written = self._db.apply(batch.records, batch.write, batch.vectors)
            report.records_added += written.added
            report.records_updated += written.updated
            report.records_removed += written.removed
            report.records_unchanged += written.unchanged
        for name, count in batch.counts.items():
            setattr(report, name, getattr(report, name) + count)
        self._batch = _Batch()


def _groups(
    wanted: Iterable[tuple[Found, FileRow | None]], most: int
) -> Iterator[list[tuple[Found, FileRow | None]]]:
    """The files in order, small ones together."""
    group: list[tuple[Found, FileRow | None]] = []
    size = 0
    for found, row in wanted:
        if group and (len(group) >= most or size + found.size > GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append((found, row))
        size += found.size
    if group:
        yield group


def _completed(read: _Read, outcome: Made | Unreadable) -> _Read:
    assert read.row is not None
    if isinstance(outcome, Unreadable):
        return read._replace(row=read.row._replace(problem=str(outcome)), problem=outcome)
    return read._replace(row=read.row._replace(records=len(outcome.records)), made=outcome)


def _within(path: str, folders: Sequence[str]) -> bool:
    for folder in folders:
        low, high = below(folder)
        if path == folder or low <= path < high:
            return True
    return False
