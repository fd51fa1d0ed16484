"""Chroma, embedded: vector search only."""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.corpus import Corpus
from benchmarks.peers.base import LIMIT, Passage, PassageHit, QueryEmbedder, iterate_batches

EFFORT: Final = 200
"""Fixed when a collection is created. A later change does not affect the recall of an open collection."""

os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")


class ChromaPeer:
    """A collection in the persistent client. It has no keyword ranking, so its query does half of the work."""

    name = "chroma"
    label = "chromadb (dense only)"
    about = f"HNSW m 16, ef_construction 100, ef_search {EFFORT}; no keyword ranking in its embedded form"
    hybrid = False
    packages = ("chromadb",)
    modules = ("chromadb",)
    efforts: tuple[int, ...] = ()
    concurrent_writes = True
    embeds_documents = False

    def __init__(self) -> None:
        self._chromadb: Any = import_module("chromadb")
        self._client: Any = None
        self._collection: Any = None
        self._embedder: QueryEmbedder | None = None

    def build(self, folder: Path, corpus: Corpus) -> float:
        started = time.perf_counter()
        hnsw = {"space": "cosine", "max_neighbors": 16, "ef_construction": 100, "ef_search": EFFORT}
        collection = self._connect(folder).create_collection(
            "passages", configuration={"hnsw": hnsw}, embedding_function=None
        )
        for batch in iterate_batches(corpus):
            collection.add(
                ids=[str(passage.number) for passage in batch],
                embeddings=[passage.vector for passage in batch],
                documents=[passage.text for passage in batch],
                metadatas=[{"g": passage.group} for passage in batch],
            )
        collection.query(query_embeddings=[corpus.vectors[0]], n_results=1)
        return time.perf_counter() - started

    def open(self, folder: Path) -> None:
        self._client = self._connect(folder)
        self._collection = self._client.get_collection("passages", embedding_function=None)
        self._embedder = QueryEmbedder()

    def close(self) -> None:
        self._client.close()

    def set_effort(self, group_limit: int | None, effort: int) -> None:
        raise NotImplementedError("the search effort is fixed when the collection is created")

    def search(self, text: str, group_limit: int | None) -> list[PassageHit]:
        found = self._query(text, group_limit, LIMIT, ["documents"])
        return [
            PassageHit(int(number), document)
            for number, document in zip(found["ids"][0], found["documents"][0], strict=True)
        ]

    def dense(self, text: str, group_limit: int | None) -> list[int]:
        return [int(number) for number in self._query(text, group_limit, LIMIT, [])["ids"][0]]

    def add(self, passage: Passage) -> None:
        self._collection.add(
            ids=[str(passage.number)],
            embeddings=[passage.vector],
            documents=[passage.text],
            metadatas=[{"g": passage.group}],
        )

    def remove(self, number: int) -> None:
        self._collection.delete(ids=[str(number)])

    def _query(self, text: str, group_limit: int | None, count: int, include: list[str]) -> Any:
        assert self._embedder is not None, "open it first"
        return self._collection.query(
            query_embeddings=[self._embedder.embed(text)],
            n_results=count,
            where=None if group_limit is None else {"g": {"$lt": group_limit}},
            include=include,
        )

    def _connect(self, folder: Path) -> Any:
        settings = self._chromadb.Settings(anonymized_telemetry=False)
        return self._chromadb.PersistentClient(path=str(folder), settings=settings)
