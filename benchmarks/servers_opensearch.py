"""OpenSearch beside a hand-written client: time of a fused search, size, and build time.

    python -m benchmarks.servers_opensearch [--passages 100000] [--nodes 1] [--questions 220]

The hand-written client asks the same server for the same thing: one `_msearch` with a query of the same terms and a query
of the same vector, fused by reciprocal ranks, ten texts read from the same SQLite.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

import sennit
from benchmarks.server_frame import CANDIDATES, fuse, run_speed
from sennit.analysis import query_terms

NEIGHBOURS: Final = 100
"""`opensearch.candidates`: how deep the vector graph is searched."""


def make_client(db: sennit.Database, settings: dict[str, Any]) -> Callable[[str], list[str]]:
    """What a careful user would write for this server."""
    client = httpx.Client(base_url=settings["opensearch.hosts"][0], timeout=60)
    client.post("/sennit-*/_forcemerge?max_num_segments=1", timeout=1800)
    client.post("/sennit-*/_refresh")
    names = {
        kind: next(iter(client.get(f"/_alias/sennit-*-{kind}-*").json())) for kind in ("keyword", "vector")
    }
    shape = {"_source": False, "track_total_hits": False, "docvalue_fields": ["key"], "size": CANDIDATES}

    def search(query: str) -> list[str]:
        should = [{"term": {"terms": f"{term.hash:016x}"}} for term in query_terms(query)]
        with db.store.snapshot() as snapshot:
            vector = db.embeddings.embed_query(snapshot.model, query).tolist()
            lines = [
                {"index": names["keyword"]},
                {**shape, "query": {"bool": {"should": should}}},
                {"index": names["vector"]},
                {**shape, "query": {"knn": {"vector": {"vector": vector, "k": NEIGHBOURS}}}},
            ]
            answers = client.post(
                "/_msearch",
                content="".join(json.dumps(line) + "\n" for line in lines),
                headers={"Content-Type": "application/x-ndjson"},
            ).json()["responses"]
            best = fuse([[hit["fields"]["key"][0] for hit in answer["hits"]["hits"]] for answer in answers])
            found = snapshot.records(best)
            return [found[key].text for key in best]

    return search


def index_bytes(_folders: list[Path], settings: dict[str, Any]) -> dict[str, int]:
    """What the server says of each index, without replicas."""
    stats = httpx.get(f"{settings['opensearch.hosts'][0]}/sennit-*/_stats/store", timeout=60).json()[
        "indices"
    ]
    return {
        kind: sum(one["primaries"]["store"]["size_in_bytes"] for name, one in stats.items() if kind in name)
        for kind in ("keyword", "vector")
    }


if __name__ == "__main__":
    sys.exit(run_speed("opensearch", make_client, index_bytes, __doc__))
