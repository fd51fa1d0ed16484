"""Real clusters for these tests: OpenSearch of three nodes and of one, and Elasticsearch; each started once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from scripts.servers.common import ServerUnavailable
from scripts.servers.elasticsearch import ElasticsearchCluster
from scripts.servers.opensearch import OpenSearchCluster

from sennit.settings import load_settings
from sennit.stores.contract import Backend
from sennit.stores.open import open_backend
from sennit.testing.records import Target

_numbers = count(1)


def _start(
    nodes: int, leave_out: Callable[[str], NoReturn], kind: type[OpenSearchCluster] = OpenSearchCluster
) -> Iterator[OpenSearchCluster]:
    if find_spec("httpx") is None:
        leave_out("httpx is not installed: pip install 'sennit[opensearch]'")
    try:
        running = kind(nodes)
    except ServerUnavailable as error:
        leave_out(str(error))
    try:
        running.start()
        yield running
    except ServerUnavailable as error:
        leave_out(str(error))
    finally:
        running.close()


@pytest.fixture(scope="session")
def cluster(leave_out: Callable[[str], NoReturn]) -> Iterator[OpenSearchCluster]:
    """Three running nodes, which a test may kill and must then start again."""
    yield from _start(3, leave_out)


@pytest.fixture(scope="session")
def single(leave_out: Callable[[str], NoReturn]) -> Iterator[OpenSearchCluster]:
    """One running node."""
    yield from _start(1, leave_out)


@pytest.fixture(scope="session")
def elasticsearch(leave_out: Callable[[str], NoReturn]) -> Iterator[OpenSearchCluster]:
    """One running node of Elasticsearch."""
    yield from _start(1, leave_out, ElasticsearchCluster)


class Targets:
    """Makes databases in folders whose keyword and vector role are on a cluster."""

    def __init__(self, nodes: OpenSearchCluster, folder: Path) -> None:
        self.cluster = nodes
        self.prefix = f"test{next(_numbers)}"
        self._folder = folder
        self.overrides: dict[str, Any] = {}

    def settings(self, **overrides: Any) -> Any:
        nodes = len(self.cluster.nodes)
        named = {
            "roles.keyword": "opensearch",
            "roles.vector": "opensearch",
            "opensearch.hosts": self.cluster.urls,
            "opensearch.prefix": self.prefix,
            "opensearch.shards": 3 if nodes > 1 else 1,
            "opensearch.replicas": 1 if nodes > 1 else 0,
            "privacy.open": True,
            **self.overrides,
        }
        return load_settings(
            overrides=named | {key.replace("__", "."): one for key, one in overrides.items()}
        )

    def new(self) -> Target:
        folder = self._folder / f"db{next(_numbers)}"
        return lambda: self.open(folder)

    def open(self, folder: Path) -> Backend:
        return open_backend(folder, self.settings())

    def delete_indexes(self) -> None:
        (url, *_) = [node.url for node in self.cluster.nodes if node.is_running]
        found = httpx.get(f"{url}/_alias/{self.prefix}-*", timeout=60).json()
        for name in found:
            httpx.delete(f"{url}/{name}", timeout=60)


@pytest.fixture
def targets(cluster: OpenSearchCluster, tmp_path: Path) -> Iterator[Targets]:
    """Databases on three nodes."""
    made = Targets(cluster, tmp_path)
    yield made
    made.delete_indexes()


@pytest.fixture
def single_targets(single: OpenSearchCluster, tmp_path: Path) -> Iterator[Targets]:
    """Databases on one node."""
    made = Targets(single, tmp_path)
    yield made
    made.delete_indexes()


@pytest.fixture
def elastic_targets(elasticsearch: OpenSearchCluster, tmp_path: Path) -> Iterator[Targets]:
    """Databases on one node of Elasticsearch."""
    made = Targets(elasticsearch, tmp_path)
    yield made
    made.delete_indexes()
