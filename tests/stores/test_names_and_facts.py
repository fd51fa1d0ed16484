"""The tables of names and facts always match the records, in every process and every snapshot."""

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
from sennit.graph.names import name_hash
from sennit.records import Record
from sennit.repositories.facts import find_superseded
from sennit.stores.codec import record_to_row
from sennit.stores.embedded import graph, name_index
from sennit.stores.embedded.checks import check
from sennit.stores.embedded.graph import Graph
from sennit.stores.embedded.name_index import NameIndex, TextCache
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.findings import Finding, repair
from sennit.stores.graph_rows import NEVER
from sennit.stores.open import open_store
from sennit.stores.sql.records import INSERT
from sennit.stores.sql.schema import APPLICATION_ID, MIGRATIONS
from sennit.stores.sql.sqlite import SqliteConnection

from .helpers import add_records, remove_records

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PRIYA = Entity(name="Priya", aliases=("Priya S.",), id="priya").to_record()
GOA = Record(id="goa", title="Goa (state)", text="A state in India.")
TRIP = Fact(
    subject="Rajesh", relation="planning", object="Priya", text="a trip to Goa", id="trip"
).to_record()


def hash_of(name: str) -> int:
    found = name_hash(name)
    assert found is not None
    return found


def rows_named(view: Graph, name: str) -> list[int]:
    hashes = np.array([hash_of(name)], np.int64).view(np.uint64)
    return sorted(view.entities_named(hashes).rows.tolist())


def ids_named(store: EmbeddedStore, name: str, audience: str | None = None) -> list[str]:
    """The ids of the records with a name."""
    with store.snapshot(parse_filter(audience)) as snapshot:
        rows = np.array(rows_named(snapshot.graph, name), np.int64)
        return sorted(found.decode() for found in snapshot.ids(rows))


def graph_findings(store: EmbeddedStore) -> list[Finding]:
    return [finding for finding in check(store) if finding.check == "graph"]


def facts_of(store: EmbeddedStore, name: str, count: int = 10, **options: object) -> list[str]:
    """The ids of a name's facts, heaviest first."""
    with store.snapshot(parse_filter(options.pop("audience", None))) as snapshot:  # type: ignore[arg-type]
        (edges,) = snapshot.graph.edges(
            [hash_of(name)],
            count,
            options.pop("at", NOW),  # type: ignore[arg-type]
            parse_filter(options.pop("where", None)),  # type: ignore[arg-type]
            **options,  # type: ignore[arg-type]
        )
        return [found.decode() for found in snapshot.ids(np.array([edge.row for edge in edges], np.int64))]


def tables(store: EmbeddedStore) -> tuple[list[object], list[object]]:
    with store.pool.read() as connection:
        return (
            connection.execute("SELECT * FROM names ORDER BY row, name").fetchall(),
            connection.execute(
                "SELECT * FROM edges ORDER BY name, valid_until, negative_weight, negative_row"
            ).fetchall(),
        )


def lives(place: str, **fields: object) -> Record:
    return Fact(subject="Priya", relation="lives in", object=place, id=place, **fields).to_record()  # type: ignore[arg-type]


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return open_store(tmp_path / "db")


def test_names_and_facts_are_visible_when_the_write_returns(store: EmbeddedStore) -> None:
    add_records(store, [PRIYA, GOA, TRIP])
    assert ids_named(store, "priya s") == ["priya"]
    assert ids_named(store, "GOA") == ["goa"]
    assert facts_of(store, "rajesh") == facts_of(store, "Priya's") == ["trip"]


def test_an_update_removes_old_names_and_facts(store: EmbeddedStore) -> None:
    add_records(store, [GOA, lives("Goa")])
    add_records(store, [Record(id="goa", title="Kerala", text="A state in India.")])
    moved = Fact(subject="Priya", relation="lives in", object="Kerala", id="Goa").to_record()
    add_records(store, [moved])
    assert ids_named(store, "Goa") == []
    assert ids_named(store, "Kerala") == ["goa"]
    assert facts_of(store, "Goa") == []
    assert facts_of(store, "Kerala") == ["Goa"]


def test_a_removed_record_leaves_no_names_or_facts(store: EmbeddedStore) -> None:
    add_records(store, [PRIYA, GOA, TRIP, lives("Goa", superseded_at=NOW)])
    remove_records(store, ["priya", "goa", "trip", "Goa"])
    assert tables(store) == ([], [])
    assert ids_named(store, "Priya") == []


def test_another_process_sees_what_was_written(tmp_path: Path) -> None:
    one, other = open_store(tmp_path / "db"), open_store(tmp_path / "db")
    assert ids_named(other, "Goa") == []
    add_records(one, [GOA, TRIP])
    assert ids_named(other, "Goa") == ["goa"]
    assert facts_of(other, "Rajesh") == ["trip"]
    remove_records(other, ["goa", "trip"])
    assert ids_named(one, "Goa") == []
    assert facts_of(one, "Rajesh") == []


