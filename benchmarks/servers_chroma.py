"""Chroma beside a hand-written client: time of a fused search, size, and build time.

    python -m benchmarks.servers_chroma [--passages 100000] [--questions 220]

Chroma ranks no words, so both clients take them from the index of words on this machine. The hand-written client embeds the
query, asks the same collection with the official client, fuses two lists of keys by reciprocal ranks, and reads ten texts
from the same SQLite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import chromadb
from chromadb.config import Settings

import sennit
from benchmarks.server_frame import CANDIDATES, folder_size, fuse, run_speed
from sennit.analysis import query_terms
from sennit.stores.contract import BM25, KeywordQuery


def make_client(db: sennit.Database, settings: dict[str, Any]) -> Callable[[str], list[str]]:
    """What a careful user would write for this server."""
    url = urlsplit(settings["chroma.url"])
    client = chromadb.HttpClient(
        host=url.hostname or "", port=url.port or 80, settings=Settings(anonymized_telemetry=False)
    )
    (listed,) = client.list_collections()
    collection = client.get_collection(listed.name, embedding_function=None)

    def search(query: str) -> list[str]:
        terms = KeywordQuery([(term.hash, 1.0) for term in query_terms(query)], BM25(), query)
        with db.store.snapshot() as snapshot:
            vector = db.embeddings.embed_query(snapshot.model, query)
            words = db.backend.keyword.search(snapshot, terms, CANDIDATES).keys.tolist()
            answer = collection.query(query_embeddings=[vector], n_results=CANDIDATES, include=["distances"])
            best = fuse([words, [int(one) for one in answer["ids"][0]]])
            found = snapshot.records(best)
            return [found[key].text for key in best]

    return search


def index_bytes(folders: list[Path], _settings: dict[str, Any]) -> dict[str, int]:
    """Vectors and values are in one folder."""
    return {"vector": sum(folder_size(folder / "data") for folder in folders)}


if __name__ == "__main__":
    sys.exit(run_speed("chroma", make_client, index_bytes, __doc__))
