"""The stack that people build by hand: tantivy for words, faiss for vectors, SQLite for texts."""

from __future__ import annotations

import sqlite3
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import GROUPS, Corpus
from benchmarks.peers.base import POOL, Efforts, Embedding, Found, Passage, Vector, passages, reciprocal_ranks

SCAN_BELOW: Final = 0.05
"""Where fewer pass the filter, an exact scan over those beats the graph."""


class StackPeer:
    """Three libraries and the glue. Adds are durable in SQLite and tantivy; the graph is kept in memory."""

    name = "stack"
    label = "tantivy + faiss + SQLite"
    about = (
        "HNSW m 16, efConstruction 100, float32, filters as a bitmap; English stemmer; WAL, synchronous full"
    )
    hybrid = True
    packages = ("tantivy", "faiss-cpu")
    modules = ("tantivy", "faiss")
    efforts = (64, 96, 128, 192, 256, 384, 512, 768)
    writes_beside_searches = False
    embeds = False

    def __init__(self) -> None:
        self._faiss: Any = import_module("faiss")
        self._tantivy: Any = import_module("tantivy")
        self._efforts = Efforts(192)
        self._local = threading.local()
        self._folder = Path()
        self._words: Any = None
        self._writer: Any = None
        self._graph: Any = None
        self._numbers = np.empty(0, np.int64)
        self._dead: set[int] = set()
        self._masks: dict[int, NDArray[np.bool_]] = {}
        self._embedding: Embedding | None = None

    def build(self, folder: Path, corpus: Corpus) -> float:
        faiss, tantivy = self._faiss, self._tantivy
        began = time.perf_counter()
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
        for batch in passages(corpus):
            with self._sql as connection:
                connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", map(_row, batch))
            for passage in batch:
                writer.add_document(_document(self._tantivy, passage))
            self._graph.add(np.stack([passage.vector for passage in batch]))
        writer.commit()
        writer.wait_merging_threads()
        faiss.write_index(self._graph, str(folder / "graph"))
        self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return time.perf_counter() - began

    def open(self, folder: Path) -> None:
        faiss, tantivy = self._faiss, self._tantivy
        self._folder = folder
        self._words = tantivy.Index.open(str(folder / "words"))
        self._graph = faiss.read_index(str(folder / "graph"))
        self._numbers = np.arange(self._graph.ntotal)
        self._embedding = Embedding()

    def close(self) -> None:
        self._sql.close()

    def set_effort(self, below: int | None, effort: int) -> None:
        self._efforts.choose(below, effort)

    def search(self, text: str, below: int | None) -> list[Found]:
        best = reciprocal_ranks(self._keyword(text, below), self.dense(text, below))
        marks = ",".join("?" * len(best))
        found = self._sql.execute(f"SELECT number, text FROM passages WHERE number IN ({marks})", best)
        texts = dict(found.fetchall())
        return [Found(number, texts[number]) for number in best if number in texts]

    def dense(self, text: str, below: int | None) -> list[int]:
        faiss = self._faiss
        assert self._embedding is not None, "open it first"
        query = self._embedding.of(text)
        mask = self._mask(below)
        if mask is not None and np.count_nonzero(mask) < SCAN_BELOW * len(mask):
            at = self._scan(query, np.flatnonzero(mask))
        else:
            parameters = faiss.SearchParametersHNSW(efSearch=self._efforts.of(below))
            if mask is not None:
                bits = np.packbits(mask, bitorder="little")
                parameters.sel = faiss.IDSelectorBitmap(bits)
            at = self._graph.search(query[None], POOL, params=parameters)[1][0]
        numbers: list[int] = self._numbers[at[at >= 0]].tolist()
        return numbers

    def _scan(self, query: Vector, among: NDArray[np.intp]) -> NDArray[np.intp]:
        flat = self._faiss.downcast_index(self._graph.storage).get_xb()
        stored = self._faiss.rev_swig_ptr(flat, self._graph.ntotal * len(query)).reshape(-1, len(query))
        scores = stored[among] @ query
        best = np.argpartition(-scores, min(POOL, len(scores) - 1))[:POOL]
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
        self._dead.add(number)
        self._masks.clear()

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._words.writer()
        return self._writer

    def _keyword(self, text: str, below: int | None) -> list[int]:
        tantivy = self._tantivy
        words = "".join(c if c.isalnum() else " " for c in text)
        query = self._words.parse_query(words.lower(), ["text"])
        if below is not None:
            where = tantivy.Query.range_query(
                self._words.schema, "g", tantivy.FieldType.Unsigned, 0, below, include_upper=False
            )
            where = tantivy.Query.const_score_query(where, 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, where)])
        searcher = self._words.searcher()
        hits = searcher.search(query, POOL, count=False).hits
        return [
            value
            for value in searcher.fast_field_values("number", [at for _, at in hits])
            if value is not None
        ]

    def _mask(self, below: int | None) -> NDArray[np.bool_] | None:
        if below is None and not self._dead:
            return None
        mask = self._masks.get(below or 0)
        if mask is None:
            passing = np.ones(len(self._numbers), bool) if below is None else self._numbers % GROUPS < below
            mask = passing & ~np.isin(self._numbers, list(self._dead))
            self._masks[below or 0] = mask
        return mask

    @property
    def _sql(self) -> sqlite3.Connection:
        """A connection for each thread."""
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
