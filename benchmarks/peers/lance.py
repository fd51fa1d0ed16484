"""LanceDB, with its own full-text and vector indexes and its own hybrid query."""

from __future__ import annotations

import os
import re
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.corpus import Corpus
from benchmarks.peers.base import (
    CANDIDATE_LIMIT,
    LIMIT,
    Passage,
    PassageHit,
    QueryEmbedder,
    SearchEfforts,
    iterate_batches,
)

REFINE: Final = 2
"""Its vectors are quantised to 8 bits. Twice the requested number is rescored in full precision."""

WORD: Final = re.compile(r"\w+")

os.environ.setdefault("LANCEDB_LOG", "error")


class LancePeer:
    """One table with an HNSW_SQ index, a full-text index and a scalar index."""

    name = "lancedb"
    label = "LanceDB"
    about = f"IVF_HNSW_SQ, one partition, m 16, ef_construction 100, refine factor {REFINE}; native full-text index"
    hybrid = True
    packages = ("lancedb",)
    modules = ("lancedb", "lancedb.rerankers")
    efforts = (128, 192, 256, 384, 512, 768)
    concurrent_writes = True
    embeds_documents = False

    def __init__(self) -> None:
        self._lancedb: Any = import_module("lancedb")
        self._efforts = SearchEfforts(192)
        self._table: Any = None
        self._reranker: Any = None
        self._embedder: QueryEmbedder | None = None

    def build(self, folder: Path, corpus: Corpus) -> float:
        pa, index = import_module("pyarrow"), import_module("lancedb.index")
        started = time.perf_counter()
        schema = pa.schema(
            [
                ("number", pa.int64()),
                ("g", pa.int64()),
                ("text", pa.string()),
                ("vector", pa.list_(pa.float32(), corpus.vectors.shape[1])),
            ]
        )
        table = self._lancedb.connect(str(folder)).create_table("passages", schema=schema)
        rows: list[dict[str, Any]] = []
        for batch in iterate_batches(corpus):
            rows.extend(_row(passage) for passage in batch)
            if len(rows) >= 20_000:
                table.add(pa.Table.from_pylist(rows, schema=schema))
                rows = []
        if rows:
            table.add(pa.Table.from_pylist(rows, schema=schema))
        found = time.perf_counter() - started
        table.optimize()
        if len(corpus.texts) >= 1000:
            config = index.HnswSq(distance_type="cosine", num_partitions=1, m=16, ef_construction=100)
            table.create_index("vector", config=config)
        table.create_index("text", config=index.FTS(with_position=False))
        table.create_index("g", config=index.BTree())
        return found

    def open(self, folder: Path) -> None:
        self._table = self._lancedb.connect(str(folder)).open_table("passages")
        self._reranker = import_module("lancedb.rerankers").RRFReranker()
        self._embedder = QueryEmbedder()

    def close(self) -> None:
        self._table = None

    def set_effort(self, group_limit: int | None, effort: int) -> None:
        self._efforts.set(group_limit, effort)

    def search(self, text: str, group_limit: int | None) -> list[PassageHit]:
        query = (
            self._table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
            .vector(self._vector(text))
            .text(" ".join(WORD.findall(text)))
            .distance_type("cosine")
            .ef(self._efforts.get(group_limit))
            .refine_factor(REFINE)
            .rerank(self._reranker)
            .select(["number", "text"])
            .limit(CANDIDATE_LIMIT)
        )
        if group_limit is not None:
            query = query.where(f"g < {group_limit}", prefilter=True)
        found = query.to_arrow().slice(0, LIMIT)
        return list(map(PassageHit, found["number"].to_pylist(), found["text"].to_pylist()))

    def dense(self, text: str, group_limit: int | None) -> list[int]:
        query = self._table.search(self._vector(text), vector_column_name="vector")
        query = query.distance_type("cosine").ef(self._efforts.get(group_limit)).refine_factor(REFINE)
        if group_limit is not None:
            query = query.where(f"g < {group_limit}", prefilter=True)
        numbers: list[int] = query.select(["number"]).limit(CANDIDATE_LIMIT).to_arrow()["number"].to_pylist()
        return numbers

    def add(self, passage: Passage) -> None:
        self._table.add([_row(passage)])

    def remove(self, number: int) -> None:
        self._table.delete(f"number = {number}")

    def _vector(self, text: str) -> Any:
        assert self._embedder is not None, "open it first"
        return self._embedder.embed(text)


def _row(passage: Passage) -> dict[str, Any]:
    return {"number": passage.number, "g": passage.group, "text": passage.text, "vector": passage.vector}
