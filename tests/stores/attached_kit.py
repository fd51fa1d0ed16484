"""What holds for every attached collection, whatever server it is on: one base class of tests, and the documents."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from sennit.errors import InvalidInput, SourceError
from sennit.filters import EVERYTHING, Filter, field, matches
from sennit.settings.attached import AttachedMapping, read_mapping
from sennit.stores.attached import AttachedCollection, AttachedRow, AttachedSearch, narrow, to_record
from sennit.testing.records import HOSTILE

Attach: TypeAlias = Callable[[AttachedMapping], AttachedCollection]

DIMENSIONS = 8
TEXTS = (
    "Install the daemon with the package manager",
    "Restart the daemon after a change of the configuration",
    "Rotating the logs keeps the disk from filling",
    "The configuration file lists every port",
    "A port below 1024 needs more rights",
    "Logs go to the journal unless a file is named",
)


def document(number: int) -> dict[str, Any]:
    """One document; some have a value of another type, or none."""
    values: dict[str, Any] = {
        "name": f"doc-{number}",
        "content": TEXTS[number],
        "heading": ("Setup", "7", "Setup", "Ports", "Ports", "Logs")[number],
        "level": ("normal", "private", "normal", "normal", "private", "normal")[number],
        "words": (6, 9, 9, 6, 7, 10)[number],
        "rating": (0.5, 4.25, 3.0, 4.75, 2.5, 1.0)[number],
        "done": number % 2 == 0,
        "written": datetime(2026, 3, 1 + number, 12, tzinfo=UTC).timestamp(),
    }
    return values


def vector(number: int, *, length: float = 1.0) -> list[float]:
    found = np.random.default_rng(number).normal(size=DIMENSIONS)
    unit: list[float] = (length * found / np.linalg.norm(found)).tolist()
    return unit


QUERY = np.array(vector(2), np.float32) * 0.8 + np.array(vector(3), np.float32) * 0.6
QUERY = (QUERY / np.linalg.norm(QUERY)).astype(np.float32)
COSINES = [float(np.array(vector(number), np.float32) @ QUERY) for number in range(len(TEXTS))]

MAPPING: dict[str, Any] = {
    "source": "handbook",
    "id": "name",
    "text": "content",
    "title": "heading",
    "time": "written",
    "sensitivity": "level",
    "collection": "docs",
    "metadata": {"words": "words", "rating": "rating", "done": "done", "heading": "heading"},
}

FILTERS: tuple[tuple[Filter, bool], ...] = (
    (field("title") == "Setup", True),
    (field("title") == "7", False),
    (field("heading").is_in(["Ports", "Logs", "x"]), True),
    (field("sensitivity") == "normal", True),
    (field("words") == 9, True),
    (field("words") == 9.0, True),
    (field("words") >= 7, True),
    (field("words").between(6.5, 9), True),
    (field("words") < 6.5, True),
    (field("rating") > 2.75, True),
    (field("rating") <= 0.5, True),
    (field("rating") == 4.25, False),
    (field("done") == True, True),  # noqa: E712 - this builds a filter
    (field("done") == 1, False),
    (field("words") == "9", False),
    (field("heading") >= "P", False),
    (~(field("title") == "Setup"), False),
    ((field("title") == "Setup") | (field("words") > 9), True),
    ((field("title") == "Setup") & (field("words") > 6) & ~(field("level") == "x"), True),
    (field("timestamp") >= datetime(2026, 3, 4, tzinfo=UTC).timestamp(), True),
    (field("timestamp") < datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp(), True),
    (field("words") == 2**60, False),
    (field("nothing") == 1, False),
)
"""Filters, and whether the server narrows the rows by them."""


def mapping_of(server: str, name: str = "handbook", **changes: Any) -> AttachedMapping:
    return read_mapping(name, {**MAPPING, "server": server, **changes})


class AttachedConformance(ABC):
    """A subclass has the collection of the documents above, and says which columns are the server's own."""

    server: str
    changes: dict[str, Any]
    """What the mapping has beside the common fields: vector, keyword."""

    @pytest.fixture
    @abstractmethod
    def attach(self) -> Attach:
        """Attaches the collection `handbook`."""

    @pytest.fixture
    def mapping(self) -> AttachedMapping:
        return mapping_of(self.server, **self.changes)

    @pytest.fixture
    def rows(self, attach: Attach, mapping: AttachedMapping) -> AttachedCollection:
        return attach(mapping)

    def ids(self, mapping: AttachedMapping, found: Sequence[AttachedRow]) -> list[str]:
        return [str(row.values[mapping.id]) for row in found]

    def test_vectors_are_ranked_by_cosine(self, rows: AttachedCollection, mapping: AttachedMapping) -> None:
        for limit in (1, 3, 50):
            found = rows.search(AttachedSearch(QUERY, limit, EVERYTHING))
            expected = sorted(range(len(TEXTS)), key=lambda number: -COSINES[number])[:limit]
            assert [to_record(mapping, row, "private").text for row in found] == [TEXTS[n] for n in expected]
            assert [row.score for row in found] == pytest.approx([COSINES[n] for n in expected], abs=1e-4)

    def test_no_row_that_matches_is_left_out(
        self, rows: AttachedCollection, mapping: AttachedMapping
    ) -> None:
        every = rows.search(AttachedSearch(QUERY, 50, EVERYTHING))
        for where, is_narrowed in FILTERS:
            expected = {row.values[mapping.id] for row in every if matches(where, self._read(mapping, row))}
            narrowed = narrow(where, mapping)
            assert narrowed is not None
            found = rows.search(AttachedSearch(QUERY, 50, narrowed))
            assert {row.values[mapping.id] for row in found} >= expected, where
            if is_narrowed:
                assert len(found) < len(TEXTS), where

    def test_rows_are_found_by_their_ids(self, rows: AttachedCollection, mapping: AttachedMapping) -> None:
        every = self.ids(mapping, rows.search(AttachedSearch(QUERY, 50, EVERYTHING)))
        assert sorted(self.ids(mapping, rows.get([every[0], every[3], "unknown"]))) == sorted(
            [every[0], every[3]]
        )
        assert list(rows.get([])) == []

    def test_every_naughty_string_is_a_value_and_nothing_else(
        self, rows: AttachedCollection, mapping: AttachedMapping, shared_data: Path
    ) -> None:
        listed: list[str] = json.loads((shared_data / "security/blns/blns.json").read_text())
        strings = list(dict.fromkeys([*listed, *HOSTILE]))
        rows.get(strings)
        plain = [one for one in strings if one and len(one) <= 200]
        for start in range(0, len(plain), 100):
            where = field("heading").is_in(plain[start : start + 100])
            assert len(rows.search(AttachedSearch(QUERY, 50, where))) < len(TEXTS)
        for string in (*HOSTILE, *listed[::40]):
            rows.search(AttachedSearch(QUERY, 3, (field("title") == string) | (field("words") == 9)))
            rows.get([string])
        assert len(rows.search(AttachedSearch(QUERY, 50, EVERYTHING))) == len(TEXTS)

    def test_a_check_says_that_all_is_well(self, rows: AttachedCollection) -> None:
        assert [one.level for one in rows.check(DIMENSIONS)] == ["ok"]

    def test_vectors_of_another_size_are_refused_in_words(self, rows: AttachedCollection) -> None:
        with pytest.raises(SourceError, match="8 dimensions, those of the query 3"):
            rows.search(AttachedSearch(np.ones(3, np.float32), 5, EVERYTHING))
        (finding,) = rows.check(3)
        assert finding.level == "problem"
        assert "8 dimensions" in finding.message

    def test_a_check_names_what_is_missing(self, attach: Attach) -> None:
        for change, message in (
            ({"source": "nowhere-at-all"}, "nowhere-at-all"),
            ({"text": "body"}, "body"),
            ({"vector": "no_vector"}, "vector"),
        ):
            found = attach(mapping_of(self.server, **{**self.changes, **change})).check(DIMENSIONS)
            problems = [one.message for one in found if one.level == "problem"]
            assert problems, change
            assert any(message in one for one in problems)

    def _read(self, mapping: AttachedMapping, row: AttachedRow) -> Any:
        try:
            return to_record(mapping, row, "private")
        except InvalidInput as error:
            pytest.fail(str(error))
