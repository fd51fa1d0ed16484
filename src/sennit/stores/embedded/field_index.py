"""Evaluates filters: for each field that a filter has named, which rows have which value.

A field is read from the records when a filter first names it. Its values are stored in a file, so that the next process
reads only newer records. A filter becomes a bitmap over rows, which every index applies inside its search.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from sennit.filters import (
    And,
    Condition,
    Equal,
    Exists,
    Filter,
    In,
    Like,
    Not,
    Or,
    Range,
    compile_pattern,
    matches,
)
from sennit.stores.embedded.arrays import CorruptFile, MissingFile
from sennit.stores.embedded.field_columns import (
    TEXT,
    Column,
    Columns,
    columns_from_arrays,
    columns_to_arrays,
    read_values,
    type_of,
)
from sennit.stores.embedded.segment_store import SegmentInfo, SegmentStore
from sennit.stores.embedded.selection import FilterBitmap, Mask, Rows
from sennit.stores.sql.connection import Connection
from sennit.stores.sql.records import read_records

log = logging.getLogger("sennit.store")

FORMAT: Final = "fields-1"

ACCESS_FIELDS: Final = ("collection", "tenant", "sensitivity", "scope")
"""Fields that decide who may see a record; they are kept up to date even if no filter has named them."""

MAX_CACHED_BITMAPS: Final = 64
MAX_CONFIRMED: Final = 1024
MAX_FIELDS: Final = 64
"""Fields in memory, and in files besides the access fields. There is a limit because any caller can name a new field."""

MAX_CATCH_UP_CHANGES: Final = 4096
"""After more changes than this, evaluating a filter again is cheaper than updating its bitmap."""

COMPACT_AFTER: Final = 4096
MIN_UNWRITTEN_SHARE: Final = 0.125
"""A field is compacted after COMPACT_AFTER new values. It is written to a file after as many changes that the file lacks, if
those are also at least this share of all changes."""


@dataclass(slots=True)
class _Field:
    """A field as this process knows it."""

    columns: Columns
    seq: int = 0
    """The change up to which its values are known."""
    written_seq: int = 0
    """The change up to which its values are in a file."""


class FieldIndex:
    """The fields of one database, as this process sees them."""

    def __init__(self, segments: SegmentStore, report: Callable[[str], None]) -> None:
        self._store = segments
        self._report = report
        self._lock = threading.RLock()
        self._seq = 0
        self._fields: OrderedDict[str, _Field] = OrderedDict()
        self._bitmaps: OrderedDict[Filter, FilterBitmap] = OrderedDict()
        self._confirmed: tuple[int, set[tuple[Filter, Condition]]] = (0, set())

    def bitmap(self, connection: Connection, where: Filter, seq: int) -> FilterBitmap:
        """The rows up to `seq` that pass a filter; the bit of a row without a record is undefined."""
        with self._lock:
            if seq < self._seq:
                # Another thread has advanced the index past this transaction, which needs an index of its own.
                return FieldIndex(self._store, self._report).bitmap(connection, where, seq)
            self._catch_up(connection, seq)
            bitmap = self._bitmaps.get(where)
            if bitmap is None:
                bitmap = self._bitmaps[where] = FilterBitmap(self._evaluate(connection, where))
                if len(self._bitmaps) > MAX_CACHED_BITMAPS:
                    self._bitmaps.popitem(last=False)
            self._bitmaps.move_to_end(where)
            return bitmap

    def rows(self, connection: Connection, condition: Condition, seq: int) -> list[Rows]:
        """The rows up to `seq` that satisfy one condition, without a bitmap; some may be of removed records."""
        with self._lock:
            if seq < self._seq:
                return FieldIndex(self._store, self._report).rows(connection, condition, seq)
            self._catch_up(connection, seq)
            return list(_matching_rows(self._columns_of(connection, condition.field), condition))

    def confirmed(self, seq: int) -> set[tuple[Filter, Condition]]:
        """What is known at a change: an audience, and a condition that some record which it sees satisfies."""
        if self._confirmed[0] != seq or len(self._confirmed[1]) > MAX_CONFIRMED:
            self._confirmed = (seq, set())
        return self._confirmed[1]

    def text_counts(self, connection: Connection, name: str, seq: int, live: Mask) -> dict[str, int]:
        """The texts in a field of the rows up to `seq` that `live` names, and how many of these rows have each."""
        with self._lock:
            if seq < self._seq:
                return FieldIndex(self._store, self._report).text_counts(connection, name, seq, live)
            self._catch_up(connection, seq)
            column = self._columns_of(connection, name).get(TEXT, Column()).compact()
        passed = np.concatenate([np.zeros(1, np.int64), np.cumsum(live[column.rows])])[column.starts]
        counts = np.diff(passed).tolist()
        return {value: count for value, count in zip(column.values, counts, strict=True) if count}

    def refresh_access_fields(self, connection: Connection, seq: int, *, write: bool = False) -> None:
        """Read new values of the access fields, so that the next search does not have to; `write` all of them."""
        with self._lock:
            if seq >= self._seq:
                self._catch_up(connection, seq)
                for name in ACCESS_FIELDS:
                    self._columns_of(connection, name)
                    field = self._fields[name]
                    if write and field.written_seq < field.seq:
                        self._compact(name, field, write=True)

    def _catch_up(self, connection: Connection, seq: int) -> None:
        if seq - self._seq > MAX_CATCH_UP_CHANGES:
            self._bitmaps.clear()
        if self._bitmaps and seq > self._seq:
            records = list(read_records(connection, self._seq, seq))
            for where, bitmap in self._bitmaps.items():
                passing = [row for row, record in records if matches(where, record)]
                bitmap.grow(seq + 1, np.array(passing, np.int64))
        self._seq = seq

    def _columns_of(self, connection: Connection, name: str) -> Columns:
        """The values of a field up to the current change."""
        field = self._fields.get(name)
        if field is None:
            field = self._fields[name] = self._open_field(name)
            if len(self._fields) > MAX_FIELDS:
                self._fields.popitem(last=False)
        self._fields.move_to_end(name)
        if field.seq < self._seq:
            try:
                for value, row in read_values(connection, name, field.seq, self._seq):
                    field.columns.setdefault(type_of(value), Column()).add(value, row)
            except BaseException:
                # Read again, the values that were added would be in it twice.
                del self._fields[name]
                raise
            field.seq = self._seq
        self._compact(name, field)
        return field.columns

    def _compact(self, name: str, field: _Field, *, write: bool = False) -> None:
        unwritten = field.seq - field.written_seq
        write = write or unwritten >= max(COMPACT_AFTER, MIN_UNWRITTEN_SHARE * field.seq)
        if write or sum(column.unsorted_count for column in field.columns.values()) >= COMPACT_AFTER:
            field.columns = {kind: column.compact() for kind, column in field.columns.items()}
        if write:
            try:
                self._write(name, field)
            except OSError as error:
                field.written_seq = field.seq
                log.debug("the values of %s could not be written and will be read again: %s", name, error)

    # Files: one for each field that a filter has named.

    def _open_field(self, name: str) -> _Field:
        while (info := self._file_of(name)) is not None:
            try:
                return _Field(self.read(info), info.high, info.high)
            except CorruptFile as error:
                if isinstance(error, MissingFile) and info not in self.segment_infos():
                    continue  # another process has just replaced it
                self._report(f"the values of the field {name} are read from the records again: {error}")
                break
        return _Field({})

    def _file_of(self, name: str) -> SegmentInfo | None:
        """The published file of a field. One written after this transaction began has values that it does not see."""
        infos = self.segment_infos()
        return next((info for info in infos if info.field == name and info.high <= self._seq), None)

    def segment_infos(self) -> tuple[SegmentInfo, ...]:
        """The published files."""
        try:
            return self._store.infos()
        except CorruptFile as error:
            self._report(f"the values of fields are read from the records again: {error}")
            return ()

    def read(self, info: SegmentInfo) -> Columns:
        """The stored values of a field; raises CorruptFile unless they are exactly what was written."""
        try:
            return columns_from_arrays(self._store.read(info))
        except (LookupError, TypeError, ValueError) as error:
            raise CorruptFile(f"{info.file} does not hold a field: {error!r}") from error

    def _write(self, name: str, field: _Field) -> None:
        high = field.seq
        count = sum(len(column.rows) for column in field.columns.values())
        with self._store.exclusive("flush") as acquired:
            if not acquired:
                # Another thread or process writes a field now; a later filter writes this one.
                return
            field.written_seq = high
            infos = self.segment_infos()
            if not any(info.field == name and info.high >= high for info in infos):
                written = self._store.write(
                    columns_to_arrays(field.columns),
                    low=0,
                    high=high,
                    deletes_applied=high,
                    count=count,
                    field=name,
                )
                listed = [*(info for info in infos if info.field != name), written]
                access = [info for info in listed if info.field in ACCESS_FIELDS]
                others = [info for info in listed if info.field not in ACCESS_FIELDS]
                self._store.publish([*access, *others[-MAX_FIELDS:]])

    def drop(self, names: Iterable[str]) -> None:
        """Drop the values of these fields, which are then read from the records again."""
        dropped = set(names)
        with self._lock, self._store.exclusive("flush", wait=True):
            self._store.publish([info for info in self.segment_infos() if info.field not in dropped])
            for name in dropped:
                self._fields.pop(name, None)
            self._bitmaps.clear()

    # Evaluation.

    def _evaluate(self, connection: Connection, where: Filter) -> Mask:
        match where:
            case And(parts):
                mask = np.ones(self._seq + 1, bool)
                for part in parts:
                    mask &= self._evaluate(connection, part)
                return mask
            case Or(parts):
                mask = np.zeros(self._seq + 1, bool)
                for part in parts:
                    mask |= self._evaluate(connection, part)
                return mask
            case Not(part):
                return ~self._evaluate(connection, part)
        mask = np.zeros(self._seq + 1, bool)
        for rows in _matching_rows(self._columns_of(connection, where.field), where):
            mask[rows] = True
        return mask


def _matching_rows(columns: Columns, where: Condition) -> Iterable[Rows]:
    match where:
        case Exists():
            for column in columns.values():
                yield from column.all_rows()
        case Range(_, low, high):
            bound = low if low is not None else high
            if bound is not None and type_of(bound) in columns:
                yield from columns[type_of(bound)].rows_between(where)
        case Like(_, pattern, ignore_case):
            if TEXT in columns:
                yield from columns[TEXT].rows_like(compile_pattern(pattern, ignore_case))
        case Equal(_, value):
            if type_of(value) in columns:
                yield from columns[type_of(value)].rows_equal(value)
        case In(_, values):
            for value in values:
                if type_of(value) in columns:
                    yield from columns[type_of(value)].rows_equal(value)
