"""The tables of names and facts: always what the records say, in every process, at every moment."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.facts import Entity, Fact
from sennit.filters import EVERYTHING, parse_filter
from sennit.graph.names import name_number
from sennit.records import Record
from sennit.stores.embedded import graph, names
from sennit.stores.embedded.codec import INSERT, to_values
from sennit.stores.embedded.graph import NEVER, Graph
from sennit.stores.embedded.names import NameIndex, TextCache
from sennit.stores.embedded.schema import APPLICATION_ID, MIGRATIONS
from sennit.stores.embedded.store import EmbeddedStore

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PRIYA = Entity(name="Priya", aliases=("Priya S.",), id="priya").to_record()
GOA = Record(id="goa", title="Goa (state)", text="A state in India.")
TRIP = Fact(
    subject="Rajesh", relation="planning", object="Priya", text="a trip to Goa", id="trip"
).to_record()


def number(name: str) -> int:
    found = name_number(name)
    assert found is not None
    return found


def bearers(view: Graph, name: str) -> list[int]:
    asked = np.array([number(name)], np.int64).view(np.uint64)
    return sorted(view.bearers(asked).rows.tolist())


def called(store: EmbeddedStore, name: str, audience: str | None = None) -> list[str]:
    """The ids of the records that bear a name."""
    with store.snapshot(parse_filter(audience)) as snapshot:
        rows = np.array(bearers(snapshot.graph, name), np.int64)
        return sorted(found.decode() for found in snapshot.ids(rows))


def facts_of(store: EmbeddedStore, name: str, count: int = 10, **asked: object) -> list[str]:
    """The ids of a name's facts, heaviest first."""
    with store.snapshot(parse_filter(asked.pop("audience", None))) as snapshot:  # type: ignore[arg-type]
        (edges,) = snapshot.graph.edges(
            [number(name)],
            count,
            asked.pop("at", NOW),  # type: ignore[arg-type]
            parse_filter(asked.pop("where", None)),  # type: ignore[arg-type]
            **asked,  # type: ignore[arg-type]
        )
        return [found.decode() for found in snapshot.ids(np.array([edge.row for edge in edges], np.int64))]


def tables(store: EmbeddedStore) -> tuple[list[object], list[object]]:
    with store.database.read() as connection:
        return (
            connection.execute("SELECT * FROM names ORDER BY row, name").fetchall(),
            connection.execute("SELECT * FROM edges ORDER BY name, until, rank, newest").fetchall(),
        )


def lives(place: str, **fields: object) -> Record:
    return Fact(subject="Priya", relation="lives in", object=place, id=place, **fields).to_record()  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return EmbeddedStore(tmp_path / "db")


def test_names_and_facts_are_there_when_the_write_returns(store: EmbeddedStore) -> None:
    store.add([PRIYA, GOA, TRIP], {})
    assert called(store, "priya s") == ["priya"]
    assert called(store, "GOA") == ["goa"]
    assert facts_of(store, "rajesh") == facts_of(store, "Priya's") == ["trip"]


def test_an_update_takes_old_names_and_facts_away(store: EmbeddedStore) -> None:
    store.add([GOA, lives("Goa")], {})
    store.add([Record(id="goa", title="Kerala", text="A state in India.")], {})
    moved = Fact(subject="Priya", relation="lives in", object="Kerala", id="Goa").to_record()
    store.add([moved], {})
    assert called(store, "Goa") == []
    assert called(store, "Kerala") == ["goa"]
    assert facts_of(store, "Goa") == []
    assert facts_of(store, "Kerala") == ["Goa"]


def test_a_removed_record_leaves_nothing(store: EmbeddedStore) -> None:
    store.add([PRIYA, GOA, TRIP, lives("Goa", superseded_at=NOW)], {})
    store.remove(["priya", "goa", "trip", "Goa"])
    assert tables(store) == ([], [])
    assert called(store, "Priya") == []


def test_another_process_sees_what_was_written(tmp_path: Path) -> None:
    one, other = EmbeddedStore(tmp_path / "db"), EmbeddedStore(tmp_path / "db")
    assert called(other, "Goa") == []
    one.add([GOA, TRIP], {})
    assert called(other, "Goa") == ["goa"]
    assert facts_of(other, "Rajesh") == ["trip"]
    other.remove(["goa", "trip"])
    assert called(one, "Goa") == []
    assert facts_of(one, "Rajesh") == []


def test_names_and_facts_outlive_the_process(tmp_path: Path) -> None:
    first = EmbeddedStore(tmp_path / "db")
    first.add([PRIYA, TRIP], {})
    first.close()
    again = EmbeddedStore(tmp_path / "db")
    assert called(again, "Priya S") == ["priya"]
    assert facts_of(again, "Priya") == ["trip"]


