"""Records: validation, canonical JSON, and round trips through the database."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit import Record
from sennit.errors import InvalidInput
from sennit.records import MAX_ID_BYTES, as_utc

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = texts.filter(bool)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=3),
    max_leaves=6,
)
records = st.builds(
    Record,
    id=names,
    text=texts,
    collection=names,
    title=texts,
    kind=texts,
    path=st.none() | names,
    url=st.none() | names,
    lines=st.none() | st.tuples(st.integers(1, 10), st.integers(10, 2**62)),
    parent=st.none() | names,
    position=st.none() | st.integers(0, 2**63 - 1),
    timestamp=st.none() | st.datetimes(timezones=st.just(UTC)),
    sensitivity=names,
    scope=names,
    metadata=st.dictionaries(names, values, max_size=3),
)


@given(records)
def test_record_round_trips_through_json(record: Record) -> None:
    again = Record.from_dict(json.loads(record.to_json()))
    assert again == record
    assert again.content_hash == record.content_hash


def test_records_round_trip_through_the_database() -> None:
    with sennit.open(":memory:", privacy__open=True) as db:

        @given(st.lists(records, max_size=5))
        @settings(max_examples=50)
        def survive(found: list[Record]) -> None:
            latest = {record.id: record for record in found}
            db.remove([record.id for record in db])
            db.add(found)
            assert {record.id: record for record in db} == latest
            assert db.add(found[-1:]).unchanged == len(found[-1:])

        survive()


@given(records, records)
def test_different_records_have_different_hashes(one: Record, other: Record) -> None:
    assert (one.content_hash == other.content_hash) == (one.to_json() == other.to_json())


@pytest.mark.parametrize(
    "fields",
    [
        {"id": ""},
        {"id": 5},
        {"id": None},
        {"id": "x" * (MAX_ID_BYTES + 1)},
        {"id": "ü" * (MAX_ID_BYTES // 2 + 1)},
        {"text": None},
        {"text": b"bytes"},
        {"text": "x" * (16 * 1024 * 1024 + 1)},
        {"collection": ""},
        {"scope": ""},
        {"path": ""},
        {"title": 3},
        {"lines": (0, 1)},
        {"lines": (5, 4)},
        {"lines": (1,)},
        {"lines": "1-2"},
        {"lines": (1.0, 2.0)},
        {"lines": (1, 2**63)},
        {"position": -1},
        {"position": 1.0},
        {"position": True},
        {"position": 2**63},
        {"timestamp": "yesterday-ish"},
        {"timestamp": float("nan")},
        {"timestamp": 1e300},
        {"timestamp": True},
        {"metadata": ["a"]},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": float("inf")}},
        {"metadata": {"a": object()}},
        {"metadata": {"a": {1: 2}}},
        {"metadata": {1: 2}},
        {"metadata": {"": 2}},
        {"metadata": {"a": {"b": b"bytes"}}},
        {"metadata": {"a": "x" * (1024 * 1024 + 1)}},
    ],
)
def test_invalid_field_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Record(**{"id": "a", "text": "b", **fields})


def test_metadata_that_is_too_deep_or_circular_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"a": deep}
    circle: dict[str, Any] = {}
    circle["a"] = circle
    for metadata in (deep, circle, {"a": {"list": [deep]}}):
        with pytest.raises(InvalidInput, match="deeper"):
            Record(id="a", text="b", metadata=metadata)


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        ({"id": "a"}, "needs the field 'text'"),
        ({"text": "a"}, "needs the field 'id'"),
        ({"id": "a", "text": "b", "tags": []}, "into metadata"),
        (["id"], "object with fields"),
    ],
)
def test_invalid_dict_is_refused_with_the_reason(values: Any, advice: str) -> None:
    with pytest.raises(InvalidInput, match=advice):
        Record.from_dict(values)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T09:30:00Z", datetime(2026, 3, 1, 9, 30, tzinfo=UTC)),
        ("2026-03-01T09:30:00+02:00", datetime(2026, 3, 1, 7, 30, tzinfo=UTC)),
        (date(2026, 3, 1), datetime(2026, 3, 1, tzinfo=UTC)),
        (datetime(2026, 3, 1, 9), datetime(2026, 3, 1, 9, tzinfo=UTC)),
        (datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=-5))), datetime(2026, 3, 1, 14, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (1.5, datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)),
    ],
)
def test_timestamps_are_converted_to_utc(value: object, expected: datetime) -> None:
    assert as_utc(value) == expected


@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)])
def test_extreme_timestamps_round_trip(moment: datetime) -> None:
    with sennit.open(":memory:") as db:
        record = Record(id="a", text="harbour", timestamp=moment)
        db.add([record])
        assert db.get("a") == record
        assert len(db.search("harbour", filters="timestamp >= 0001-01-01")) == 1
