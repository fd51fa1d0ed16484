"""Three nodes lose one and then two of them while records are written and searched."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.cluster import prove
from scripts.servers.opensearch import OpenSearchCluster

from sennit.testing.records import WORDS

pytestmark = pytest.mark.servers


@pytest.mark.timeout(600)
def test_a_lost_node_costs_nothing_and_two_are_reported(cluster: OpenSearchCluster, tmp_path: Path) -> None:
    texts = [f"{WORDS[n % 10]} {WORDS[n % 7]} passage{n}" for n in range(2000)]
    queries = [f"{one} {other}" for one in WORDS for other in WORDS[:3]]
    seen = prove(cluster, tmp_path / "db", texts, queries, searches=60, prefix="proof")
    one, two, back = seen["one_killed"], seen["two_killed"], seen["back"]
    assert one["errors"] == one["degraded"] == []
    assert one["found"] == one["records"] == 2000 + one["writes"]
    assert two["hits"]
    assert two["degraded"]
    assert back["degraded"] == []
    assert back["finds_the_last_write"]
    assert back["found"] == back["records"] == one["records"] + 1
