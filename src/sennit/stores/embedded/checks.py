"""What `sennit doctor` proves: that everything derived agrees with the truth. What does not is made anew.

The records are the truth and are never changed here. Fields, vectors, the backlog and the indexes are derived
from them, and a finding about one of those knows how to mend it.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from sennit.stores.embedded.arrays import Damaged, read_arrays
from sennit.stores.embedded.codec import SELECT, embedding_hash, from_values
from sennit.stores.embedded.compare import (
    Compare,
    FieldMarks,
    agree_keyword,
    agree_vector,
    first_wrong,
    for_rows,
)
from sennit.stores.embedded.findings import Finding
from sennit.stores.embedded.layers import LayeredIndex
from sennit.stores.embedded.leftovers import disk, leftovers
from sennit.stores.embedded.models import Model, wanted
from sennit.stores.embedded.ranges import moment
from sennit.stores.embedded.schema import VERSION
from sennit.stores.embedded.segments import Entry
from sennit.stores.embedded.selection import Rows
from sennit.stores.embedded.store import DATABASE_NAME, INDEX_FOLDER, EmbeddedStore

__all__ = ["Finding", "check", "repair"]

SAMPLE: Final = 1000
"""Records looked at closely by a quick check."""

CHUNK: Final = 4096
"""Records compared at once: bounds the memory, and is how often progress is told."""

EMBEDDED_SAMPLE: Final = 256
"""Texts embedded again to see whether their vectors are the model's own."""

SAME_VECTOR: Final = 0.999
"""Half precision keeps a cosine to about four digits; another text or another model is far below."""

Progress = Callable[[str, int, int], None]
"""What is looked at, how much is done, of how much."""

Embed = Callable[[Model, Sequence[str]], Sequence[bytes] | None]
"""Vectors of texts in half precision; None when the model is not at hand."""


def check(
    store: EmbeddedStore, *, quick: bool = False, progress: Progress | None = None, embed: Embed | None = None
) -> list[Finding]:
    """Compare everything derived with the records, as of one moment; `quick` looks at a sample.

    The store should have been opened for this: an index that another part of the process holds in memory is
    not read from disk again. With `embed`, some texts are embedded again and compared with their vectors.
    """
    say = progress or (lambda *_: None)
    with store.database.read() as connection:
        found = _sound(connection, quick)
        if any(finding.level == "problem" for finding in found):
            return found
        rows = _numbers(connection, "SELECT row FROM records ORDER BY row")
        looked_at = _sample(rows, SAMPLE) if quick else rows
        found += _records(store, connection, looked_at, say)
        found += _vectors(store, connection)
        found += _keyword(store, connection, rows, looked_at, say)
        for model in wanted(connection):
            found += _vector(store, connection, model, looked_at, say)
            if embed is not None and model.state == "active":
                found += _embedded(store, connection, model, _sample(rows, EMBEDDED_SAMPLE), embed)
        found += _backlog(store)
    found += leftovers(store)
    found += disk(store)
    said = " ".join(finding.message for finding in found)
    return found + [Finding("repairs", "note", notice) for notice in store.notices if notice not in said]


def repair(findings: Iterable[Finding], progress: Callable[[int, int], None] | None = None) -> list[str]:
    """Mend what can be mended; what was done, each thing once."""
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    done: dict[str, None] = {}
    for at, fix in enumerate(fixes):
        if progress is not None:
            progress(at, len(fixes))
        done[fix()] = None
    return list(done)


# The truth itself.


def _sound(connection: sqlite3.Connection, quick: bool) -> list[Finding]:
    pragma = "quick_check" if quick else "integrity_check"
    try:
        said = [text for (text,) in connection.execute(f"PRAGMA {pragma}(10)")]
        dangling = connection.execute("PRAGMA foreign_key_check").fetchall()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.DatabaseError as error:
        said, dangling, version = [str(error)], [], VERSION
    advice = "Restore it from a backup, or from an export made with 'sennit export'."
    if said != ["ok"]:
        return [Finding("database", "problem", f"{DATABASE_NAME} is damaged: {'; '.join(said)}. {advice}")]
    if dangling:
        return [Finding("database", "problem", f"{len(dangling)} rows point to rows that are gone. {advice}")]
    if version != VERSION:
        return [Finding("database", "problem", f"its schema is {version}; this sennit writes {VERSION}.")]
    return [Finding("database", "ok", f"{DATABASE_NAME} is sound, schema {version}")]


