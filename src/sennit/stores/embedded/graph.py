"""The knowledge graph in the embedded store: tables of names and facts, derived from records in the transaction that writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import ANALYSIS_ID, term_hash
from sennit.filters import EVERYTHING, Filter
from sennit.graph.entity_linking import NameMatches
from sennit.graph.names import (
    DECLARED,
    MAX_TEXT_CHARACTERS,
    REVISION,
    Hashes,
)
from sennit.graph.traversal import Edge
from sennit.records import Record, split_id
from sennit.stores.codec import record_from_row
from sennit.stores.contract import LabelledText
from sennit.stores.embedded.name_index import NameIndex, TextCache
from sennit.stores.embedded.selection import Mask, Rows
from sennit.stores.graph_rows import NEVER, EdgeRow, GraphRows, derive_graph_rows, edge_rows, microseconds
from sennit.stores.sql.connection import Connection, SqlPool, paged
from sennit.stores.sql.records import SELECT

IDENTITY: Final = term_hash(f"{REVISION} {ANALYSIS_ID}") >> 1
"""Identifies the rules that name hashes depend on. Tables filled under other rules are rebuilt."""

MAX_EDGES_READ: Final = 200_000
"""Edges read in one search at most, however large the hubs and however narrow the filter."""

MAX_ENDING_FACTS: Final = 1000
"""Facts of one name read whose end is known and still to come. There are few such facts."""

_REBUILD_BATCH: Final = 2000


# Writing.


def insert(connection: Connection, rows: Iterable[tuple[int, GraphRows]]) -> None:
    """Insert the names and facts of records, given with their row numbers."""
    names: list[tuple[int, int, int]] = []
    edges: list[EdgeRow] = []
    for row, (own_names, own_edges) in rows:
        names += [(row, *name) for name in own_names]
        edges += [
            (name, until, weight, -row, other, start) for name, until, weight, _, other, start in own_edges
        ]
    if names:
        connection.executemany("INSERT INTO names VALUES (?, ?, ?) ON CONFLICT DO NOTHING", names)
    if edges:
        connection.executemany("INSERT INTO edges VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", edges)


def delete(connection: Connection, row: int, record: Record) -> None:
    """Delete what `insert` wrote for a record."""
    if record.title or record.metadata:
        connection.run("DELETE FROM names WHERE row = ?", (row,))
        for edge in edge_rows(row, record):
            connection.run(
                "DELETE FROM edges WHERE name = ? AND valid_until = ? AND negative_weight = ? AND negative_row = ?",
                edge[:4],
            )


def ensure_tables(pool: SqlPool) -> None:
    """Rebuild the tables if an older sennit or other rules for names filled them."""
    with pool.read() as connection:
        if _stored_identity(connection) == IDENTITY:
            return
    with pool.write() as connection:
        if _stored_identity(connection) != IDENTITY:
            rebuild_tables(connection)


def rebuild_tables(connection: Connection) -> None:
    """Derive the names and facts of all records again."""
    connection.execute("DELETE FROM names")
    connection.execute("DELETE FROM edges")
    select = (
        f"{SELECT} WHERE row > ? AND (title != '' OR metadata != '{{}}') ORDER BY row LIMIT {_REBUILD_BATCH}"
    )
    last_row = 0
    while found := connection.execute(select, (last_row,)).fetchall():
        insert(connection, ((values[0], derive_graph_rows(record_from_row(values))) for values in found))
        last_row = found[-1][0]
    connection.execute(
        "INSERT INTO state VALUES ('graph', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (IDENTITY,),
    )


def _stored_identity(connection: Connection) -> int | None:
    found = connection.execute("SELECT value FROM state WHERE key = 'graph'").fetchone()
    return found[0] if found else None


# Reading.


class GraphIndex:
    """What a process keeps of the graph in memory."""

    def __init__(self) -> None:
        self.names = NameIndex()
        self.texts = TextCache()


class Graph:
    """The names and facts of one snapshot, as one audience sees them."""

    def __init__(
        self,
        connection: Connection,
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

    def entities_named(self, names: Hashes, where: Filter = EVERYTHING) -> NameMatches:
        """The visible records with these names that match the filter."""
        found = self._names.find(names)
        if not len(found.rows):
            return found
        visible = self._visible(found.rows, where)
        return NameMatches(found.which[visible], found.rows[visible], found.flags[visible])

    def labelled_texts(self, rows: list[int]) -> dict[int, LabelledText]:
        """The label and the words of each record; the records must exist."""
        found = self._texts.get(rows, self._read_texts)
        return {row: found[row] for row in rows}

    def synonyms(self, names: NDArray[np.int64], where: Filter) -> dict[int, list[int]]:
        """For each name of an entity that declares aliases, all names of that entity."""
        found = self.entities_named(names.view(np.uint64), where)
        declared = found.flags & DECLARED != 0
        if not declared.any():
            return {}
        names_by_row: dict[int, list[int]] = {}
        dialect = self._connection.dialect
        for row, name in self._connection.execute(
            f"SELECT row, name FROM names WHERE row {dialect.in_rows} ORDER BY name",
            (dialect.encode_rows(np.unique(found.rows[declared]).tolist()),),
        ):
            names_by_row.setdefault(row, []).append(name)
        out: dict[int, list[int]] = {}
        for which, row in zip(found.which[declared].tolist(), found.rows[declared].tolist(), strict=True):
            known = out.setdefault(int(names[which]), [])
            known += [name for name in names_by_row.get(row, ()) if name not in known]
        return out

    def known_endpoints(self, names: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the names are an endpoint of some fact, visible or not."""
        dialect = self._connection.dialect
        found = self._connection.execute(
            f"SELECT k.value FROM {dialect.listed_rows} WHERE EXISTS (SELECT 1 FROM edges WHERE name = k.value)",
            (dialect.encode_rows(names.tolist()),),
        )
        return np.isin(names, np.array([value for (value,) in found], np.int64))

    def edges(
        self, names: Sequence[int], count: int, at: datetime, where: Filter, *, history: bool = False
    ) -> list[list[Edge]]:
        """The heaviest visible facts of each name that are valid `at` a time and match the filter.

        Without `history`, `at` is the present, and facts that begin later are included.
        """
        pages = [self._edge_pages(name, microseconds(at), count, history) for name in names]
        kept: list[list[Edge]] = [[] for _ in names]
        budget = MAX_EDGES_READ
        unfinished = list(range(len(names)))
        while unfinished and budget > 0:
            # Read one page of every name, so that one call checks the visibility of all of them.
            read = [(index, edge) for index in unfinished for edge in next(pages[index], ())]
            visible = self._visible(np.array([edge.row for _, edge in read], np.int64), where)
            for (index, edge), is_visible in zip(read, visible.tolist(), strict=True):
                if is_visible:
                    kept[index].append(edge)
            budget -= len(read)
            more = {index for index, _ in read}
            unfinished = [index for index in unfinished if index in more and len(kept[index]) < count]
        return [sorted(edges, key=lambda edge: (-edge.weight, -edge.row))[:count] for edges in kept]

    def _edge_pages(self, name: int, at: int, size: int, history: bool) -> Iterator[list[Edge]]:
        """Pages of a name's edges, heaviest first. The first page includes the few whose end is still to come."""
        select = "SELECT -negative_row, -negative_weight, other_name, valid_until FROM edges WHERE name = ? AND valid_until"
        by_weight = "ORDER BY negative_weight, negative_row"
        if history:
            began = "AND (valid_from IS NULL OR valid_from <= ?)"
            pages = paged(self._connection, f"{select} > ? {began} {by_weight}", (name, at, at), size)
        else:
            by_end = "ORDER BY valid_until, negative_weight, negative_row"
            pages = paged(self._connection, f"{select} > ? {by_end}", (name, at), size)
        found = next(pages, [])
        if not history and found and found[0][3] != NEVER:
            # In key order, facts with a known end come before those without, whatever their weight.
            ending = self._connection.execute(
                f"{select} > ? AND valid_until < {NEVER} {by_weight} LIMIT ?", (name, at, MAX_ENDING_FACTS)
            )
            pages = paged(self._connection, f"{select} = {NEVER} {by_weight}", (name,), size)
            found = ending.fetchall() + next(pages, [])
        while found:
            yield [Edge(*values[:3]) for values in found]
            found = next(pages, [])

    def _read_texts(self, rows: list[int]) -> Iterator[tuple[int, str, str]]:
        dialect = self._connection.dialect
        found = self._connection.execute(
            f"SELECT row, title, id, substr(text, 1, {MAX_TEXT_CHARACTERS}) FROM records WHERE row {dialect.in_rows}",
            (dialect.encode_rows(rows),),
        )
        return ((row, title or split_id(record_id)[1], text) for row, title, record_id, text in found)
