"""The graph in the embedded store: names and facts, derived from records in the same transaction as those."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import ANALYSIS_ID, term_hash
from sennit.errors import NotFound
from sennit.facts import Fact, ended_at, is_fact, weight_of
from sennit.filters import EVERYTHING, Filter
from sennit.graph.linking import Bearers
from sennit.graph.names import (
    MAX_CHARACTERS,
    REVISION,
    SURE,
    Hashes,
    name_number,
    names_of,
)
from sennit.graph.walking import Edge
from sennit.records import Record, full_id, split_id
from sennit.stores.embedded.codec import SELECT, from_values
from sennit.stores.embedded.names import NameIndex, Text, TextCache
from sennit.stores.embedded.selection import Mask, Rows
from sennit.stores.embedded.sqlite import SqlitePool

NEVER: Final = (1 << 63) - 1
"""When a fact ends that has not."""

IDENTITY: Final = term_hash(f"{REVISION} {ANALYSIS_ID}") >> 1
"""Of what a name's number depends on: tables filled under another one are filled anew."""

READ_MOST: Final = 200_000
"""Edges read in one search, however large the hubs and however narrow the filter."""

MOST_ENDING: Final = 1000
"""Facts of one name whose end is known and still to come: few things are known to end."""

EdgeRow = tuple[int, int, float, int, int, int | None]
"""name, until, rank, newest, other, since: the columns of the table."""

NameRow = tuple[int, int]
"""The number of a name and its flags: the columns of the table but for the row."""


class Derived(NamedTuple):
    """What the graph takes of a record, whatever its row will be."""

    names: Sequence[NameRow]
    edges: Sequence[EdgeRow]
    """As of row 0."""


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CHUNK: Final = 2000


# Writing.


def derived(record: Record) -> Derived:
    """The names and facts of a record."""
    named = record.title or "aliases" in record.metadata
    return Derived(names_of(record) if named else [], list(_edges(0, record)) if record.metadata else [])


def insert(connection: sqlite3.Connection, found: Iterable[tuple[int, Derived]]) -> None:
    """Write the names and facts of records, given with their rows."""
    names: list[tuple[int, int, int]] = []
    edges: list[EdgeRow] = []
    for row, (named, ends) in found:
        names += [(row, *name) for name in named]
        edges += [(name, until, rank, -row, other, since) for name, until, rank, _, other, since in ends]
    if names:
        connection.executemany("INSERT OR IGNORE INTO names VALUES (?, ?, ?)", names)
    if edges:
        connection.executemany("INSERT OR IGNORE INTO edges VALUES (?, ?, ?, ?, ?, ?)", edges)


def delete(connection: sqlite3.Connection, row: int, record: Record) -> None:
    """Delete what `insert` wrote for a record."""
    if record.title or record.metadata:
        connection.execute("DELETE FROM names WHERE row = ?", (row,))
        for name, until, rank, newest, _, _ in _edges(row, record):
            connection.execute(
                "DELETE FROM edges WHERE name = ? AND until = ? AND rank = ? AND newest = ?",
                (name, until, rank, newest),
            )


def ensure(database: SqlitePool) -> None:
    """Fill the tables from the records, if they are of an older sennit or of other rules for names."""
    with database.read() as connection:
        if _identity(connection) == IDENTITY:
            return
    with database.write() as connection:
        if _identity(connection) != IDENTITY:
            refill(connection)


def refill(connection: sqlite3.Connection) -> None:
    """Derive names and facts from all records."""
    connection.execute("DELETE FROM names")
    connection.execute("DELETE FROM edges")
    concerned = f"{SELECT} WHERE row > ? AND (title != '' OR metadata != '{{}}') ORDER BY row LIMIT {_CHUNK}"
    low = 0
    while found := connection.execute(concerned, (low,)).fetchall():
        insert(connection, ((values[0], derived(from_values(values))) for values in found))
        low = found[-1][0]
    connection.execute("INSERT OR REPLACE INTO state VALUES ('graph', ?)", (IDENTITY,))


