"""The embedded store: a folder with one SQLite file, which is the truth, and indexes derived from it."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from sennit.errors import StoreError
from sennit.filters import EVERYTHING, Filter
from sennit.records import Record
from sennit.stores.embedded import fields, graph, keyword, vector
from sennit.stores.embedded.audiences import Audiences, KeywordState
from sennit.stores.embedded.bm25 import Statistics, statistics
from sennit.stores.embedded.codec import SELECT, from_values
from sennit.stores.embedded.fields import FieldIndex
from sennit.stores.embedded.folding import Folder
from sennit.stores.embedded.graph import GraphIndex
from sennit.stores.embedded.keyword import KeywordIndex
from sennit.stores.embedded.layer import Layers
from sennit.stores.embedded.layers import LayeredIndex
from sennit.stores.embedded.models import (
    Model,
    Models,
    is_waiting,
    wanted,
)
from sennit.stores.embedded.parts import Part, parts_of
from sennit.stores.embedded.prepared import Prepared, prepared
from sennit.stores.embedded.ranges import is_applied, is_past, moment
from sennit.stores.embedded.rowvalues import RowValues
from sennit.stores.embedded.segments import MemorySegments, SegmentFolder, Segments
from sennit.stores.embedded.snapshot import Snapshot
from sennit.stores.embedded.sqlite import SqlitePool
from sennit.stores.embedded.vector import VectorIndex, VectorTail
from sennit.stores.embedded.vector_segment import VectorSegment
from sennit.stores.embedded.writing import Also, NewVectors, Writer, Written

log = logging.getLogger("sennit.store")

DATABASE_NAME: Final = "sennit.db"
INDEX_FOLDER: Final = "index"


class EmbeddedStore:
    """Plays every role of the store contract from one folder, or from memory when `folder` is None."""

    def __init__(self, folder: Path | None, *, apart: bool = False) -> None:
        """`apart`: an audience is searched without what is built over all vectors, of which it sees a part."""
        self.folder = folder
        self._apart = apart
        self.notices: list[str] = []
        """What had to be repaired since the store was opened."""
        if folder is not None:
            _prepare(folder)
        self.database = SqlitePool(folder / DATABASE_NAME if folder else None)
        self.models = Models(self.database)
        with self.database.read() as connection:
            (self._origin,) = connection.execute("SELECT value FROM state WHERE key = 'origin'").fetchone()
        built_with = keyword.identity(self._origin)
        self._folder: Folder | None = None
        if folder is not None:
            self._folder = Folder(folder / DATABASE_NAME, folder / INDEX_FOLDER / "keyword", built_with)
        self.keyword = KeywordIndex(self._segments("keyword", built_with), self._report, self._folder)
        self._vectors: dict[int, VectorIndex] = {}
        self.fields = FieldIndex(self._segments("fields", f"{fields.FORMAT} {self._origin:x}"), self._report)
        self._graph = GraphIndex()
        self._values = RowValues()
        self._lock = threading.Lock()
        self._parts: (
            tuple[Layers[keyword.KeywordSegment, keyword.KeywordTail], list[Part], Statistics] | None
        ) = None
        self._audiences = Audiences()
        self._model: Model | None = None
        """The active one when last looked; what is known of a number stays."""
        self._writer = Writer(self.database)
        graph.ensure(self.database)
        self._check_indexes()

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        self.stop()
        self.database.close()

    def stop(self) -> None:
        """Have long work given up, to be done another time."""
        for index in self.indexes():
            index.stopping.set()
        self.rest()

    def rest(self) -> None:
        """Keep nothing at hand for more work: there is none."""
        if self._folder is not None:
            self._folder.end()

    # Reading.

    @contextlib.contextmanager
    def snapshot(self, audience: Filter = EVERYTHING) -> Iterator[Snapshot]:
        """One moment of the store, in which everything written before that the audience may see is seen."""
        with self.database.read() as connection:
            # The transaction begins while no index can move on, so that all of them are of its moment.
            opened = [index for index in self.indexes() if index.is_open]
            for index in opened:
                index.lock.acquire()
            try:
                seq, purged, number = moment(connection)
                model = self._active(connection, number)
                keyword = self._keyword_at(connection, seq, purged)
                near = self.vector_index(model) if model else None
                layers = near.at(connection, seq, purged) if near is not None and near in opened else None
            finally:
                for index in opened:
                    index.lock.release()

            def vector() -> Layers[VectorSegment, VectorTail] | None:
                return layers or (near.at(connection, seq, purged) if near else None)

            apart = self._apart and audience != EVERYTHING
            audience, keyword = self._audiences.seen(
                audience, keyword, lambda: self.fields.mask(connection, audience, seq)
            )
            yield Snapshot(
                connection,
                seq,
                keyword,
                vector,
                self.fields,
                model,
                lambda: self.database.abandon(connection),
                self._graph,
                self._values,
                audience,
                apart=apart,
            )

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records that exist, by id."""
        out = {}
        with self.database.read() as connection:
            for record_id in ids:
                values = connection.execute(f"{SELECT} WHERE id = ?", (record_id,)).fetchone()
                if values:
                    out[record_id] = from_values(values)
        return out

    def every(self) -> Iterator[Record]:
        """All records, by id, of one moment."""
        with self.database.apart() as connection:
            for values in connection.execute(f"{SELECT} ORDER BY id"):
                yield from_values(values)

    def count(self) -> int:
        """How many records there are."""
        with self.database.read() as connection:
            (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
            return int(count)

    # Writing.

    def add(self, records: Iterable[Record], vectors: NewVectors) -> Written:
        """Add or replace records, all or none; a record that is already there as it is stays untouched."""
        return self.apply(records, vectors)

    def remove(self, ids: Iterable[str]) -> int:
        """Remove records from everywhere, all or none; how many there were."""
        return self.apply((), {}, lambda _: ids).removed

    def apply(
        self, records: Iterable[Record | Prepared], vectors: NewVectors, also: Also = lambda _: ()
    ) -> Written:
        """Add and remove records in one transaction, together with what `also` writes in it.

        `also` runs first and names the records to remove; one that is added in the same breath stays.
        """
        return self._writer.apply(map(prepared, records), vectors, also)

    @property
    def waiting(self) -> bool:
        """Whether a record waited for a vector after the last write."""
        return self._writer.waiting

    # Indexes.

    def indexes(self) -> list[LayeredIndex[keyword.KeywordSegment, keyword.KeywordTail] | VectorIndex]:
        """Every derived index that this process has looked at."""
        with self._lock:
            return [self.keyword, *self._vectors.values()]

    def vector_index(self, model: Model) -> VectorIndex:
        """The vector index of a model."""
        with self._lock:
            index = self._vectors.get(model.number)
            if index is None:
                segments = self._segments(
                    f"vector-{model.number}", f"{vector.FORMAT} {model.fingerprint} {self._origin:x}"
                )
                index = VectorIndex(segments, self._report, model.number, model.dimensions)
                self._vectors[model.number] = index
            return index

    def live_indexes(self) -> list[LayeredIndex[Any, Any]]:
        """The derived indexes that searches use or will use."""
        return [self.keyword, *(self.vector_index(model) for model in self.models.wanted())]

    def keep_fields(self) -> None:
        """Have at hand what tells who may see which record."""
        with self.database.read() as connection:
            self.fields.keep(connection, moment(connection).seq)

    def models_waiting(self) -> bool:
        """Whether a record waits for a vector."""
        with self.database.read() as connection:
            return is_waiting(connection)

    def purge(self, at_least: int) -> int:
        """Forget removals that every index has applied, when there are many; how many were forgotten."""
        with self.database.read() as connection:
            (count,) = connection.execute("SELECT count(*) FROM removals").fetchone()
        if count < at_least:
            return 0
        with contextlib.ExitStack() as stack:
            # No segment that was begun before a removal may be published after the removal is forgotten.
            indexes = self.live_indexes()
            if not all(stack.enter_context(index.quiet()) for index in indexes):
                return 0
            return self._purge(indexes)

    def _purge(self, indexes: Sequence[LayeredIndex[Any, Any]]) -> int:
        covered = [index.covered() for index in indexes]
        with self.database.write() as connection:
            removals = connection.execute("SELECT seq, row FROM removals ORDER BY seq").fetchall()
            # In order, up to the first that is still needed: so every segment is known to have applied all
            # that was forgotten, and one that is older than that is not trusted.
            done = list(takewhile(lambda removal: is_applied(removal[0], removal[1], covered), removals))
            if done:
                for index in indexes:
                    index.vouch(done[-1][0])
                connection.executemany("DELETE FROM removals WHERE seq = ?", ((seq,) for seq, _ in done))
                connection.execute("UPDATE state SET value = ? WHERE key = 'purged'", (done[-1][0],))
        return len(done)

    def drop_index(self, number: int) -> None:
        """Forget the vector index of a model that is no longer wanted."""
        with self._lock:
            self._vectors.pop(number, None)
        if self.folder is not None:
            shutil.rmtree(self.folder / INDEX_FOLDER / f"vector-{number}", ignore_errors=True)

    def _keyword_at(self, connection: sqlite3.Connection, seq: int, purged: int) -> KeywordState:
        layers = self.keyword.at(connection, seq, purged)
        known = self._parts
        if known is None or known[0] is not layers:
            parts = parts_of(layers)
            known = self._parts = (layers, parts, statistics(parts))
        return known[1], known[2]

    def _active(self, connection: sqlite3.Connection, number: int) -> Model | None:
        known = self._model
        if number and (known is None or known.number != number):
            known = self._model = next((m for m in wanted(connection) if m.number == number), None)
        return known if number else None

    def _segments(self, name: str, identity: str) -> Segments:
        if self.folder is None:
            return MemorySegments()
        return SegmentFolder(self.folder / INDEX_FOLDER / name, identity)

    def _check_indexes(self) -> None:
        """Give up indexes that know of changes which the records do not: the file is an older copy of itself."""
        for index in self.live_indexes():
            entries = index.covered()
            with self.database.read() as connection:
                seq = moment(connection).seq
            if not is_past(entries, seq):
                self._report(f"the {index.name} index is rebuilt from the records: it is newer than they are")
                index.give_up()
        kept = self.fields.covered()
        with self.database.read() as connection:
            seq = moment(connection).seq
        if not is_past(kept, seq):
            self.fields.forget(entry.of for entry in kept)

    def _report(self, notice: str) -> None:
        if notice not in self.notices:
            log.warning("%s: %s", self.folder or "memory", notice)
            self.notices.append(notice)


def _prepare(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file; a sennit database is a folder. Choose another name.")
    if folder.is_dir() and not (folder / DATABASE_NAME).exists():
        strangers = [path.name for path in folder.iterdir() if path.name != INDEX_FOLDER]
        if strangers:
            raise StoreError(
                f"{folder} is a folder with other things in it ({strangers[0]!r}), and no sennit database. "
                "Name a new or empty folder."
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be created: {error.strerror}. Choose another place.") from error
