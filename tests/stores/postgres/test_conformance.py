"""The conformance kit on Postgres, with the indexes of this machine."""

from __future__ import annotations

import pytest

from sennit.testing import GraphConformance, KeywordConformance, RecordsConformance, VectorConformance
from sennit.testing.records import NewTarget


class TestPostgres(RecordsConformance):
    @pytest.fixture
    def new_target(self, new_database: NewTarget) -> NewTarget:
        return new_database


class TestKeywordOnPostgres(KeywordConformance):
    new_target = TestPostgres.new_target


class TestVectorOnPostgres(VectorConformance):
    new_target = TestPostgres.new_target


class TestGraphOnPostgres(GraphConformance):
    new_target = TestPostgres.new_target
