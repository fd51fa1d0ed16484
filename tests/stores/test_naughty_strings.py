"""Every naughty string through the embedded indexes and the embedded graph, as through every server."""

from __future__ import annotations

from pathlib import Path

import sennit

from .naughty_kit import assert_facts_survive, assert_survives


def test_every_naughty_string_in_every_field_filter_and_identifier(
    tmp_path: Path, naughty_strings: list[str]
) -> None:
    with sennit.open(tmp_path / "db") as db:
        assert_survives(db, naughty_strings, "keyword", "vector")


def test_every_naughty_string_in_every_part_of_a_fact(tmp_path: Path, naughty_strings: list[str]) -> None:
    with sennit.open(tmp_path / "db") as db:
        assert_facts_survive(db, naughty_strings, tenants_one_in=1)
