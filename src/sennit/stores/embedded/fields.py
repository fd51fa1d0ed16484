"""Filters in the embedded store: for each field that a filter has named, which rows have which value.

A field is read from the records when a filter first names it. What was read is kept in a file, so that the next
process need only read what is newer. A filter becomes a mask over rows, which every index applies inside its search.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from sennit.filters import And, Equal, Exists, Filter, In, Not, Or, Range, matches
from sennit.stores.embedded.arrays import Damaged
from sennit.stores.embedded.codec import read_between
from sennit.stores.embedded.columns import Column, Columns, from_arrays, stored, to_arrays, type_of
from sennit.stores.embedded.segments import Entry, Segments
from sennit.stores.embedded.selection import Mask, Passing, Rows

log = logging.getLogger("sennit.store")

FORMAT: Final = "fields-1"

ALWAYS: Final = ("collection", "tenant", "sensitivity", "scope")
"""Fields that say who may see a record: kept up to date whether or not a filter has named them here."""

MASKS_KEPT: Final = 64
FIELDS_KEPT: Final = 64
"""Fields in memory, and besides those above in files: anybody who may ask can name another one in a filter."""

RELOAD_AFTER: Final = 4096
"""After more changes than this, making a mask again is cheaper than catching up."""

SETTLE_AT: Final = 4096
KEEP_AT: Final = 0.125
"""A field is put in order after so many new values, and kept in a file after so many changes that are not in it, if those
are also so great a share of all."""


@dataclass(slots=True)
class _Field:
    """A field as this process knows it."""

    columns: Columns
    reached: int = 0
    """The change up to which its values are known."""
    kept: int = 0
    """The change up to which they are in a file."""


class FieldIndex:
    """The fields of one database, as this process sees them."""

    def __init__(self, segments: Segments, report: Callable[[str], None]) -> None:
        self._store = segments
        self._report = report
        self._lock = threading.RLock()
        self._seq = 0
        self._fields: OrderedDict[str, _Field] = OrderedDict()
        self._masks: OrderedDict[Filter, Passing] = OrderedDict()

    def mask(self, connection: sqlite3.Connection, wanted: Filter, seq: int) -> Passing:
        """Which rows up to `seq` pass; a row that does not exist (any more) may be either."""
        with self._lock:
            if seq < self._seq:
                # Another thread has moved on, and this transaction cannot read what the others now see.
                return FieldIndex(self._store, self._report).mask(connection, wanted, seq)
            self._catch_up(connection, seq)
            mask = self._masks.get(wanted)
            if mask is None:
                mask = self._masks[wanted] = Passing(self._evaluate(connection, wanted))
                if len(self._masks) > MASKS_KEPT:
                    self._masks.popitem(last=False)
            self._masks.move_to_end(wanted)
            return mask

    def keep(self, connection: sqlite3.Connection, seq: int) -> None:
        """Read what is new of the fields that every caller's searches name, so that those need not."""
        with self._lock:
            if seq >= self._seq:
                self._catch_up(connection, seq)
                for name in ALWAYS:
                    self._of(connection, name)

    def _catch_up(self, connection: sqlite3.Connection, seq: int) -> None:
        if seq - self._seq > RELOAD_AFTER:
            self._masks.clear()
        if self._masks and seq > self._seq:
            records = list(read_between(connection, self._seq, seq))
            for wanted, mask in self._masks.items():
                passing = [row for row, record in records if matches(wanted, record)]
                mask.grow(seq + 1, np.array(passing, np.int64))
        self._seq = seq

    def _of(self, connection: sqlite3.Connection, name: str) -> Columns:
        """The values of a field up to now."""
        known = self._fields.get(name)
        if known is None:
            known = self._fields[name] = self._opened(name)
            if len(self._fields) > FIELDS_KEPT:
                self._fields.popitem(last=False)
        self._fields.move_to_end(name)
        if known.reached < self._seq:
            columns = known.columns
            for value, row in stored(connection, name, known.reached, self._seq):
                kind = type_of(value)
                if kind not in columns:
                    columns[kind] = Column()
                columns[kind].add(value, row)
            known.reached = self._seq
        self._settle(name, known)
        return known.columns

    def _settle(self, name: str, known: _Field) -> None:
        newer = known.reached - known.kept
        keeping = newer >= max(SETTLE_AT, KEEP_AT * known.reached)
        if keeping or sum(column.newer for column in known.columns.values()) >= SETTLE_AT:
            known.columns = {kind: column.settled() for kind, column in known.columns.items()}
        if keeping:
            try:
                self._write(name, known)
            except OSError as error:
                known.kept = known.reached
                log.debug("the values of %s are not kept, and will be read again: %s", name, error)

    # Files: one for each field that was asked for.

    def _opened(self, name: str) -> _Field:
        for entry in self.covered():
            # One that was written after this transaction began holds what the transaction does not see.
            if entry.of == name and entry.high <= self._seq:
                try:
                    return _Field(self.read(entry), entry.high, entry.high)
                except Damaged as damage:
                    self._report(f"the values of the field {name} are read from the records again: {damage}")
        return _Field({})

    def covered(self) -> tuple[Entry, ...]:
        """What is kept, as published."""
        try:
            return self._store.entries()
        except Damaged as damage:
            self._report(f"the values of fields are read from the records again: {damage}")
            return ()

    def read(self, entry: Entry) -> Columns:
        """The values of a field that are kept; raises Damaged unless they are as they were written."""
        try:
            return from_arrays(self._store.read(entry))
        except (LookupError, TypeError, ValueError) as error:
            raise Damaged(f"{entry.file} is not of a field: {error!r}") from error

    def _write(self, name: str, known: _Field) -> None:
        high = known.reached
        count = sum(len(column.rows) for column in known.columns.values())
        with self._store.exclusive("fold") as mine:
            if not mine:
                # Somebody writes another one; there is a next time.
                return
            known.kept = high
            others = self.covered()
            if not any(other.of == name and other.high >= high for other in others):
                entry = self._store.write(
                    to_arrays(known.columns), low=0, high=high, clean=high, count=count, of=name
                )
                listed = [*(other for other in others if other.of != name), entry]
                always = [one for one in listed if one.of in ALWAYS]
                asked = [one for one in listed if one.of not in ALWAYS]
                self._store.publish([*always, *asked[-FIELDS_KEPT:]])

    def forget(self, names: Iterable[str]) -> None:
        """Have these fields read from the records again."""
        gone = set(names)
        with self._lock, self._store.exclusive("fold", wait=True):
            self._store.publish([entry for entry in self.covered() if entry.of not in gone])
            for name in gone:
                self._fields.pop(name, None)
            self._masks.clear()

    # Evaluation.

    def _evaluate(self, connection: sqlite3.Connection, wanted: Filter) -> Mask:
        match wanted:
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
        for rows in _matching(self._of(connection, wanted.field), wanted):
            mask[rows] = True
        return mask


def _matching(columns: Columns, wanted: Equal | In | Range | Exists) -> Iterable[Rows]:
    match wanted:
        case Exists():
            for column in columns.values():
                yield from column.every()
        case Range(_, low, high):
            bound = low if low is not None else high
            if bound is not None and type_of(bound) in columns:
                yield from columns[type_of(bound)].between(wanted)
        case Equal(_, value):
            if type_of(value) in columns:
                yield from columns[type_of(value)].equal(value)
        case In(_, values):
            for value in values:
                if type_of(value) in columns:
                    yield from columns[type_of(value)].equal(value)