def test_names_and_facts_outlive_the_process(tmp_path: Path) -> None:
    first = open_store(tmp_path / "db")
    add_records(first, [PRIYA, TRIP])
    first.close()
    again = open_store(tmp_path / "db")
    assert ids_named(again, "Priya S") == ["priya"]
    assert facts_of(again, "Priya") == ["trip"]


def test_opening_an_older_database_fills_the_tables(tmp_path: Path) -> None:
    before = next(at for at, step in enumerate(MIGRATIONS) if "CREATE TABLE edges" in step)
    (tmp_path / "db").mkdir()
    connection = sqlite3.connect(tmp_path / "db" / "sennit.db")
    for step in MIGRATIONS[:before]:
        connection.executescript(step)
    for row, record in enumerate((PRIYA, GOA, TRIP), 1):
        connection.execute(INSERT, record_to_row(record, row, b"", b""))
    connection.execute("UPDATE state SET value = 3 WHERE key = 'seq'")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {before}")
    connection.commit()
    connection.close()
    store = open_store(tmp_path / "db")
    assert ids_named(store, "Priya S.") == ["priya"]
    assert facts_of(store, "Rajesh") == ["trip"]


def test_changed_rules_for_names_rebuild_the_tables(
    store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_records(store, [PRIYA, GOA, TRIP])
    filled = tables(store)
    with store.pool.write() as connection:
        connection.execute("UPDATE names SET name = name + 1")
        connection.execute("DELETE FROM edges")
    graph.ensure_tables(store.pool)
    assert tables(store) != filled
    monkeypatch.setattr(graph, "IDENTITY", 7)
    graph.ensure_tables(store.pool)
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
def test_after_any_writes_the_tables_match_the_records(writes: list[list[Record] | int]) -> None:
    store = open_store(":memory:")
    for write in writes:
        if isinstance(write, int):
            remove_records(store, [f"r{write}"])
        else:
            add_records(store, write)
    kept = tables(store)
    assert [one.level for one in graph_findings(store)] == ["ok"]
    with store.pool.write() as connection:
        graph.rebuild_tables(connection)
    assert tables(store) == kept
    for name in ("Goa", "Priya Sharma", "P", "北京"):
        fresh = open_store(":memory:")
        add_records(fresh, list(store.iter_records()))
        assert ids_named(store, name) == ids_named(fresh, name)
    store.close()


def test_a_snapshot_does_not_see_names_of_later_writes(store: EmbeddedStore) -> None:
    add_records(store, [PRIYA])
    with store.snapshot() as before:
        assert rows_named(before.graph, "Goa") == []
        add_records(store, [GOA])
        with ThreadPoolExecutor() as other:
            assert other.submit(ids_named, store, "Goa").result() == ["goa"]
        assert rows_named(before.graph, "Goa") == []
        narrow = parse_filter({"collection": "default"})
        hashes = np.array([hash_of("Goa")], np.int64).view(np.uint64)
        assert len(before.graph.entities_named(hashes, narrow).rows) == 0


def test_hidden_names_and_facts_are_not_returned(store: EmbeddedStore) -> None:
    secret = Record(id="x", title="Goa", text="", sensitivity="private")
    add_records(store, [GOA, secret, lives("Goa"), lives("Delhi", sensitivity="private", weight=9)])
    assert ids_named(store, "Goa") == ["goa", "x"]
    assert ids_named(store, "Goa", "sensitivity = 'normal'") == ["goa"]
    assert facts_of(store, "Priya") == ["Delhi", "Goa"]
    assert facts_of(store, "Priya", audience="sensitivity = 'normal'") == ["Goa"]
    assert facts_of(store, "Priya", where="sensitivity = 'normal'") == ["Goa"]


def test_a_hub_returns_its_heaviest_matching_facts_even_if_few_match(store: EmbeddedStore) -> None:
    hub = [
        Fact(subject="Hub", relation="has", object=f"n{at}", weight=at % 7, id=f"f{at}").to_record()
        for at in range(3000)
    ]
    add_records(store, [*hub, lives("Hub", weight=0.0, scope="team")])
    assert facts_of(store, "hub", 3) == ["f2995", "f2988", "f2981"]
    assert facts_of(store, "hub", 3, where="scope = 'team'") == ["Hub"]


def test_ended_facts_are_only_in_history(store: EmbeddedStore) -> None:
    add_records(
        store,
        [
            lives("Pune", timestamp="2020-01-01", superseded_at="2022-01-01"),
            lives("Delhi", timestamp="2022-01-01", superseded_at="2026-01-01"),
            lives("Goa", timestamp="2026-01-01"),
            lives("Mars", weight=9, superseded_at="2030-01-01"),
        ],
    )
    assert facts_of(store, "Priya") == ["Mars", "Goa"]
    then = datetime(2023, 1, 1, tzinfo=UTC)
    assert facts_of(store, "Priya", at=then, history=True) == ["Mars", "Delhi"]
    later = datetime(2031, 1, 1, tzinfo=UTC)
    assert facts_of(store, "Priya", at=later) == ["Goa"]


def test_facts_with_a_known_end_do_not_hide_heavier_ones(store: EmbeddedStore) -> None:
    ending = [lives(f"e{at}", weight=0.1, superseded_at="2030-01-01") for at in range(5)]
    add_records(store, [*ending, lives("Goa", weight=1.0)])
    assert facts_of(store, "Priya", 3)[0] == "Goa"


def test_facts_that_new_facts_may_end_are_found(store: EmbeddedStore) -> None:
    add_records(store, [lives("Pune"), lives("Delhi", superseded_at=NOW), lives("Goa")])
    new = Fact(subject="priya", relation="lives in", object="Kochi", supersedes=("Pune",))
    with store.transaction() as transaction:
        assert {old.id for old in find_superseded(transaction, [new], same_relation=False)} == {"Pune"}
        assert {old.id for old in find_superseded(transaction, [new], same_relation=True)} == {
            "Pune",
            "Goa",
        }
        unknown = Fact(subject="a", relation="b", object="c", supersedes=("nothing",))
        with pytest.raises(LookupError, match="There is no fact 'nothing'"):
            find_superseded(transaction, [unknown], same_relation=False)


def test_many_new_names_reload_the_name_index() -> None:
    connection = sqlite3.connect(":memory:", factory=SqliteConnection)
    connection.execute("CREATE TABLE names (row INTEGER, name INTEGER, flags INTEGER)")
    index = NameIndex()
    assert not index.catch_up(connection, 0)
    expected: dict[int, list[int]] = {}
    rng = np.random.default_rng(1)
    row = 0
    for size in (1, 3, name_index.MIN_RELOAD_NAMES, 2, 3 * name_index.MIN_RELOAD_NAMES, 5):
        fresh = []
        for _ in range(size):
            row += 1
            name = int(rng.integers(-(1 << 63), 1 << 63)) if row % 3 else 42
            fresh.append((row, name, row % 4))
            expected.setdefault(name, []).append(row)
        connection.executemany("INSERT INTO names VALUES (?, ?, ?)", fresh)
        assert index.catch_up(connection, row)
        hashes = np.array([*list(expected)[-50:], *list(expected)[:50], 7], np.int64)
        found = index.find(hashes.view(np.uint64))
        got: dict[int, list[int]] = {}
        for which, row_, flags in zip(*(column.tolist() for column in found), strict=True):
            got.setdefault(int(hashes[which]), []).append(row_)
            assert flags == row_ % 4
        assert {name: sorted(set(rows)) for name, rows in got.items()} == {
            name: expected[name] for name in hashes.tolist() if name in expected
        }


def test_the_text_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "MAX_CACHED_WORDS", 10)
    cache, reads = TextCache(), []

    def read(rows: list[int]) -> list[tuple[int, str, str]]:
        reads.append(rows)
        return [(row, f"r{row}", "four words and more") for row in rows]

    assert cache.get([1, 2], read)[2].label == "r2"
    cache.get([2, 1], read)
    assert reads == [[1, 2]]
    cache.get([3], read)
    cache.get([2], read)
    assert reads == [[1, 2], [3], [2]]


def test_wrong_tables_are_found_and_rebuilt(store: EmbeddedStore) -> None:
    add_records(store, [PRIYA, GOA, TRIP])
    with store.pool.write() as connection:
        connection.execute("DELETE FROM names WHERE row = 2")
        connection.execute("UPDATE edges SET other_name = 5 WHERE negative_row = -3")
        connection.execute("INSERT INTO names VALUES (99, 1, 0)")
    (found,) = graph_findings(store)
    assert found.message == (
        "the names and facts do not match the records: they disagree with the record 'goa' and 1 more; "
        "they hold 1 records that have none or were removed"
    )
    assert repair([found]) == ["derived the names and facts from the records"]
    assert [one.level for one in graph_findings(store)] == ["ok"]


def test_the_tables_hold_a_fact_from_both_endpoints(store: EmbeddedStore) -> None:
    add_records(store, [TRIP, Fact(subject="Narcissus", relation="loves", object="narcissus").to_record()])
    _, edges = tables(store)
    assert len(edges) == 3
    assert all(edge[1] == NEVER for edge in edges)  # type: ignore[index]
    with store.snapshot() as snapshot:
        assert snapshot.graph.has_facts
        assert snapshot.matches(1, EVERYTHING)
