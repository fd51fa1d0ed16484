"""The checks of `sennit doctor`: derived data must agree with the records. A repair derives it again.

The records are the source of truth, and a repair never changes them. Field values, names and facts, vectors, pending
vectors and indexes are derived from them. A finding about one of those carries its repair.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from sennit.stores.codec import TEXT_HASH_BYTES, embedding_hash, record_from_row
from sennit.stores.contract import CheckProgress, Embed, Model
from sennit.stores.embedded.arrays import CorruptFile, read_arrays
from sennit.stores.embedded.comparison import (
    Compare,
    FieldDigests,
    batches,
    find_first_mismatch,
    keyword_segment_matches,
    select_rows,
    summarise_ids,
    vector_segment_matches,
)
from sennit.stores.embedded.graph_checks import check_graph
from sennit.stores.embedded.models import current_models
from sennit.stores.embedded.orphans import check_disk, check_orphans
from sennit.stores.embedded.ranges import read_version
from sennit.stores.embedded.segment_store import SegmentInfo
from sennit.stores.embedded.segmented_index import SegmentedIndex
from sennit.stores.embedded.selection import Rows
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.findings import Finding
from sennit.stores.sql.connection import Connection, SqlPool
from sennit.stores.sql.records import SELECT_WITH_HASHES
from sennit.stores.sql.schema import VERSION

QUICK_SAMPLE_RECORDS: Final = 1000
"""Records that a quick check compares in full."""

REEMBEDDED_TEXTS: Final = 256
"""Texts embedded again, to verify that their stored vectors come from the model."""

MIN_SAME_COSINE: Final = 0.999
"""Half precision keeps a cosine to about four digits. Another text or another model is far below this."""


def check(
    store: EmbeddedStore,
    *,
    quick: bool = False,
    progress: CheckProgress | None = None,
    embed: Embed | None = None,
) -> list[Finding]:
    """Compare derived data with the records, in one snapshot; `quick` compares a sample.

    Open a new store for this: an index that a store holds in memory is not read from disk again. With `embed`, some
    texts are embedded again and compared with their stored vectors.
    """
    report = progress or (lambda *_: None)
    with store.pool.read() as connection:
        found = _check_database(store.pool, connection, quick)
        if any(finding.level == "problem" for finding in found):
            return found
        rows = _select_rows(connection, "SELECT row FROM records ORDER BY row")
        sample = _sample(rows, QUICK_SAMPLE_RECORDS) if quick else rows
        found += _check_records(store, connection, sample, report)
        found += _check_stored_vectors(store, connection)
        found += check_graph(store.pool, connection, rows, sample, report)
        found += _check_keyword_index(store, connection, rows, sample, report)
        for model in current_models(connection):
            if store.has_vectors:
                found += _check_vector_index(store, connection, model, sample, report)
            if embed is not None and model.state == "active":
                found += _check_model(store, connection, model, _sample(rows, REEMBEDDED_TEXTS), embed)
        found += _check_pending(store)
    found += check_orphans(store)
    found += check_disk(store)
    reported = " ".join(finding.message for finding in found)
    return found + [Finding("repairs", "note", notice) for notice in store.notices if notice not in reported]


# The primary store and the records.


def _check_database(pool: SqlPool, connection: Connection, quick: bool) -> list[Finding]:
    name = pool.location if pool.is_shared else Path(pool.location).name
    advice = "Restore it from a backup, or from an export made with 'sennit export --everything'."
    damage = pool.find_damage(connection, quick=quick)
    if damage:
        return [Finding("database", "problem", f"{name} is damaged: {'; '.join(damage)}. {advice}")]
    version = pool.schema_version(connection)
    if version != VERSION:
        return [
            Finding("database", "problem", f"the schema has version {version}; this sennit uses {VERSION}.")
        ]
    return [Finding("database", "ok", f"{name} is sound, schema {version}")]


def _check_records(
    store: EmbeddedStore, connection: Connection, rows: Rows, report: CheckProgress
) -> list[Finding]:
    """Verify the hashes of the records, and their values in the field index."""
    altered: list[str] = []
    stored = store.fields.segment_infos()
    digests = FieldDigests(stored)
    for done, batch in batches(rows):
        report("records", done, len(rows))
        for *values, content, embedding in select_rows(connection, f"{SELECT_WITH_HASHES} WHERE row", batch):
            record = record_from_row(values)
            text_hash = embedding_hash(record.embedding_text)
            if (bytes.fromhex(record.content_hash), text_hash) != (content, embedding[:TEXT_HASH_BYTES]):
                altered.append(record.id)
            digests.add(values[0], record)
    found = [Finding("records", "ok", f"{len(rows):,} records match their hashes")]
    if altered:
        advice = "Look at it with 'sennit get'; writing it again updates the hash."
        found = [Finding("records", "problem", f"{summarise_ids(altered)} changed outside sennit. {advice}")]
    checked = set(rows.tolist())
    wrong = [info.field for info in stored if not _field_matches(store, digests, info, checked)]
    if not wrong:
        return [*found, Finding("fields", "ok", "the field index matches the records")]
    message = f"the field index of {', '.join(wrong)} disagrees with the records; filters are wrong"
    return [*found, Finding("fields", "problem", message, partial(_delete_field_index, store, wrong))]


def _field_matches(store: EmbeddedStore, digests: FieldDigests, info: SegmentInfo, rows: set[int]) -> bool:
    try:
        return digests.match(info.field, store.fields.read(info), rows)
    except CorruptFile:
        return False


def _delete_field_index(store: EmbeddedStore, names: list[str]) -> str:
    store.fields.drop(names)
    return f"deleted the field index of {', '.join(names)}; the next filter reads it from the records"


# Vectors in the database.

_ORPHANED_VECTORS: Final = """
    FROM vectors WHERE NOT EXISTS (SELECT 1 FROM records WHERE embedding_hash = hash)
    AND NOT EXISTS (SELECT 1 FROM unused_vectors u WHERE u.hash = vectors.hash)
    OR NOT EXISTS (SELECT 1 FROM models m WHERE m.number = model)
    OR EXISTS (SELECT 1 FROM models m WHERE m.number = model AND length(vector) != 2 * m.dimensions)