def test_an_older_database_is_filled_when_it_is_opened(tmp_path: Path) -> None:
    before = next(at for at, step in enumerate(MIGRATIONS) if "CREATE TABLE edges" in step)
    (tmp_path / "db").mkdir()
    connection = sqlite3.connect(tmp_path / "db" / "sennit.db")
    for step in MIGRATIONS[:before]:
        connection.executescript(step)
    for row, record in enumerate((PRIYA, GOA, TRIP), 1):
        connection.execute(INSERT, to_values(record, row, b"", b""))
    connection.execute("UPDATE state SET value = 3 WHERE key = 'seq'")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {before}")
    connection.commit()
    connection.close()
    store = EmbeddedStore(tmp_path / "db")
    assert called(store, "Priya S.") == ["priya"]
    assert facts_of(store, "Rajesh") == ["trip"]


def test_other_rules_for_names_fill_the_tables_anew(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add([PRIYA, GOA, TRIP], {})
    filled = tables(store)
    with store.database.write() as connection:
        connection.execute("UPDATE names SET name = name + 1")
        connection.execute("DELETE FROM edges")
    graph.ensure(store.database)
    assert tables(store) != filled
    monkeypatch.setattr(graph, "IDENTITY", 7)
    graph.ensure(store.database)
    assert tables(store) == filled


records = st.builds(
    lambda number, title, aliases: Record(
        id=f"r{number}", text="", title=title, metadata={} if aliases is None else {"aliases": aliases}
    ),
    st.integers(0, 4),
    st.sampled_from(["", "Goa", "Goa (state)", "Priya Sharma, Lady of Pune", "北京"]),
    st.none() | st.lists(st.sampled_from(["Goa", "P", ""]), max_size=2),
)
made_facts = st.builds(
    lambda number, subject, object_, weight, ended: Fact(
        subject=subject,
        relation="knows",
        object=object_,
        weight=weight,
        id=f"r{number}",
        superseded_at=NOW if ended else None,
    ).to_record(),
    st.integers(0, 4),
    st.sampled_from(["Priya", "Goa"]),
    st.sampled_from(["Priya", "Rajesh"]),
    st.sampled_from([0.0, 1.0, 0.1]),
    st.booleans(),
)
writes = st.lists(st.lists(records | made_facts, max_size=3) | st.integers(0, 4), max_size=8)


@settings(max_examples=50)
@given(writes)
def test_after_any_writes_the_tables_are_what_the_records_give(writes: list[list[Record] | int]) -> None:
    store = EmbeddedStore(None)
    for write in writes:
        if isinstance(write, int):
            store.remove([f"r{write}"])
        else:
            store.add(write, {})
    kept = tables(store)
    with store.database.write() as connection:
        assert graph.differing(connection) == set()
        graph.refill(connection)
    assert tables(store) == kept
    for name in ("Goa", "Priya Sharma", "P", "北京"):
        fresh = EmbeddedStore(None)
        fresh.add(list(store.every()), {})
        assert called(store, name) == called(fresh, name)
    store.close()


def test_a_moment_does_not_see_names_of_a_later_one(store: EmbeddedStore) -> None:
    store.add([PRIYA], {})
    with store.snapshot() as before:
        assert bearers(before.graph, "Goa") == []
        store.add([GOA], {})
        with ThreadPoolExecutor() as other:
            assert other.submit(called, store, "Goa").result() == ["goa"]
        assert bearers(before.graph, "Goa") == []
        narrow = parse_filter({"collection": "default"})
        asked = np.array([number("Goa")], np.int64).view(np.uint64)
        assert len(before.graph.bearers(asked, narrow).rows) == 0


def test_names_and_facts_that_may_not_be_seen_are_not_there(store: EmbeddedStore) -> None:
    secret = Record(id="x", title="Goa", text="", sensitivity="private")
    store.add([GOA, secret, lives("Goa"), lives("Delhi", sensitivity="private", weight=9)], {})
    assert called(store, "Goa") == ["goa", "x"]
    assert called(store, "Goa", "sensitivity = 'normal'") == ["goa"]
    assert facts_of(store, "Priya") == ["Delhi", "Goa"]
    assert facts_of(store, "Priya", audience="sensitivity = 'normal'") == ["Goa"]
    assert facts_of(store, "Priya", where="sensitivity = 'normal'") == ["Goa"]


def test_a_hub_gives_its_heaviest_facts_that_pass_however_few_do(store: EmbeddedStore) -> None:
    hub = [
        Fact(subject="Hub", relation="has", object=f"n{at}", weight=at % 7, id=f"f{at}").to_record()
        for at in range(3000)
    ]
    store.add([*hub, lives("Hub", weight=0.0, scope="team")], {})
    assert facts_of(store, "hub", 3) == ["f2995", "f2988", "f2981"]
    assert facts_of(store, "hub", 3, where="scope = 'team'") == ["Hub"]


def test_facts_that_ended_are_history(store: EmbeddedStore) -> None:
    store.add(
        [
            lives("Pune", timestamp="2020-01-01", superseded_at="2022-01-01"),
            lives("Delhi", timestamp="2022-01-01", superseded_at="2026-01-01"),
            lives("Goa", timestamp="2026-01-01"),
            lives("Mars", weight=9, superseded_at="2030-01-01"),
        ],
        {},
    )
    assert facts_of(store, "Priya") == ["Mars", "Goa"]
    then = datetime(2023, 1, 1, tzinfo=UTC)
    assert facts_of(store, "Priya", at=then, history=True) == ["Mars", "Delhi"]
    later = datetime(2031, 1, 1, tzinfo=UTC)
    assert facts_of(store, "Priya", at=later) == ["Goa"]


def test_facts_about_to_end_do_not_hide_heavier_ones(store: EmbeddedStore) -> None:
    ending = [lives(f"e{at}", weight=0.1, superseded_at="2030-01-01") for at in range(5)]
    store.add([*ending, lives("Goa", weight=1.0)], {})
    assert facts_of(store, "Priya", 3)[0] == "Goa"


def test_what_new_facts_may_end_is_found(store: EmbeddedStore) -> None:
    store.add([lives("Pune"), lives("Delhi", superseded_at=NOW), lives("Goa")], {})
    new = Fact(subject="priya", relation="lives in", object="Kochi", supersedes=("Pune",))
    with store.database.read() as connection:
        assert {old.id for old in graph.older(connection, [new], same_relation=False)} == {"Pune"}
        assert {old.id for old in graph.older(connection, [new], same_relation=True)} == {"Pune", "Goa"}
        unknown = Fact(subject="a", relation="b", object="c", supersedes=("nothing",))
        with pytest.raises(LookupError, match="There is no fact 'nothing'"):
            graph.older(connection, [unknown], same_relation=False)


def test_a_table_of_names_that_outgrows_memory_structures_is_read_again() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE names (row INTEGER, name INTEGER, flags INTEGER)")
    index = NameIndex()
    assert not index.catch_up(connection, 0)
    expected: dict[int, list[int]] = {}
    chance = np.random.default_rng(1)
    row = 0
    for size in (1, 3, names.RELOAD_AFTER, 2, 3 * names.RELOAD_AFTER, 5):
        fresh = []
        for _ in range(size):
            row += 1
            name = int(chance.integers(-(1 << 63), 1 << 63)) if row % 3 else 42
            fresh.append((row, name, row % 4))
            expected.setdefault(name, []).append(row)
        connection.executemany("INSERT INTO names VALUES (?, ?, ?)", fresh)
        assert index.catch_up(connection, row)
        asked = np.array([*list(expected)[-50:], *list(expected)[:50], 7], np.int64)
        found = index.find(asked.view(np.uint64))
        got: dict[int, list[int]] = {}
        for which, bearer, flags in zip(*(column.tolist() for column in found), strict=True):
            got.setdefault(int(asked[which]), []).append(bearer)
            assert flags == bearer % 4
        assert {name: sorted(set(rows)) for name, rows in got.items()} == {
            name: expected[name] for name in asked.tolist() if name in expected
        }


def test_texts_are_read_once_and_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "KEPT_WORDS", 10)
    cache, asked = TextCache(), []

    def read(rows: list[int]) -> list[tuple[int, str, str]]:
        asked.append(rows)
        return [(row, f"r{row}", "four words and more") for row in rows]

    assert cache.of([1, 2], read)[2].label == "r2"
    cache.of([2, 1], read)
    assert asked == [[1, 2]]
    cache.of([3], read)
    cache.of([2], read)
    assert asked == [[1, 2], [3], [2]]


def test_tables_that_do_not_say_what_the_records_say_are_noticed_and_mended(store: EmbeddedStore) -> None:
    store.add([PRIYA, GOA, TRIP], {})
    with store.database.write() as connection:
        connection.execute("DELETE FROM names WHERE row = 2")
        connection.execute("UPDATE edges SET other = 5 WHERE newest = -3")
        connection.execute("INSERT INTO names VALUES (99, 1, 0)")
        assert graph.differing(connection) == {2, 3, 99}
        graph.refill(connection)
        assert graph.differing(connection) == set()


def test_the_tables_hold_a_fact_from_both_ends(store: EmbeddedStore) -> None:
    store.add([TRIP, Fact(subject="Narcissus", relation="loves", object="narcissus").to_record()], {})
    _, edges = tables(store)
    assert len(edges) == 3
    assert all(edge[1] == NEVER for edge in edges)  # type: ignore[index]
    with store.snapshot() as snapshot:
        assert snapshot.graph.has_facts
        assert snapshot.passes(1, EVERYTHING)
