"""Every naughty string through the records, the keyword index and the vector index on Postgres."""

from __future__ import annotations

from pathlib import Path

import pytest

import sennit

from ..naughty_kit import assert_facts_survive, assert_survives
from .test_index_conformance import indexes_on

pytestmark = pytest.mark.servers


def test_every_naughty_string_in_every_field_filter_and_identifier_of_the_records(
    dsn: str, naughty_strings: list[str]
) -> None:
    with sennit.open(dsn) as db:
        assert_survives(db, naughty_strings, "keyword", "vector")
        assert_facts_survive(db, naughty_strings, tenants_one_in=1)


def test_every_naughty_string_in_every_field_filter_and_identifier_of_the_indexes(
    dsn: str, tmp_path: Path, naughty_strings: list[str]
) -> None:
    with sennit.open(indexes_on(dsn, tmp_path / "db")) as db:
        assert_survives(db, naughty_strings, "keyword", "vector")