"""
_ORPHANED_PENDING: Final = """
    FROM pending_vectors WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.row = pending_vectors.row)
    OR NOT EXISTS (SELECT 1 FROM models m WHERE m.number = model AND m.state != 'retired')
"""
_MISSING_VECTORS: Final = """
    FROM models m, records r WHERE m.state != 'retired'
    AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model = m.number AND v.hash = r.embedding_hash)
    AND NOT EXISTS (SELECT 1 FROM pending_vectors p WHERE p.model = m.number AND p.row = r.row)
"""


def _check_stored_vectors(store: EmbeddedStore, connection: Connection) -> list[Finding]:
    cases = (
        (_ORPHANED_VECTORS, "vectors belong to no text or to no model"),
        (_ORPHANED_PENDING, "pending entries have no record or no model"),
        (_MISSING_VECTORS, "records have no vector and are not pending"),
    )
    found = []
    for query, what in cases:
        (count,) = connection.execute(f"SELECT count(*) {query}").fetchone()
        if count:
            found.append(Finding("vectors", "problem", f"{count:,} {what}", partial(_repair_vectors, store)))
    return found or [
        Finding("vectors", "ok", "every text has its vector or is pending, and no vector is orphaned")
    ]


def _repair_vectors(store: EmbeddedStore) -> str:
    with store.pool.write() as connection:
        connection.execute(f"DELETE {_ORPHANED_VECTORS}")
        connection.execute(f"DELETE {_ORPHANED_PENDING}")
        connection.execute(f"INSERT INTO pending_vectors SELECT m.number, r.row {_MISSING_VECTORS}")
    return "deleted orphaned vectors, and queued records without one"


def _check_model(
    store: EmbeddedStore, connection: Connection, model: Model, rows: Rows, embed: Embed
) -> list[Finding]:
    """Embed some texts again and compare the vectors with the stored ones."""
    query = (
        "SELECT r.row, r.title, r.text, v.vector FROM records r "
        f"{connection.dialect.ordered_join} vectors v ON v.model = {model.number:d} AND v.hash = r.embedding_hash WHERE r.row"
    )
    stored = list(select_rows(connection, query, rows, order="ORDER BY r.row"))
    texts = [f"{title}\n{text}" if title else text for _, title, text, _ in stored]
    recomputed = embed(model, texts) if texts else []
    if recomputed is None:
        return [Finding("model", "note", f"{model.name} cannot be used here; its vectors were not verified")]
    pairs = zip(stored, recomputed, strict=True)
    wrong = [row for (row, _, _, vector), other in pairs if not _same_vector(vector, other)]
    if not wrong:
        return [Finding("model", "ok", f"{len(texts):,} recomputed vectors of {model.name} match")]
    message = (
        f"{len(wrong):,} of {len(texts):,} vectors differ from what {model.name} computes for their texts"
    )
    return [Finding("model", "problem", message, partial(_recompute_vectors, store, model))]


def _same_vector(stored: bytes, recomputed: bytes) -> bool:
    one, other = (np.frombuffer(vector, np.float16).astype(np.float32) for vector in (stored, recomputed))
    if one.shape != other.shape:
        return False
    return bool(np.array_equal(one, other) or np.dot(one, other) >= MIN_SAME_COSINE)


def _recompute_vectors(store: EmbeddedStore, model: Model) -> str:
    with store.pool.write() as connection:
        connection.execute("DELETE FROM vectors WHERE model = ?", (model.number,))
        connection.execute("DELETE FROM late_vectors WHERE model = ?", (model.number,))
        connection.execute(
            # WHERE true: SQLite would otherwise read ON as the condition of a join.
            "INSERT INTO pending_vectors SELECT ?, row FROM records WHERE true ON CONFLICT DO NOTHING",
            (model.number,),
        )
    if store.has_vectors:
        _rebuild(store, store.vector_index(model), f"vector-{model.number}")
    return f"queued every text for a new vector of {model.name}"


def _check_pending(store: EmbeddedStore) -> list[Finding]:
    found = []
    for state in store.models.progress():
        name = f"{state.model.name} ({state.model.state})"
        if state.pending:
            found.append(
                Finding(
                    "pending vectors",
                    "note",
                    f"{name}: {state.pending:,} of {state.total:,} records lack a vector",
                )
            )
        else:
            found.append(Finding("pending vectors", "ok", f"{name}: no record lacks a vector"))
    return found


# Derived indexes.


def _check_keyword_index(
    store: EmbeddedStore, connection: Connection, rows: Rows, sample: Rows, report: CheckProgress
) -> list[Finding]:
    compare = partial(keyword_segment_matches, store.keyword, connection)
    return _check_index(store, connection, store.keyword, store.keyword.name, rows, sample, compare, report)


def _check_vector_index(
    store: EmbeddedStore, connection: Connection, model: Model, sample: Rows, report: CheckProgress
) -> list[Finding]:
    rows = _select_rows(
        connection,
        "SELECT r.row FROM records r JOIN vectors v ON v.model = ? AND v.hash = r.embedding_hash "
        f"WHERE v.vector != {connection.dialect.zero_bytes.format('v.vector')} ORDER BY r.row",
        model.number,
    )
    compare = partial(vector_segment_matches, connection, model)
    name = f"vector-{model.number}"
    return _check_index(store, connection, store.vector_index(model), name, rows, sample, compare, report)


def _check_index(
    store: EmbeddedStore,
    connection: Connection,
    index: SegmentedIndex[Any, Any],
    name: str,
    rows: Rows,
    sample: Rows,
    compare: Compare,
    report: CheckProgress,
) -> list[Finding]:
    """Verify that an index holds exactly these rows, each once, and that its contents match the records."""
    label = f"{name} index"
    seq, purged, _ = read_version(connection)
    view = index.view_at(connection, seq, purged)
    problems = _find_corruption(store, index, name)
    segment_rows = [
        segment_view.segment.rows
        if segment_view.live is None
        else segment_view.segment.rows[segment_view.live]
        for segment_view in view.segments
    ]
    buffer, live = view.buffer_rows, view.buffer_live
    indexed = np.concatenate([*segment_rows, buffer if live is None else buffer[live]])
    for what, count in (
        ("records are missing", len(np.setdiff1d(rows, indexed))),
        ("removed records are still indexed", len(np.setdiff1d(indexed, rows))),
        ("records are indexed twice", len(indexed) - len(np.unique(indexed))),
    ):
        if count:
            problems.append(f"{count:,} {what}")
    for segment_view, own_rows in zip(view.segments, segment_rows, strict=True):
        compared = np.intersect1d(np.intersect1d(own_rows, sample), rows)
        for done, batch in batches(compared):
            report(label, done, len(compared))
            if not compare(segment_view, batch):
                row = find_first_mismatch(batch, partial(compare, segment_view))
                problems.append(f"it disagrees with the record {_record_id(connection, row)!r}")
                break
    if problems:
        fix = partial(_rebuild, store, index, name) if store.index_folder is not None else None
        return [Finding(label, "problem", "; ".join(problems), fix)]
    segments = f"{len(view.segments)} segment{'' if len(view.segments) == 1 else 's'}"
    return [
        Finding(label, "ok", f"{len(indexed):,} records in {segments}, {view.buffer_count:,} not yet flushed")
    ]


def _find_corruption(store: EmbeddedStore, index: SegmentedIndex[Any, Any], name: str) -> list[str]:
    """The repairs that opening an index reported, and its files that do not match their checksums."""
    problems = [notice for notice in store.notices if f"{index.name} index" in notice]
    if store.index_folder is None:
        return problems
    for info in index.segment_infos():
        try:
            read_arrays(store.index_folder / name / Path(info.file).name, info.checksum)
        except CorruptFile as error:
            if not any(str(error) in notice for notice in problems):
                problems.append(str(error))
    return problems


def _rebuild(store: EmbeddedStore, index: SegmentedIndex[Any, Any], name: str) -> str:
    assert store.index_folder is not None
    with index.lock_maintenance() as locked:
        if not locked:
            return f"left the {name} index alone, because another process is writing it; try again"
        shutil.rmtree(store.index_folder / name, ignore_errors=True)
    index.flush(store.pool, wait=True)
    index.merge_segments(store.pool, wait=True)
    return f"rebuilt the {name} index from the records"


# Helpers.


def _select_rows(connection: Connection, query: str, *values: object) -> Rows:
    return np.fromiter((row for (row,) in connection.execute(query, values)), np.int64)


def _sample(rows: Rows, count: int) -> Rows:
    """At most `count` of the rows, evenly spaced."""
    return rows if len(rows) <= count else rows[np.linspace(0, len(rows) - 1, count).astype(np.intp)]


def _record_id(connection: Connection, row: int) -> str:
    found = connection.execute("SELECT id FROM records WHERE row = ?", (row,)).fetchone()
    return str(found[0]) if found else f"row {row}"