def _records(
    store: EmbeddedStore, connection: sqlite3.Connection, rows: Rows, say: Progress
) -> list[Finding]:
    """Hashes of every record looked at, and its values in what is kept of fields."""
    altered: list[str] = []
    kept = store.fields.covered()
    fields = FieldMarks(kept)
    for done, part in _parts(rows):
        say("records", done, len(rows))
        for values in for_rows(connection, f"{SELECT} WHERE row", part):
            record = from_values(values)
            if (bytes.fromhex(record.content_hash), embedding_hash(record.embedding_text)) != values[9:11]:
                altered.append(record.id)
            fields.expect(values[0], record)
    found = [Finding("records", "ok", f"{len(rows):,} records are as they were written")]
    if altered:
        advice = "Look at it with 'sennit get'; writing it again settles it."
        found = [Finding("records", "problem", f"{_some(altered)} changed outside sennit. {advice}")]
    looked_at = set(rows.tolist())
    wrong = [entry.of for entry in kept if not _agrees(store, fields, entry, looked_at)]
    if not wrong:
        return [*found, Finding("fields", "ok", "filters see what the records say")]
    message = (
        f"what is kept of the values of {', '.join(wrong)} is not what the records say; filters are wrong"
    )
    return [*found, Finding("fields", "problem", message, partial(_mend_fields, store, wrong))]


def _agrees(store: EmbeddedStore, fields: FieldMarks, entry: Entry, rows: set[int]) -> bool:
    try:
        return fields.agree(entry.of, store.fields.read(entry), rows)
    except Damaged:
        return False


def _mend_fields(store: EmbeddedStore, names: list[str]) -> str:
    store.fields.forget(names)
    return f"forgot what was kept of the values of {', '.join(names)}: they are read from the records again"


# Vectors in the database.

_STRAY_VECTORS: Final = """
    FROM vectors WHERE NOT EXISTS (SELECT 1 FROM records WHERE embedding = hash)
    OR NOT EXISTS (SELECT 1 FROM models m WHERE m.number = model)
    OR EXISTS (SELECT 1 FROM models m WHERE m.number = model AND length(vector) != 2 * m.dimensions)
"""
_STRAY_PENDING: Final = """
    FROM pending WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.row = pending.row)
    OR NOT EXISTS (SELECT 1 FROM models m WHERE m.number = model AND m.state != 'retired')
"""
_FORGOTTEN: Final = """
    FROM models m, records r WHERE m.state != 'retired'
    AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = m.number AND v.hash = r.embedding)
    AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.model = m.number AND p.row = r.row)
"""


def _vectors(store: EmbeddedStore, connection: sqlite3.Connection) -> list[Finding]:
    cases = (
        (_STRAY_VECTORS, "vectors of texts or models that are gone"),
        (_STRAY_PENDING, "entries of the backlog without a record or a model"),
        (_FORGOTTEN, "records have no vector and do not wait for one"),
    )
    found = []
    for query, what in cases:
        (count,) = connection.execute(f"SELECT count(*) {query}").fetchone()
        if count:
            found.append(Finding("vectors", "problem", f"{count:,} {what}", partial(_mend_vectors, store)))
    return found or [Finding("vectors", "ok", "every text has its vector or waits for it, and no other has")]


def _mend_vectors(store: EmbeddedStore) -> str:
    with store.database.write() as connection:
        connection.execute(f"DELETE {_STRAY_VECTORS}")
        connection.execute(f"DELETE {_STRAY_PENDING}")
        connection.execute(f"INSERT INTO pending SELECT m.number, r.row {_FORGOTTEN}")
    return "cleared stray vectors, and queued records that have none"


def _embedded(
    store: EmbeddedStore, connection: sqlite3.Connection, model: Model, rows: Rows, embed: Embed
) -> list[Finding]:
    """Whether some vectors are what the model gives for the texts."""
    query = (
        "SELECT r.row, r.title, r.text, v.vector FROM records r "
        f"CROSS JOIN vectors v ON v.model = {model.number:d} AND v.hash = r.embedding WHERE r.row"
    )
    stored = list(for_rows(connection, query, rows, order="ORDER BY r.row"))
    texts = [f"{title}\n{text}" if title else text for _, title, text, _ in stored]
    again = embed(model, texts) if texts else []
    if again is None:
        return [
            Finding("model", "note", f"{model.name} is not at hand here; its vectors were not made again")
        ]
    wrong = [row for (row, _, _, kept), fresh in zip(stored, again, strict=True) if not _alike(kept, fresh)]
    if not wrong:
        return [Finding("model", "ok", f"{len(texts):,} vectors made again are those of {model.name}")]
    message = f"{len(wrong):,} of {len(texts):,} vectors are not what {model.name} gives for their texts"
    return [Finding("model", "problem", message, partial(_remake_vectors, store, model))]


def _alike(kept: bytes, fresh: bytes) -> bool:
    one, other = (np.frombuffer(vector, np.float16).astype(np.float32) for vector in (kept, fresh))
    if one.shape != other.shape:
        return False
    return bool(np.array_equal(one, other) or np.dot(one, other) >= SAME_VECTOR)


def _remake_vectors(store: EmbeddedStore, model: Model) -> str:
    with store.database.write() as connection:
        connection.execute("DELETE FROM vectors WHERE model = ?", (model.number,))
        connection.execute("DELETE FROM arrivals WHERE model = ?", (model.number,))
        connection.execute("INSERT OR IGNORE INTO pending SELECT ?, row FROM records", (model.number,))
    _rebuild(store, store.vector_index(model), f"vector-{model.number}")
    return f"queued every text for a new vector of {model.name}"