def differing(connection: sqlite3.Connection) -> set[int]:
    """The rows whose names or facts are not what their records say; `refill` mends them."""
    kept: dict[int, set[tuple[object, ...]]] = {}
    for values in connection.execute("SELECT row, name, flags FROM names"):
        kept.setdefault(values[0], set()).add(values)
    for values in connection.execute("SELECT name, until, rank, newest, other, since FROM edges"):
        kept.setdefault(-values[3], set()).add(values)
    wrong = set()
    for values in connection.execute(f"{SELECT} WHERE title != '' OR metadata != '{{}}'"):
        row, record = values[0], from_values(values)
        derived = {*((row, *name) for name in names_of(record)), *_edges(row, record)}
        if kept.pop(row, set()) != derived:
            wrong.add(row)
    return wrong | kept.keys()


def older(connection: sqlite3.Connection, facts: Iterable[Fact], *, same_relation: bool) -> list[Record]:
    """What new facts may end: those that they supersede, and where asked for, all about the same subjects."""
    found: dict[str, Record] = {}
    for fact in facts:
        for record_id in fact.supersedes:
            values = connection.execute(
                f"{SELECT} WHERE id = ?", (full_id(fact.tenant, record_id),)
            ).fetchone()
            if values is None:
                raise NotFound(f"There is no fact {record_id!r} that {fact.line!r} could supersede")
            found[values[1]] = from_values(values)
        name = name_number(fact.subject) if same_relation else None
        if name is not None:
            about = f"{SELECT} WHERE row IN (SELECT -newest FROM edges WHERE name = ? AND until = {NEVER})"
            found |= {values[1]: from_values(values) for values in connection.execute(about, (name,))}
    return list(found.values())


def _identity(connection: sqlite3.Connection) -> int | None:
    found = connection.execute("SELECT value FROM state WHERE key = 'graph'").fetchone()
    return found[0] if found else None


def _edges(row: int, record: Record) -> Iterator[EdgeRow]:
    """A fact from each of its ends."""
    if not is_fact(record):
        return
    subject, object_ = (name_number(str(record.metadata[end])) for end in ("subject", "object"))
    if subject is None or object_ is None:
        return
    ended = ended_at(record)
    until = NEVER if ended is None else _moment(ended)
    since = None if record.timestamp is None else _moment(record.timestamp)
    for name, other in {(subject, object_), (object_, subject)}:
        yield name, until, -weight_of(record), -row, other, since


def _moment(value: datetime) -> int:
    return (value - _EPOCH) // timedelta(microseconds=1)


# Reading.


class GraphIndex:
    """What a process keeps of the graph in memory."""

    def __init__(self) -> None:
        self.names = NameIndex()
        self.texts = TextCache()


