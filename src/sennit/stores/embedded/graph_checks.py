"""The checks of the graph: its tables of names and facts match the records, and facts name records that exist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set
from functools import partial
from typing import Final

from sennit.facts import is_fact
from sennit.graph.names import DECLARED
from sennit.records import Record, full_id
from sennit.stores.codec import record_from_row
from sennit.stores.contract import CheckProgress
from sennit.stores.embedded.comparison import batches, select_rows, summarise_ids
from sennit.stores.embedded.graph import rebuild_tables
from sennit.stores.embedded.selection import Rows
from sennit.stores.findings import Finding
from sennit.stores.graph_rows import derive_graph_rows
from sennit.stores.sql.connection import Connection, SqlPool, placeholders
from sennit.stores.sql.records import SELECT

CHECK: Final = "graph"

MAX_IDS: Final = 500
"""Ids that one statement looks up."""

REFERENCES: Final = {"sources": "a source", "supersedes": "a superseded fact"}
"""The fields of a fact that name records, and what the named record is."""


def check_graph(
    pool: SqlPool, connection: Connection, rows: Rows, sample: Rows, report: CheckProgress
) -> list[Finding]:
    """Derive the names and facts of the sampled records again, and look up the records that facts name."""
    stored = _read_digests(connection, None if len(sample) == len(rows) else frozenset(sample.tolist()))
    wrong: list[str] = []
    dangling: dict[str, list[str]] = {field: [] for field in REFERENCES}
    for done, batch in batches(sample):
        report(CHECK, done, len(sample))
        found = select_rows(connection, f"{SELECT} WHERE (title != '' OR metadata != '{{}}') AND row", batch)
        records = {values[0]: record_from_row(values) for values in found}
        wrong += [one.id for row, one in records.items() if stored.pop(row, 0) != _digest(one)]
        facts = [record for record in records.values() if is_fact(record)]
        for field, ids in dangling.items():
            ids += _find_dangling(connection, facts, field)
    notes = [
        Finding(CHECK, "note", f"{what} that is missing is named by {summarise_ids(dangling[field])}")
        for field, what in REFERENCES.items()
        if dangling[field]
    ]
    if not wrong and not stored:
        return [Finding(CHECK, "ok", _describe(connection)), *notes]
    problems = [f"they disagree with {summarise_ids(wrong)}"] if wrong else []
    problems += [f"they hold {len(stored):,} records that have none or were removed"] if stored else []
    message = f"the names and facts do not match the records: {'; '.join(problems)}"
    return [Finding(CHECK, "problem", message, partial(_rebuild, pool)), *notes]


def _read_digests(connection: Connection, rows: Set[int] | None) -> dict[int, int]:
    """A digest of the names and facts of each of these records, or of all, as the tables have them."""
    out: defaultdict[int, int] = defaultdict(int)
    for row, *name in connection.stream("SELECT row, name, flags FROM names"):
        if rows is None or row in rows:
            out[row] += hash(tuple(name))
    edges = "SELECT negative_row, name, valid_until, negative_weight, other_name, valid_from FROM edges"
    for negative_row, *edge in connection.stream(edges):
        if rows is None or -negative_row in rows:
            out[-negative_row] += hash(tuple(edge))
    return out


def _digest(record: Record) -> int:
    """The digest that the tables must have for a record."""
    names, edges = derive_graph_rows(record)
    return sum(map(hash, {(name, flags) for name, flags in names})) + sum(
        map(hash, {(name, until, weight, other, start) for name, until, weight, _, other, start in edges})
    )


def _find_dangling(connection: Connection, facts: list[Record], field: str) -> Iterator[str]:
    """The ids of facts that name a missing record in a field."""
    named = {(fact.id, one) for fact in facts for one in _named_records(fact, field)}
    wanted = sorted({one for _, one in named})
    known: set[str] = set()
    for start in range(0, len(wanted), MAX_IDS):
        ids = wanted[start : start + MAX_IDS]
        statement = f"SELECT id FROM records WHERE id IN ({placeholders(ids)})"
        known.update(found for (found,) in connection.execute(statement, ids))
    yield from sorted({fact for fact, one in named if one not in known})


def _named_records(fact: Record, field: str) -> Iterator[str]:
    named = fact.metadata.get(field)
    if isinstance(named, list | tuple):
        yield from (full_id(fact.tenant, one) for one in named if isinstance(one, str))


def _describe(connection: Connection) -> str:
    """What the graph has; an entity is a record that declares aliases."""
    (entities,) = connection.execute(
        f"SELECT count(DISTINCT row) FROM names WHERE flags & {DECLARED} != 0"
    ).fetchone()
    (lonely,) = connection.execute(
        f"SELECT count(DISTINCT row) FROM names WHERE flags & {DECLARED} != 0 AND row NOT IN "
        "(SELECT n.row FROM names n JOIN edges e ON e.name = n.name)"
    ).fetchone()
    (facts,) = connection.execute("SELECT count(DISTINCT negative_row) FROM edges").fetchone()
    return f"{facts:,} facts and {entities:,} entities match the records; entities without a fact: {lonely:,}"


def _rebuild(pool: SqlPool) -> str:
    with pool.write() as connection:
        rebuild_tables(connection)
    return "derived the names and facts from the records"
