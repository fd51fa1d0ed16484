"""The conformance kit on OpenSearch, on one node and on three with replicas."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from scripts.servers.opensearch import OpenSearchCluster

from sennit.testing import KeywordConformance, VectorConformance
from sennit.testing.indexes import Outage
from sennit.testing.records import NewTarget

from .conftest import Targets

pytestmark = pytest.mark.servers


def kill_all(cluster: OpenSearchCluster) -> Outage:
    """A block in which no node runs."""

    @contextlib.contextmanager
    def outage() -> Iterator[None]:
        for node in cluster.nodes:
            node.kill()
        try:
            yield
        finally:
            cluster.start()

    return outage


class _OnThreeNodes:
    @pytest.fixture
    def new_target(self, targets: Targets) -> NewTarget:
        return targets.new

    @pytest.fixture
    def outage(self, cluster: OpenSearchCluster) -> Outage:
        return kill_all(cluster)


class TestKeywordOnThreeNodes(_OnThreeNodes, KeywordConformance):
    """The keyword role."""


class TestVectorOnThreeNodes(_OnThreeNodes, VectorConformance):
    """The vector role."""


class _OnOneNode:
    @pytest.fixture
    def new_target(self, single_targets: Targets) -> NewTarget:
        return single_targets.new

    @pytest.fixture
    def outage(self, single: OpenSearchCluster) -> Outage:
        return kill_all(single)


class TestKeywordOnOneNode(_OnOneNode, KeywordConformance):
    """The keyword role."""


class TestVectorOnOneNode(_OnOneNode, VectorConformance):
    """The vector role."""


class TestKeywordWithTheAnalysisOfTheServer(_OnOneNode, KeywordConformance):
    """The keyword role with the server's own words and scores."""

    @pytest.fixture
    def new_target(self, single_targets: Targets) -> NewTarget:
        single_targets.overrides = {"opensearch.analysis": "server"}
        return single_targets.new