class Graph:
    """Names and facts of one moment, as one audience sees them."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        seq: int,
        index: GraphIndex,
        visible: Callable[[Rows, Filter], Mask],
    ) -> None:
        self._connection = connection
        self._names = index.names
        self._texts = index.texts
        self._visible = visible
        self.has_names = self._names.catch_up(connection, seq)

    @property
    def has_facts(self) -> bool:
        return self._connection.execute("SELECT 1 FROM edges LIMIT 1").fetchone() is not None

    def bearers(self, names: Hashes, where: Filter = EVERYTHING) -> Bearers:
        """The records that bear the names, may be seen and pass the filter."""
        found = self._names.find(names)
        if not len(found.rows):
            return found
        seen = self._visible(found.rows, where)
        return Bearers(found.which[seen], found.rows[seen], found.flags[seen])

    def texts(self, rows: list[int]) -> dict[int, Text]:
        """What records that exist are called, and the words of their texts."""
        found = self._texts.of(rows, self._read)
        return {row: found[row] for row in rows}

    def synonyms(self, names: NDArray[np.int64], where: Filter) -> dict[int, list[int]]:
        """The other names of things that declare theirs, by each of the names that is one."""
        found = self.bearers(names.view(np.uint64), where)
        sure = found.flags & SURE != 0
        if not sure.any():
            return {}
        others: dict[int, list[int]] = {}
        marks = json.dumps(np.unique(found.rows[sure]).tolist())
        for row, name in self._connection.execute(
            "SELECT row, name FROM names WHERE row IN (SELECT value FROM json_each(?)) ORDER BY name",
            (marks,),
        ):
            others.setdefault(row, []).append(name)
        out: dict[int, list[int]] = {}
        for which, row in zip(found.which[sure].tolist(), found.rows[sure].tolist(), strict=True):
            known = out.setdefault(int(names[which]), [])
            known += [name for name in others.get(row, ()) if name not in known]
        return out

    def known_ends(self, names: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the names stand at an end of some fact, of whomsoever."""
        found = self._connection.execute(
            "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM edges WHERE name = value)",
            (json.dumps(names.tolist()),),
        )
        return np.isin(names, np.array([value for (value,) in found], np.int64))

    def edges(
        self, names: Sequence[int], count: int, at: datetime, where: Filter, *, history: bool = False
    ) -> list[list[Edge]]:
        """The heaviest facts of each name that hold `at` a moment, may be seen and pass the filter.

        Without `history` the moment is the present: a fact that begins later is known already.
        """
        pages = [self._pages(name, _moment(at), count, history) for name in names]
        kept: list[list[Edge]] = [[] for _ in names]
        budget = READ_MOST
        unfinished = list(range(len(names)))
        while unfinished and budget > 0:
            # A page of every name, and one look at who may see what.
            read = [(place, edge) for place in unfinished for edge in next(pages[place], ())]
            seen = self._visible(np.array([edge.row for _, edge in read], np.int64), where)
            for (place, edge), here in zip(read, seen.tolist(), strict=True):
                if here:
                    kept[place].append(edge)
            budget -= len(read)
            more = {place for place, _ in read}
            unfinished = [place for place in unfinished if place in more and len(kept[place]) < count]
        return [sorted(edges, key=lambda edge: (-edge.weight, -edge.row))[:count] for edges in kept]

    def _pages(self, name: int, at: int, size: int, history: bool) -> Iterator[list[Edge]]:
        """A name's edges, heaviest first, a few at a time; the few whose end is to come are with the first."""
        select = "SELECT -newest, -rank, other, until FROM edges WHERE name = ? AND until"
        ask = self._connection.execute
        if history:
            began = "AND (since IS NULL OR since <= ?)"
            cursor = ask(f"{select} > ? {began} ORDER BY rank, newest", (name, at, at))
        else:
            cursor = ask(f"{select} > ? ORDER BY until, rank, newest", (name, at))
        found = cursor.fetchmany(size)
        if not history and found and found[0][3] != NEVER:
            # In the order of the table, what is to end stands before what is not, whatever its weight.
            ending = ask(f"{select} > ? AND until < {NEVER} ORDER BY rank, newest", (name, at))
            cursor = ask(f"{select} = {NEVER} ORDER BY rank, newest", (name,))
            found = ending.fetchmany(MOST_ENDING) + cursor.fetchmany(size)
        while found:
            yield [Edge(*values[:3]) for values in found]
            size *= 4
            found = cursor.fetchmany(size)

    def _read(self, rows: list[int]) -> Iterator[tuple[int, str, str]]:
        found = self._connection.execute(
            f"SELECT row, title, id, substr(text, 1, {MAX_CHARACTERS}) FROM records "
            "WHERE row IN (SELECT value FROM json_each(?))",
            (json.dumps(rows),),
        )
        return ((row, title or split_id(name)[1], text) for row, title, name, text in found)
