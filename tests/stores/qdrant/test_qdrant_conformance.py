"""The conformance kit on Qdrant of one node and of three."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from scripts.servers.qdrant import QdrantCluster

from sennit.testing import KeywordConformance, VectorConformance
from sennit.testing.indexes import Outage
from sennit.testing.records import NewTarget

from .conftest import on_qdrant

pytestmark = pytest.mark.servers


def new_target_on(cluster: QdrantCluster, folder: Path) -> NewTarget:
    numbers = count()
    return lambda: on_qdrant(folder / f"db{next(numbers)}", cluster)


def outage_of(cluster: QdrantCluster) -> Outage:
    @contextlib.contextmanager
    def block() -> Iterator[None]:
        cluster.kill()
        try:
            yield
        finally:
            cluster.restart()

    return block


class _OnOneNode:
    @pytest.fixture
    def new_target(self, qdrant: QdrantCluster, tmp_path: Path) -> NewTarget:
        return new_target_on(qdrant, tmp_path)

    @pytest.fixture
    def outage(self, qdrant: QdrantCluster) -> Outage:
        return outage_of(qdrant)


class _OnThreeNodes:
    @pytest.fixture
    def new_target(self, three_nodes: QdrantCluster, tmp_path: Path) -> NewTarget:
        return new_target_on(three_nodes, tmp_path)

    @pytest.fixture
    def outage(self, three_nodes: QdrantCluster) -> Outage:
        return outage_of(three_nodes)


class TestQdrantKeyword(_OnOneNode, KeywordConformance):
    pass


class TestQdrantVector(_OnOneNode, VectorConformance):
    pass


class TestThreeNodesKeyword(_OnThreeNodes, KeywordConformance):
    pass


class TestThreeNodesVector(_OnThreeNodes, VectorConformance):
    pass
