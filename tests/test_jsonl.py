"""Export and import as JSON lines: lossless, and bad lines are reported."""

from __future__ import annotations

import io
import json
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit import Record
from sennit.errors import InvalidInput
from sennit.jsonl import (
    BATCH_RECORDS,
    BadLine,
    ImportReport,
    export_lines,
    import_records,
    read_records,
    write_atomically,
)
from sennit.records import Json

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
name = text.filter(bool)
odd = st.sampled_from(
    [
        "\u2028",
        "\x85",
        "\x00",
        "\r\n",
        "\ufeff",
        "a\u0301",
        "𝔘𝔫𝔦",
        "👩‍👩‍👧",
        "\u202e",
        '"\\/',
        "null",
        "İı",
        " ",
    ]
)
values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text | odd,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(name, inner, max_size=3),
    max_leaves=10,
)
records = st.builds(
    Record,
    id=name | odd,
    text=text | odd,
    collection=name,
    title=text | odd,
    kind=text,
    path=st.none() | name,
    url=st.none() | name,
    lines=st.none() | st.tuples(st.integers(1, 9), st.integers(10, 2**62)),
    parent=st.none() | name,
    position=st.none() | st.integers(0, 2**63 - 1),
    timestamp=st.none() | st.datetimes(timezones=st.just(UTC)),
    sensitivity=name,
    scope=name,
    metadata=st.dictionaries(name | odd, values, max_size=4),
)


def stream(*parts: str | bytes) -> io.BytesIO:
    return io.BytesIO(b"".join(part if isinstance(part, bytes) else part.encode() for part in parts))


def same(one: Record, other: Record) -> bool:
    """Equal, and in the same types: 1, 1.0 and True are three values."""
    return one == other and one.to_json() == other.to_json()


@given(st.lists(records, max_size=5))
def test_export_lines_round_trip(given_records: list[Record]) -> None:
    again = list(read_records(io.BytesIO(b"".join(export_lines(given_records, len(given_records))))))
    assert len(again) == len(given_records)
    assert all(map(same, given_records, again))


@settings(max_examples=50)
@given(st.lists(records, max_size=5, unique_by=lambda record: record.id))
def test_database_export_round_trips(given_records: list[Record]) -> None:
    with sennit.open(":memory:", embedding__provider="none", privacy__open=True) as one:
        one.add(given_records)
        exported = b"".join(export_lines(one, len(one)))
        with sennit.open(":memory:", embedding__provider="none", privacy__open=True) as other:
            report = import_records(io.BytesIO(exported), other.add)
            assert report == ImportReport(read=len(given_records), added=len(given_records))
            assert b"".join(export_lines(other, len(other))) == exported
            for record in given_records:
                found = other.get(record.id)
                assert found is not None
                assert same(found, record)


def test_an_export_is_ordered_by_id_under_a_header() -> None:
    with sennit.open(":memory:", embedding__provider="none") as db:
        db.add([Record(id="b", text="x"), Record(id="a", text="y"), Record(id="ä", text="z")])
        written = [json.loads(line) for line in export_lines(db, len(db))]
    assert written[0] == {"sennit": {"format": 1, "records": 3}}
    assert [line["id"] for line in written[1:]] == ["a", "b", "ä"]


def test_import_accepts_a_file_without_header() -> None:
    given_lines = stream("\ufeff", '{"id":"a","text":"x"}\r\n', "\n", "   \n", '{"text":"y","id":"b"}')
    assert [record.id for record in read_records(given_lines)] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nonsense", "not JSON"),
        ('{"id": "a", "text": "x"', "not JSON"),
        ("[1]", "must be an object"),
        ('"text"', "must be an object"),
        ('{"id": "a"}', "needs the field 'text'"),
        ('{"id": "a", "text": null}', "text"),
        ('{"id": "a", "text": 1}', "must be a string"),
        ('{"id": "", "text": "x"}', "must not be empty"),
        ('{"id": "a", "text": "x", "colour": 1}', "no field 'colour'"),
        ('{"id": "a", "text": "x", "timestamp": "soon"}', "valid time"),
        ('{"id": "a", "text": "x", "lines": [3]}', "lines"),
        ('{"id": "a", "text": "\\ud800"}', "surrogate"),
        ('{"id": "a", "text": "x", "metadata": {"n": NaN}}', "NaN"),
        ('{"id": "a", "text": "x", "metadata": {"n": ' + "9" * 5000 + "}}", "not usable JSON"),
        ("[" * 100_000, "not usable JSON"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_bad_line_is_reported_with_its_number(line: str | bytes, problem: str) -> None:
    good = '{"id": "good", "text": "x"}\n'
    with pytest.raises(BadLine, match=problem) as caught:
        list(read_records(stream(good, line, "\n", good)))
    assert caught.value.line == 2
    assert str(caught.value).startswith("Line 2: ")
    bad: list[BadLine] = []
    assert len(list(read_records(stream(good, line, "\n", good), bad.append))) == 2
    assert [error.line for error in bad] == [2]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ('{"sennit": {"format": 2}}', "newer sennit"),
        ('{"sennit": {}}', "no format"),
        ('{"sennit": 1}', "no format"),
        ('{"sennit": {"format": 1, "records": 2}}', "ends after 1 of 2 records"),
    ],
)
def test_header_is_checked(header: str, problem: str) -> None:
    with pytest.raises(BadLine, match=problem):
        list(read_records(stream(header, "\n", '{"id": "a", "text": "x"}\n')))


class Store:
    """Remembers what was added, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.added, self.updated, self.unchanged = 0, 0, 0

    def add(self, batch: list[Record]) -> ImportReport:
        self.batches.append(len(batch))
        return ImportReport(added=len(batch))


def export_of(count: int) -> bytes:
    return b"".join(export_lines((Record(id=str(at), text="x") for at in range(count)), count))


def test_records_are_added_in_batches_with_progress() -> None:
    store, told = Store(), list[tuple[int, int]]()
    content = export_of(2 * BATCH_RECORDS + 1)
    report = import_records(
        io.BytesIO(content), store.add, progress=lambda count, size: told.append((count, size))
    )
    assert store.batches == [BATCH_RECORDS, BATCH_RECORDS, 1]
    assert (report.read, report.added) == (2 * BATCH_RECORDS + 1, 2 * BATCH_RECORDS + 1)
    assert told[-1] == (2 * BATCH_RECORDS + 1, len(content))
    assert told == sorted(told)


def test_records_before_a_bad_line_are_added() -> None:
    store = Store()
    report = import_records(stream(export_of(BATCH_RECORDS + 5), "nonsense\n"), store.add)
    assert store.batches == [BATCH_RECORDS, 5]
    assert [bad.line for bad in report.bad] == [BATCH_RECORDS + 7]


def test_check_only_import_adds_nothing() -> None:
    assert import_records(io.BytesIO(export_of(3)), None) == ImportReport(read=3)


def test_file_is_written_atomically(tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    write_atomically(target, [b"old\n"])

    def broken() -> list[bytes]:
        raise InvalidInput("the database went away")

    with pytest.raises(InvalidInput):
        write_atomically(target, (line for _ in range(2) for line in broken()))
    assert target.read_bytes() == b"old\n"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_atomically(tmp_path / "no" / "folder", [b"x"])
