"""A filtered search finds exactly the records that `matches` accepts, through updates, deletes and flushes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit import Database, Filter, Record
from sennit.errors import FilterError
from sennit.filters import BUILTIN_FIELDS, compared_fields, flatten, matches
from sennit.stores.embedded import field_index
from test_filters import filters, records

from .helpers import COMMON_WORD, ids, versioned_record

WORD = "vineyard"


def named(found: list[Record], start: int = 0) -> list[Record]:
    return [
        dataclasses.replace(record, id=f"r{n}", text=f"{WORD} {n}") for n, record in enumerate(found, start)
    ]


def assert_filter_matches(db: Database, wanted: Filter, expected: dict[str, Record]) -> None:
    known = {*BUILTIN_FIELDS, *(name for record in expected.values() for name, _ in flatten(record))}
    if expected and not compared_fields(wanted) <= known:
        with pytest.raises(FilterError, match="No record has the field"):
            db.search(WORD, filters=wanted)
        return
    passing = sorted(name for name, record in expected.items() if matches(wanted, record))
    for recipe in ("keyword", "vector", "default"):
        result = db.search(WORD, recipe=recipe, limit=1000, filters=wanted)
        assert sorted(ids(result)) == passing, (recipe, wanted)
    few = db.search(WORD, limit=2, filters=wanted)
    assert len(few) == min(2, len(passing))
    with db.store.snapshot() as snapshot:
        assert snapshot.count(wanted) == len(passing)


@given(
    first=st.lists(records, min_size=1, max_size=8),
    later=st.lists(records, max_size=4),
    wanted=st.lists(filters, min_size=1, max_size=6),
    flush=st.booleans(),
    compact_after=st.sampled_from([1, 3, field_index.COMPACT_AFTER]),
)
@settings(max_examples=60)
def test_filtered_search_finds_what_the_filter_accepts(
    first: list[Record], later: list[Record], wanted: list[Filter], flush: bool, compact_after: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, sennit.open(":memory:") as db:
        patch.setattr(field_index, "COMPACT_AFTER", compact_after)
        expected = {record.id: record for record in named(first)}
        db.add(expected.values())
        if flush:
            db.admin.optimise()
        for one in wanted:
            assert_filter_matches(db, one, expected)
        changes = {record.id: record for record in named(later, len(first) // 2)}
        db.add(changes.values())
        expected |= changes
        gone = list(expected)[::3]
        db.remove(gone)
        for name in gone:
            del expected[name]
        if flush:
            db.admin.optimise()
        for one in wanted:
            assert_filter_matches(db, one, expected)


def test_filter_is_evaluated_again_after_many_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_index, "MAX_CATCH_UP_CHANGES", 5)
    with sennit.open(tmp_path / "db") as db:
        for n in range(0, 30, 10):
            db.add(versioned_record(f"r{m}", m, metadata={"m": m}) for m in range(n, n + 10))
            count = len(db.search("gemeinsam", limit=100, filters={"m": {"gte": 5}}))
            assert count == n + 5


def test_selective_filter_still_fills_the_limit(tmp_path: Path) -> None:
    """One record in a hundred passes, and each of them ranks below all others."""
    with sennit.open(tmp_path / "db") as db:
        db.add(
            Record(
                id=f"{n:04}",
                text="harbour " * (1 if n % 100 == 0 else 5)
                + ("padding words beyond the topic " * (n % 100 == 0)),
                kind="rare" if n % 100 == 0 else "note",
            )
            for n in range(1500)
        )
        for _ in range(2):
            for recipe in ("keyword", "vector", "default"):
                result = db.search("harbour", recipe=recipe, limit=10, filters="kind = 'rare'")
                assert len(result) == 10
                assert all(hit.record.kind == "rare" for hit in result)
            db.admin.optimise()


def test_fields_written_by_another_handle_are_seen(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as one, sennit.open(tmp_path / "db") as other:
        one.add([versioned_record("a", 1, metadata={"colour": "red"})])
        assert ids(other.search("gemeinsam", filters="colour = 'red'")) == ["a"]
        other.add([versioned_record("b", 2, metadata={"colour": "red", "shape": "round"})])
        assert set(ids(one.search("gemeinsam", filters="colour = 'red'"))) == {"a", "b"}
        assert ids(one.search("gemeinsam", filters="shape = 'round'")) == ["b"]
        one.add([versioned_record("b", 3, metadata={"colour": "blue"})])
        assert ids(other.search("gemeinsam", filters="colour = 'red'")) == ["a"]


def test_collection_filters_are_right_after_any_earlier_filter(tmp_path: Path) -> None:
    expected = {
        f"r{n}": versioned_record(f"r{n}", n, collection="odd" if n % 13 == 5 else "even", metadata={"n": n})
        for n in range(60)
    }
    names = ("odd", "even", "none")
    wanted = [sennit.field("collection").is_in(some) for some in (names, names[:1], names[1:], names[2:])]
    with sennit.open(tmp_path / "db") as db:
        db.add(expected.values())
        for one in [*wanted, *(~one for one in wanted), sennit.field("collection") == "even"]:
            passing = {name for name, record in expected.items() if matches(one, record)}
            assert set(ids(db.search(COMMON_WORD, limit=100, filters=one))) == passing
        later = versioned_record("r99", 99, collection="odd")
        db.add([later])
        assert set(ids(db.search(COMMON_WORD, limit=100, filters=wanted[2]))) == {
            name for name, record in expected.items() if record.collection == "even"
        }
        assert len(db.search(COMMON_WORD, limit=100, filters=wanted[1])) == 5 + 1
