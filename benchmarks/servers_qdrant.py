"""Qdrant beside a hand-written client: time of a fused search, size, and build time.

    python -m benchmarks.servers_qdrant [--passages 100000] [--nodes 1] [--questions 220]

The hand-written client embeds the query, asks the same collection for the same terms and the same vector in one batch with
the official client, fuses two lists of keys by reciprocal ranks, and reads ten texts from the same SQLite.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qdrant_client import QdrantClient, models

import sennit
from benchmarks.server_frame import CANDIDATES, folder_size, fuse, run_speed
from sennit.analysis import query_terms
from sennit.settings.servers import QdrantSettings
from sennit.stores.servers.qdrant.term_weights import query_weights


def make_client(db: sennit.Database, settings: dict[str, Any]) -> Callable[[str], list[str]]:
    """What a careful user would write for this server."""
    client = QdrantClient(url=settings["qdrant.urls"][0], timeout=60, check_compatibility=False)
    depth = models.SearchParams(hnsw_ef=QdrantSettings().hnsw_ef)
    (name,) = [one.name for one in client.get_collections().collections]

    def search(query: str) -> list[str]:
        weights = query_weights([(term.hash, 1.0) for term in query_terms(query)])
        with db.store.snapshot() as snapshot:
            vector = db.embeddings.embed_query(snapshot.model, query).tolist()
            words = models.SparseVector(indices=list(weights), values=list(weights.values()))
            answers = client.query_batch_points(
                name,
                [
                    models.QueryRequest(query=words, using="keyword", limit=CANDIDATES),
                    models.QueryRequest(query=vector, using="vector", params=depth, limit=CANDIDATES),
                ],
            )
            best = fuse([[int(point.id) for point in answer.points] for answer in answers])
            found = snapshot.records(best)
            return [found[key].text for key in best]

    return search


def index_bytes(folders: list[Path], _settings: dict[str, Any]) -> dict[str, int]:
    """Words, vectors and values are in one collection."""
    return {"keyword and vector": sum(folder_size(folder / "storage") for folder in folders)}


if __name__ == "__main__":
    sys.exit(run_speed("qdrant", make_client, index_bytes, __doc__))
