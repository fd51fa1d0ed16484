"""qdrant-edge: Qdrant's engine in the process."""

from __future__ import annotations

import time
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus
from benchmarks.peers.base import LIMIT, POOL, RRF_K, Efforts, Embedding, Found, Passage, passages


class QdrantPeer:
    """A shard with a dense vector (HNSW), a sparse one (its own BM25), and an index over g."""

    name = "qdrant"
    label = "qdrant-edge"
    about = "HNSW m 16, ef_construct 100, float32; BM25 as its sparse vector; integer index; optimised, one segment"
    hybrid = True
    packages = ("qdrant-edge-py",)
    modules = ("qdrant_edge",)
    efforts = (64, 96, 128, 192, 256, 384, 512)
    writes_beside_searches = True
    embeds = False

    def __init__(self) -> None:
        self._q: Any = import_module("qdrant_edge")
        self._efforts = Efforts(128)
        self._shard: Any = None
        self._embedding: Embedding | None = None
        self._bm25: Any = None

    def build(self, folder: Path, corpus: Corpus) -> float:
        q = self._q
        began = time.perf_counter()
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
        for batch in passages(corpus):
            self._shard.update(q.UpdateOperation.upsert_points([self._point(p) for p in batch]))
        self._shard.flush()
        found = time.perf_counter() - began
        self._shard.optimize()
        self._shard.flush()
        self._shard.close()
        return found

    def open(self, folder: Path) -> None:
        q = self._q
        self._shard = q.EdgeShard.load(str(folder))
        self._bm25 = q.Bm25()
        self._embedding = Embedding()

    def close(self) -> None:
        self._shard.close()

    def set_effort(self, below: int | None, effort: int) -> None:
        self._efforts.choose(below, effort)

    def search(self, text: str, below: int | None) -> list[Found]:
        q = self._q
        where = self._where(below)
        words = q.Query.Nearest(self._bm25.embed_query(text), using="words")
        request = q.QueryRequest(
            limit=LIMIT,
            query=q.Fusion.Rrf(k=RRF_K),
            prefetches=[
                q.Prefetch(limit=POOL, query=self._near(text), params=self._params(below), filter=where),
                q.Prefetch(limit=POOL, query=words, filter=where),
            ],
            with_payload=True,
        )
        return [Found(point.id, point.payload["text"]) for point in self._shard.query(request)]

    def dense(self, text: str, below: int | None) -> list[int]:
        q = self._q
        request = q.QueryRequest(
            limit=POOL, query=self._near(text), params=self._params(below), filter=self._where(below)
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
        assert self._embedding is not None, "open it first"
        return q.Query.Nearest(self._embedding.of(text).tolist(), using="dense")

    def _params(self, below: int | None) -> Any:
        q = self._q
        return q.SearchParams(hnsw_ef=self._efforts.of(below))

    def _where(self, below: int | None) -> Any:
        q = self._q
        if below is None:
            return None
        return q.Filter(must=[q.FieldCondition("g", range=q.RangeFloat(lt=float(below)))])