def _backlog(store: EmbeddedStore) -> list[Finding]:
    found = []
    for state in store.models.progress():
        name = f"{state.model.name} ({state.model.state})"
        if state.pending:
            found.append(
                Finding("backlog", "note", f"{name}: {state.pending:,} of {state.total:,} records wait")
            )
        else:
            found.append(Finding("backlog", "ok", f"{name}: no record waits for a vector"))
    return found


# Derived indexes.


def _keyword(
    store: EmbeddedStore, connection: sqlite3.Connection, rows: Rows, looked_at: Rows, say: Progress
) -> list[Finding]:
    compare = partial(agree_keyword, store.keyword, connection)
    return _index(store, connection, store.keyword, "keyword", rows, looked_at, compare, say)


def _vector(
    store: EmbeddedStore, connection: sqlite3.Connection, model: Model, looked_at: Rows, say: Progress
) -> list[Finding]:
    rows = _numbers(
        connection,
        "SELECT r.row FROM records r JOIN vectors v ON v.model = ?1 AND v.hash = r.embedding "
        "WHERE v.vector != zeroblob(length(v.vector)) ORDER BY r.row",
        model.number,
    )
    compare = partial(agree_vector, connection, model)
    name = f"vector-{model.number}"
    return _index(store, connection, store.vector_index(model), name, rows, looked_at, compare, say)


def _index(
    store: EmbeddedStore,
    connection: sqlite3.Connection,
    index: LayeredIndex[Any, Any],
    name: str,
    rows: Rows,
    looked_at: Rows,
    compare: Compare,
    say: Progress,
) -> list[Finding]:
    """Whether an index holds exactly these rows, each once and as the records have it."""
    label = f"{name} index"
    seq, purged, _ = moment(connection)
    layers = index.at(connection, seq, purged)
    problems = _damaged(store, index, name)
    parts = [
        layer.segment.rows if layer.live is None else layer.segment.rows[layer.live]
        for layer in layers.layers
    ]
    tail, live = layers.tail_rows, layers.tail_live
    held = np.concatenate([*parts, tail if live is None else tail[live]])
    for what, count in (
        ("records are missing", len(np.setdiff1d(rows, held))),
        ("removed records are still there", len(np.setdiff1d(held, rows))),
        ("records are there twice", len(held) - len(np.unique(held))),
    ):
        if count:
            problems.append(f"{count:,} {what}")
    for layer, part in zip(layers.layers, parts, strict=True):
        both = np.intersect1d(np.intersect1d(part, looked_at), rows)
        for done, chunk in _parts(both):
            say(label, done, len(both))
            if not compare(layer, chunk):
                row = first_wrong(chunk, partial(compare, layer))
                problems.append(f"it disagrees with the record {_name(connection, row)!r}")
                break
    if problems:
        fix = partial(_rebuild, store, index, name) if store.folder is not None else None
        return [Finding(label, "problem", "; ".join(problems), fix)]
    segments = f"{len(layers.layers)} segment{'' if len(layers.layers) == 1 else 's'}"
    return [
        Finding(label, "ok", f"{len(held):,} records in {segments}, {layers.tail_count:,} not yet folded in")
    ]


def _damaged(store: EmbeddedStore, index: LayeredIndex[Any, Any], name: str) -> list[str]:
    """What was found out about an index when it was opened, and files that are not as they were written."""
    problems = [notice for notice in store.notices if f"{index.name} index" in notice]
    if store.folder is None:
        return problems
    for entry in index.covered():
        try:
            read_arrays(store.folder / INDEX_FOLDER / name / Path(entry.file).name, entry.checksum)
        except Damaged as damage:
            if not any(str(damage) in notice for notice in problems):
                problems.append(str(damage))
    return problems


def _rebuild(store: EmbeddedStore, index: LayeredIndex[Any, Any], name: str) -> str:
    assert store.folder is not None
    with index.quiet() as mine:
        if not mine:
            return f"left the {name} index alone, because another process is writing it; try again"
        shutil.rmtree(store.folder / INDEX_FOLDER / name, ignore_errors=True)
    index.fold(store.database, wait=True)
    index.settle(store.database, wait=True)
    return f"rebuilt the {name} index from the records"


# Small helpers.


def _numbers(connection: sqlite3.Connection, query: str, *values: object) -> Rows:
    return np.fromiter((row for (row,) in connection.execute(query, values)), np.int64)


def _sample(rows: Rows, count: int) -> Rows:
    """So many rows, evenly spread."""
    return rows if len(rows) <= count else rows[np.linspace(0, len(rows) - 1, count).astype(np.intp)]


def _parts(rows: Rows) -> Iterator[tuple[int, Rows]]:
    return ((at, rows[at : at + CHUNK]) for at in range(0, len(rows), CHUNK))


def _name(connection: sqlite3.Connection, row: int) -> str:
    found = connection.execute("SELECT id FROM records WHERE row = ?", (row,)).fetchone()
    return str(found[0]) if found else f"row {row}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"the record {names[0]!r}{more}"
