"""SQLite only: FTS5 for keywords, sqlite-vec for vectors."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.corpus import Corpus
from benchmarks.peers.base import (
    CANDIDATE_LIMIT,
    Passage,
    PassageHit,
    QueryEmbedder,
    fuse_by_rrf,
    iterate_batches,
)

WORD: Final = re.compile(r"\w+")

SQLITE: Final = "sqlite3" if hasattr(sqlite3.Connection, "enable_load_extension") else "pysqlite3"
"""A SQLite module that can load extensions: Python's own, if it was built with that."""


class FtsPeer:
    """One file. sqlite-vec has no approximate index: it scans every vector, so its recall is 1."""

    name = "fts5"
    label = "FTS5 + sqlite-vec"
    about = "porter stemmer; vec0 with g as a metadata column, exact scan; WAL, synchronous full"
    hybrid = True
    packages = ("sqlite-vec",)
    modules = ("sqlite_vec", SQLITE)
    efforts: tuple[int, ...] = ()
    concurrent_writes = True
    embeds_documents = False

    def __init__(self) -> None:
        self._vec: Any = import_module("sqlite_vec")
        self._sqlite: Any = import_module(SQLITE)
        self._local = threading.local()
        self._folder = Path()
        self._embedder: QueryEmbedder | None = None

    def build(self, folder: Path, corpus: Corpus) -> float:
        started = time.perf_counter()
        folder.mkdir(parents=True)
        self._folder = folder
        dimensions = corpus.vectors.shape[1]
        self._sql.executescript(
            f"""
            CREATE TABLE passages (number INTEGER PRIMARY KEY, g INTEGER, text TEXT);
            CREATE VIRTUAL TABLE words USING fts5(text, content='passages', content_rowid='number',
                tokenize='porter unicode61');
            CREATE VIRTUAL TABLE near USING vec0(number INTEGER PRIMARY KEY, g INTEGER,
                vector FLOAT[{dimensions}] distance_metric=cosine);
            """
        )
        for batch in iterate_batches(corpus):
            with self._sql as connection:
                for passage in batch:
                    _insert(connection, passage)
        with self._sql as connection:
            connection.execute("INSERT INTO words(words) VALUES ('optimize')")
        self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return time.perf_counter() - started

    def open(self, folder: Path) -> None:
        self._folder = folder
        self._embedder = QueryEmbedder()

    def close(self) -> None:
        self._sql.close()

    def set_effort(self, group_limit: int | None, effort: int) -> None:
        raise NotImplementedError("the scan is exact")

    def search(self, text: str, group_limit: int | None) -> list[PassageHit]:
        best = fuse_by_rrf(self._keyword(text, group_limit), self.dense(text, group_limit))
        placeholders = ",".join("?" * len(best))
        found = self._sql.execute(f"SELECT number, text FROM passages WHERE number IN ({placeholders})", best)
        texts = dict(found.fetchall())
        return [PassageHit(number, texts[number]) for number in best]

    def dense(self, text: str, group_limit: int | None) -> list[int]:
        assert self._embedder is not None, "open it first"
        where, values = ("", []) if group_limit is None else ("AND g < ?", [group_limit])
        found = self._sql.execute(
            f"SELECT number FROM near WHERE vector MATCH ? AND k = {CANDIDATE_LIMIT} {where} ORDER BY distance",
            [self._embedder.embed(text).tobytes(), *values],
        )
        return [number for (number,) in found]

    def add(self, passage: Passage) -> None:
        with self._sql as connection:
            _insert(connection, passage)

    def remove(self, number: int) -> None:
        with self._sql as connection:
            (text,) = connection.execute("SELECT text FROM passages WHERE number = ?", (number,)).fetchone()
            connection.execute(
                "INSERT INTO words(words, rowid, text) VALUES ('delete', ?, ?)", (number, text)
            )
            connection.execute("DELETE FROM passages WHERE number = ?", (number,))
            connection.execute("DELETE FROM near WHERE number = ?", (number,))

    def _keyword(self, text: str, group_limit: int | None) -> list[int]:
        fts_query = " OR ".join(f'"{word}"' for word in WORD.findall(text))
        if group_limit is None:
            sql = f"SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT {CANDIDATE_LIMIT}"
            return [number for (number,) in self._sql.execute(sql, (fts_query,))]
        sql = (
            "SELECT words.rowid FROM words JOIN passages ON passages.number = words.rowid "
            f"WHERE words MATCH ? AND g < ? ORDER BY words.rank LIMIT {CANDIDATE_LIMIT}"
        )
        return [number for (number,) in self._sql.execute(sql, (fts_query, group_limit))]

    @property
    def _sql(self) -> Any:
        """The connection of this thread."""
        if not hasattr(self._local, "connection"):
            connection = self._sqlite.connect(str(self._folder / "all.db"), timeout=30)
            connection.enable_load_extension(True)
            self._vec.load(connection)
            connection.enable_load_extension(False)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._local.connection = connection
        return self._local.connection


def _insert(connection: Any, passage: Passage) -> None:
    connection.execute("INSERT INTO passages VALUES (?, ?, ?)", (passage.number, passage.group, passage.text))
    connection.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (passage.number, passage.text))
    connection.execute(
        "INSERT INTO near VALUES (?, ?, ?)", (passage.number, passage.group, passage.vector.tobytes())
    )
