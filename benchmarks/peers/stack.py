"""A hand-built stack: tantivy for keywords, faiss for vectors, SQLite for texts."""

from __future__ import annotations

import sqlite3
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import GROUP_COUNT, Corpus
from benchmarks.peers.base import (
    CANDIDATE_LIMIT,
    Passage,
    PassageHit,
    QueryEmbedder,
    SearchEfforts,
    Vector,
    fuse_by_rrf,
    iterate_batches,
)

SCAN_BELOW: Final = 0.05
"""If a smaller fraction passes the filter, an exact scan of it is faster than the HNSW graph."""


class StackPeer:
    """Three libraries and glue code. Adds are durable in SQLite and tantivy; the HNSW graph is in memory only."""

    name = "stack"
    label = "tantivy + faiss + SQLite"
    about = (
        "HNSW m 16, efConstruction 100, float32, filters as a bitmap; English stemmer; WAL, synchronous full"
    )
    hybrid = True
    packages = ("tantivy", "faiss-cpu")
    modules = ("tantivy", "faiss")
    efforts = (64, 96, 128, 192, 256, 384, 512, 768)
    concurrent_writes = False
    embeds_documents = False

    def __init__(self) -> None:
        self._faiss: Any = import_module("faiss")
        self._tantivy: Any = import_module("tantivy")
        self._efforts = SearchEfforts(192)
        self._local = threading.local()
        self._folder = Path()
        self._words: Any = None
        self._writer: Any = None
        self._graph: Any = None
        self._numbers = np.empty(0, np.int64)
        self._deleted: set[int] = set()
        self._masks: dict[int, NDArray[np.bool_]] = {}
        self._embedder: QueryEmbedder | None = None

    def build(self, folder: Path, corpus: Corpus) -> float:
        faiss, tantivy = self._faiss, self._tantivy
        started = time.perf_counter()
        folder.mkdir(parents=True)
        self._folder = folder
        self._sql.execute(
            "CREATE TABLE passages (number INTEGER PRIMARY KEY, g INTEGER, text TEXT, vector BLOB)"
        )
        (folder / "words").mkdir()
        self._words = tantivy.Index(_schema(tantivy), path=str(folder / "words"))
        writer = self._words.writer()
        self._graph = faiss.IndexHNSWFlat(corpus.vectors.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
        self._graph.hnsw.efConstruction = 100
        for batch in iterate_batches(corpus):
            with self._sql as connection:
                connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", map(_row, batch))
            for passage in batch:
                writer.add_document(_document(self._tantivy, passage))
            self._graph.add(np.stack([passage.vector for passage in batch]))
        writer.commit()
        writer.wait_merging_threads()
        faiss.write_index(self._graph, str(folder / "graph"))
        self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return time.perf_counter() - started

    def open(self, folder: Path) -> None:
        faiss, tantivy = self._faiss, self._tantivy
        self._folder = folder
        self._words = tantivy.Index.open(str(folder / "words"))
        self._graph = faiss.read_index(str(folder / "graph"))
        self._numbers = np.arange(self._graph.ntotal)
        self._embedder = QueryEmbedder()

    def close(self) -> None:
        self._sql.close()

    def set_effort(self, group_limit: int | None, effort: int) -> None:
        self._efforts.set(group_limit, effort)

    def search(self, text: str, group_limit: int | None) -> list[PassageHit]:
        best = fuse_by_rrf(self._keyword(text, group_limit), self.dense(text, group_limit))
        placeholders = ",".join("?" * len(best))
        found = self._sql.execute(f"SELECT number, text FROM passages WHERE number IN ({placeholders})", best)
        texts = dict(found.fetchall())
        return [PassageHit(number, texts[number]) for number in best if number in texts]

    def dense(self, text: str, group_limit: int | None) -> list[int]:
        faiss = self._faiss
        assert self._embedder is not None, "open it first"
        query = self._embedder.embed(text)
        mask = self._mask(group_limit)
        if mask is not None and np.count_nonzero(mask) < SCAN_BELOW * len(mask):
            at = self._scan(query, np.flatnonzero(mask))
        else:
            parameters = faiss.SearchParametersHNSW(efSearch=self._efforts.get(group_limit))
            if mask is not None:
                bits = np.packbits(mask, bitorder="little")
                parameters.sel = faiss.IDSelectorBitmap(bits)
            at = self._graph.search(query[None], CANDIDATE_LIMIT, params=parameters)[1][0]
        numbers: list[int] = self._numbers[at[at >= 0]].tolist()
        return numbers

    def _scan(self, query: Vector, among: NDArray[np.intp]) -> NDArray[np.intp]:
        flat = self._faiss.downcast_index(self._graph.storage).get_xb()
        stored = self._faiss.rev_swig_ptr(flat, self._graph.ntotal * len(query)).reshape(-1, len(query))
        scores = stored[among] @ query
        best = np.argpartition(-scores, min(CANDIDATE_LIMIT, len(scores) - 1))[:CANDIDATE_LIMIT]
        return among[best[np.argsort(-scores[best])]]

    def add(self, passage: Passage) -> None:
        with self._sql as connection:
            connection.execute("INSERT OR REPLACE INTO passages VALUES (?, ?, ?, ?)", _row(passage))
        writer = self._open_writer()
        writer.add_document(_document(self._tantivy, passage))
        writer.commit()
        self._words.reload()
        self._graph.add(passage.vector[None])
        self._numbers = np.append(self._numbers, passage.number)
        self._masks.clear()

    def remove(self, number: int) -> None:
        with self._sql as connection:
            connection.execute("DELETE FROM passages WHERE number = ?", (number,))
        writer = self._open_writer()
        writer.delete_documents_by_term("number", number)
        writer.commit()
        self._words.reload()
        self._deleted.add(number)
        self._masks.clear()

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._words.writer()
        return self._writer

    def _keyword(self, text: str, group_limit: int | None) -> list[int]:
        tantivy = self._tantivy
        words = "".join(c if c.isalnum() else " " for c in text)
        query = self._words.parse_query(words.lower(), ["text"])
        if group_limit is not None:
            where = tantivy.Query.range_query(
                self._words.schema, "g", tantivy.FieldType.Unsigned, 0, group_limit, include_upper=False
            )
            where = tantivy.Query.const_score_query(where, 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, where)])
        searcher = self._words.searcher()
        hits = searcher.search(query, CANDIDATE_LIMIT, count=False).hits
        return [
            value
            for value in searcher.fast_field_values("number", [at for _, at in hits])
            if value is not None
        ]

    def _mask(self, group_limit: int | None) -> NDArray[np.bool_] | None:
        if group_limit is None and not self._deleted:
            return None
        mask = self._masks.get(group_limit or 0)
        if mask is None:
            passing = (
                np.ones(len(self._numbers), bool)
                if group_limit is None
                else self._numbers % GROUP_COUNT < group_limit
            )
            mask = passing & ~np.isin(self._numbers, list(self._deleted))
            self._masks[group_limit or 0] = mask
        return mask

    @property
    def _sql(self) -> sqlite3.Connection:
        """The connection of this thread."""
        if not hasattr(self._local, "connection"):
            connection = sqlite3.connect(self._folder / "texts.db")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._local.connection = connection
        connection = self._local.connection
        assert isinstance(connection, sqlite3.Connection)
        return connection


def _schema(tantivy: Any) -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem", index_option="freq")
    builder.add_unsigned_field("number", stored=False, indexed=True, fast=True)
    builder.add_unsigned_field("g", stored=False, indexed=True, fast=True)
    return builder.build()


def _document(tantivy: Any, passage: Passage) -> Any:
    document = tantivy.Document()
    document.add_text("text", passage.text)
    document.add_unsigned("number", passage.number)
    document.add_unsigned("g", passage.group)
    return document


def _row(passage: Passage) -> tuple[int, int, str, bytes]:
    return passage.number, passage.group, passage.text, passage.vector.tobytes()
