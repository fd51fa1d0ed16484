"""The conformance kit on Postgres: the records, and the graph, whose tables are there too."""

from __future__ import annotations

import pytest

from sennit.testing import GraphConformance, RecordsConformance
from sennit.testing.records import NewTarget


class TestPostgres(RecordsConformance):
    @pytest.fixture
    def new_target(self, new_database: NewTarget) -> NewTarget:
        return new_database


class TestGraphOnPostgres(GraphConformance):
    new_target = TestPostgres.new_target
