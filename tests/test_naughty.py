"""Naughty strings in every field and argument: they are stored, found and returned unchanged, or refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest

import sennit
from sennit import Caller, Database, Record
from sennit.analysis import query_terms
from sennit.errors import InvalidInput, NotFound, SennitError
from sennit.filters import Equal, canonical_name, field, field_path, flatten, parse_filter

RARE = "quixotry"


@pytest.fixture(scope="module")
def naughty(naughty_strings: list[str]) -> list[str]:
    return naughty_strings


@pytest.fixture(scope="module")
def filled(
    naughty: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, list[Record]]]:
    """One record for each string and each field that accepts it."""
    records = []
    for at, string in enumerate(naughty):
        for place in ("text", "title", "kind", "path", "url", "parent", "collection", "scope", "sensitivity"):
            try:
                records.append(Record(**{"id": f"{place}-{at}", "text": RARE, place: string}))  # type: ignore[arg-type]
            except SennitError:
                assert place != "text"
        try:
            records.append(Record(id=string, text=RARE))
        except SennitError:
            assert not string or len(string.encode()) > 1024
        records.append(Record(id=f"value-{at}", text=RARE, metadata={"value": string, "list": [string]}))
        try:
            records.append(Record(id=f"key-{at}", text=RARE, metadata={string: "there", "in": {string: 1}}))
        except SennitError:
            assert not string or len(string.encode()) > 1024
    with sennit.open(tmp_path_factory.mktemp("naughty") / "db", privacy__open=True) as db:
        written = db.add(records)
        assert written.added == len({record.id for record in records})
        db.admin.optimise()
        yield db, records


def test_strings_are_returned_unchanged(filled: tuple[Database, list[Record]]) -> None:
    db, records = filled
    latest = {record.id: record for record in records}
    assert {record.id: record for record in db} == latest
    for name, record in latest.items():
        assert db.get(name) == record
        assert Record.from_dict(json.loads(record.to_json())) == record


def test_strings_are_found_as_text_and_title(
    naughty: list[str], filled: tuple[Database, list[Record]]
) -> None:
    db, _ = filled
    for at, string in enumerate(naughty):
        if query_terms(string):
            for place in ("text", "title"):
                result = db.search(string, recipe="keyword", limit=1000, filters={"id": f"{place}-{at}"})
                assert [getattr(hit, place) for hit in result] == [string]


def test_any_query_is_answered(naughty: list[str], filled: tuple[Database, list[Record]]) -> None:
    db, _ = filled
    for string in naughty:
        result = db.search(string, limit=3)
        assert not result.degraded
        assert result.query == string
    for string in naughty[::10]:
        json.dumps(db.search(string, limit=3, explain=True).to_dict())


def test_a_filter_value_finds_exactly_its_records(
    naughty: list[str], filled: tuple[Database, list[Record]]
) -> None:
    db, records = filled
    holding: dict[tuple[str, object], set[str]] = {}
    for record in {record.id: record for record in records}.values():
        for pair in flatten(record):
            holding.setdefault(pair, set()).add(record.id)
    for string in naughty:
        for name in ("id", "title", "collection", "path", "metadata.value", "metadata.list"):
            wanted = field(name) == string
            assert parse_filter({name: string}) == wanted
            assert len(string) > 60_000 or parse_filter(str(wanted)) == wanted
            expected = holding.get((canonical_name(field_path(name)), string), set())
            if len(expected) < 100:
                result = db.search(RARE, recipe="keyword", limit=100, filters=wanted)
                assert {hit.id for hit in result} == {name for name in expected if "text-" not in name}


def test_metadata_keys_can_be_used_in_filters(
    naughty: list[str], filled: tuple[Database, list[Record]]
) -> None:
    db, _ = filled
    for at, string in enumerate(naughty):
        if not string or len(string.encode()) > 1024:
            continue
        for wanted in (
            Equal(canonical_name(("metadata", string)), "there"),
            Equal(canonical_name(("metadata", "in", string)), 1),
        ):
            assert parse_filter(str(wanted)) == wanted
            result = db.search(RARE, recipe="keyword", limit=1000, filters=wanted)
            assert f"key-{at}" in {hit.id for hit in result}


def test_filter_text_is_a_filter_or_a_clear_error(
    naughty: list[str], filled: tuple[Database, list[Record]]
) -> None:
    db, _ = filled
    for string in naughty:
        with contextlib.suppress(SennitError):
            db.search(RARE, limit=1, filters=string)


def test_strings_name_no_other_recipe_or_record(
    naughty: list[str], filled: tuple[Database, list[Record]]
) -> None:
    db, records = filled
    known = {record.id for record in records}
    for string in naughty[::10]:
        with pytest.raises(SennitError):
            db.search(RARE, recipe=string or "?")
        if string in known:
            assert db.why(RARE, string).id == string
            continue
        with contextlib.suppress(SennitError):
            # The beginning of an id, a path and a URL name a record too.
            record = db.get(db.why(RARE, string).id)
            assert record is not None
            assert record.id.startswith(string) or string in (record.path, record.url)


@pytest.mark.parametrize(
    "place",
    ["id", "text", "title", "collection", "kind", "path", "url", "parent", "sensitivity", "scope"],
)
def test_a_lone_surrogate_is_refused_in_every_field(place: str) -> None:
    with pytest.raises(SennitError, match="surrogate"):
        Record(**{"id": "x", "text": "y", place: "a\ud800b"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "metadata", [{"a\ud800": 1}, {"a": "\udfff"}, {"a": ["\udfff"]}, {"a": {"\ud800": 1}}]
)
def test_a_lone_surrogate_is_refused_in_metadata(metadata: dict[str, object]) -> None:
    with pytest.raises(SennitError, match="surrogate"):
        Record.from_dict({"id": "x", "text": "y", "metadata": metadata})


def test_a_lone_surrogate_is_refused_in_every_query() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="a", text="harbour")])
        for ask in (
            lambda: db.search("harbour \ud800"),
            lambda: db.search("harbour", filters={"kind": "\ud800"}),
            lambda: db.search("harbour", filters={"a\ud800": 1}),
            lambda: db.search("harbour", filters="kind = '\ud800'"),
            lambda: db.search("harbour", recipe="\ud800"),
            lambda: db.why("harbour", "\ud800"),
            lambda: db.why("\ud800", "a"),
            lambda: db.get("\ud800"),
            lambda: db.remove(["a", "\ud800"]),
        ):
            with pytest.raises(SennitError):
                ask()
        assert len(db) == 1


def test_no_string_changes_who_sees_what(naughty: list[str], filled: tuple[Database, list[Record]]) -> None:
    db, records = filled
    latest = {record.id: record for record in records}
    for string in naughty[::7]:
        if not string:
            continue
        caller = Caller(scopes=frozenset({string}), name=string)
        expected = {
            name
            for name, record in latest.items()
            if record.sensitivity == "normal" and record.scope in ("public", string)
        }
        with db.store.snapshot(db.audience(caller)) as snapshot:
            assert snapshot.count() == len(expected)
        with pytest.raises(SennitError, match="no sensitivity level"):
            db.search(RARE, caller=Caller(clearance=string))
        if "\x1f" not in string:
            assert not db.search(RARE, caller=Caller(tenant=string, everything=True))


def test_no_collection_name_changes_what_is_searched(
    naughty: list[str], filled: tuple[Database, list[Record]]
) -> None:
    db, records = filled
    latest = {record.id: record for record in records}
    for string in naughty[::7]:
        known = {name for name, record in latest.items() if record.collection == string}
        if not 1 <= len(string) <= 1024:
            assert not known
            with pytest.raises(InvalidInput, match="from 1 to 1,024"):
                db.search(RARE, recipe="artifacts", include=[string], limit=50)
            continue
        with contextlib.suppress(NotFound):
            hits = db.search(RARE, recipe="artifacts", include=[string], limit=50)
            assert known
            assert {hit.id for hit in hits} <= known
