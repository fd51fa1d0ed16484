"""The conformance kit on Postgres."""

from __future__ import annotations

import pytest

from sennit.testing import RecordsConformance
from sennit.testing.records import NewTarget


class TestPostgres(RecordsConformance):
    @pytest.fixture
    def new_target(self, new_database: NewTarget) -> NewTarget:
        return new_database
