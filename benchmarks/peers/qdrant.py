"""qdrant-edge: Qdrant's engine as an embedded library."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus
from benchmarks.peers.base import (
    CANDIDATE_LIMIT,
    LIMIT,
    RRF_K,
    Passage,
    PassageHit,
    QueryEmbedder,
    SearchEfforts,
    iterate_batches,
)


class QdrantPeer:
    """A shard with a dense vector (HNSW), a sparse vector (its own BM25), and an index on g."""

    name = "qdrant"
    label = "qdrant-edge"
    about = "HNSW m 16, ef_construct 100, float32; BM25 as its sparse vector; integer index; optimised, one segment"
    hybrid = True
    packages = ("qdrant-edge-py",)
    modules = ("qdrant_edge",)
    efforts = (64, 96, 128, 192, 256, 384, 512)
    concurrent_writes = True
    embeds_documents = False

    def __init__(self) -> None:
        self._q: Any = import_module("qdrant_edge")
        self._efforts = SearchEfforts(128)
        self._shard: Any = None
        self._embedder: QueryEmbedder | None = None
        self._bm25: Any = None

    def build(self, folder: Path, corpus: Corpus) -> float:
        q = self._q
        started = time.perf_counter()
        folder.mkdir(parents=True)
        config = q.EdgeConfig(
            vectors={"dense": q.EdgeVectorParams(size=corpus.vectors.shape[1], distance=q.Distance.Cosine)},
            sparse_vectors={"words": q.EdgeSparseVectorParams(modifier=q.Modifier.Idf)},
            hnsw_config=q.HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=1000),
            optimizers=q.EdgeOptimizersConfig(indexing_threshold=1000, default_segment_number=1),
        )
        self._shard = q.EdgeShard.create(str(folder), config)
        self._bm25 = q.Bm25()
        index = q.IntegerIndexParams(lookup=False, range=True)
        self._shard.update(q.UpdateOperation.create_field_index("g", index))
        for batch in iterate_batches(corpus):
            self._shard.update(q.UpdateOperation.upsert_points([self._point(p) for p in batch]))
        self._shard.flush()
        searchable_seconds = time.perf_counter() - started
        self._shard.optimize()
        self._shard.flush()
        self._shard.close()
        return searchable_seconds

    def open(self, folder: Path) -> None:
        q = self._q
        self._shard = q.EdgeShard.load(str(folder))
        self._bm25 = q.Bm25()
        self._embedder = QueryEmbedder()

    def close(self) -> None:
        self._shard.close()

    def set_effort(self, group_limit: int | None, effort: int) -> None:
        self._efforts.set(group_limit, effort)

    def search(self, text: str, group_limit: int | None) -> list[PassageHit]:
        q = self._q
        where = self._where(group_limit)
        words = q.Query.Nearest(self._bm25.embed_query(text), using="words")
        request = q.QueryRequest(
            limit=LIMIT,
            query=q.Fusion.Rrf(k=RRF_K),
            prefetches=[
                q.Prefetch(
                    limit=CANDIDATE_LIMIT,
                    query=self._near(text),
                    params=self._params(group_limit),
                    filter=where,
                ),
                q.Prefetch(limit=CANDIDATE_LIMIT, query=words, filter=where),
            ],
            with_payload=True,
        )
        return [PassageHit(point.id, point.payload["text"]) for point in self._shard.query(request)]

    def dense(self, text: str, group_limit: int | None) -> list[int]:
        q = self._q
        request = q.QueryRequest(
            limit=CANDIDATE_LIMIT,
            query=self._near(text),
            params=self._params(group_limit),
            filter=self._where(group_limit),
        )
        return [point.id for point in self._shard.query(request)]

    def add(self, passage: Passage) -> None:
        q = self._q
        self._shard.update(q.UpdateOperation.upsert_points([self._point(passage)]))
        self._shard.flush()

    def remove(self, number: int) -> None:
        q = self._q
        self._shard.update(q.UpdateOperation.delete_points([number]))
        self._shard.flush()

    def _point(self, passage: Passage) -> Any:
        q = self._q
        vector = {"dense": passage.vector.tolist(), "words": self._bm25.embed_document(passage.text)}
        return q.Point(passage.number, vector, {"text": passage.text, "g": passage.group})

    def _near(self, text: str) -> Any:
        q = self._q
        assert self._embedder is not None, "open it first"
        return q.Query.Nearest(self._embedder.embed(text).tolist(), using="dense")

    def _params(self, group_limit: int | None) -> Any:
        q = self._q
        return q.SearchParams(hnsw_ef=self._efforts.get(group_limit))

    def _where(self, group_limit: int | None) -> Any:
        q = self._q
        if group_limit is None:
            return None
        return q.Filter(must=[q.FieldCondition("g", range=q.RangeFloat(lt=float(group_limit)))])
