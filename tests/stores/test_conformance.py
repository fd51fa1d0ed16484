"""The conformance kit on the embedded store, and what the kit says of a store that breaks a promise."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from sennit.testing import RecordsConformance
from sennit.testing.records import NewTarget


class TestSqlite(RecordsConformance):
    @pytest.fixture
    def new_target(self, tmp_path: Path) -> NewTarget:
        numbers = count()
        return lambda: str(tmp_path / f"db{next(numbers)}")
