"""Conformance of the records role: what any home of the records promises to those who write and search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sennit
from sennit.errors import FilterError, NotFound, SennitError
from sennit.filters import Filter, field, matches, parse_filter
from sennit.repositories.keys import encode_key, key_range
from sennit.results import SearchResult
from sennit.settings import load_settings
from sennit.stores.contract import Backend

Target: TypeAlias = str | Callable[[], Backend]
"""What `sennit.open` takes by name, or a function that opens a backend, each time for another handle."""

NewTarget: TypeAlias = Callable[[], Target]
"""Returns a target: each time a new and empty database, which can be opened several times."""

ORACLE: Final = ":memory:"

TOLERANCE: Final = 1e-4
"""How far the scores of two backends may lie apart."""

WORDS: Final = (
    "river",
    "valley",
    "compiler",
    "bread",
    "yeast",
    "oboe",
    "glacier",
    "Straße",
    "東京",
    "parseHttp",
)
RECIPES: Final = ("default", "rrf", "keyword", "vector", "artifacts")
"""Recipes whose scores do not depend on the clock."""

QUERIES: Final = ("river valley", "bread strasse", "東京 http", "nothing of this")

WHEN: Final = datetime(2026, 1, 5, tzinfo=UTC)

LAG_RECORDS: Final = 1000
"""How many changes an index is behind in the test of a lagging reader."""

HOSTILE: Final = (
    *(
        "a\0b",
        "\0",
        "\x01",
        "\x01\x30",
        "\ufeff",
        "\U0010ffff",
        "%s %(a)s ? :1 $1",
        "'; DROP TABLE records; --",
    ),
    *("\\", '"', "{}", "[1]", "e\u0301" * 50, "\r\n\t", "x" * 5000, "\u202eabc", "😀"),
)

_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
_metadata = st.fixed_dictionaries(
    {},
    optional={
        "year": st.integers(2020, 2026),
        "tags": st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
        "share": st.floats(0, 1, allow_nan=False),
        "done": st.booleans(),
        "source": st.fixed_dictionaries({"system": st.sampled_from(["gmail", "files"])}),
    },
)
EVERY_FIELD: Final = {"year": 0, "tags": ["none"], "share": -1.0, "done": "no", "source": {"system": "-"}}
"""Metadata with every field that a filter names, because a field that no record has is an error."""

_records = st.builds(
    lambda name, text, metadata, kind, level: sennit.Record(
        id=f"r{name}", text=text, kind=kind, sensitivity=level, metadata=metadata, timestamp=WHEN
    ),
    st.integers(0, 12),
    _texts,
    _metadata,
    st.sampled_from(["note", "mail", ""]),
    st.sampled_from(["normal", "private"]),
)
writes = st.lists(
    st.one_of(st.lists(_records, min_size=1, max_size=5), st.integers(0, 12)), min_size=1, max_size=8
)
"""Batches to add, and numbers of records to remove."""

Writes: TypeAlias = Sequence[Sequence[sennit.Record] | int]

_conditions = st.one_of(
    st.integers(2019, 2027).map(lambda year: field("year") >= year),
    st.sampled_from(["a", "b", "z"]).map(lambda tag: field("tags") == tag),
    st.lists(st.sampled_from(["note", "mail", "other"]), max_size=2).map(field("kind").is_in),
    st.booleans().map(lambda done: field("done") == done),
    st.floats(0, 1).map(lambda share: field("share").between(0.0, share)),
    st.just(field("year").exists()),
    st.sampled_from(["gmail", "x"]).map(lambda system: field("source.system") == system),
    st.builds(
        lambda pattern, ignore_case: field("kind").like(pattern, ignore_case=ignore_case),
        st.sampled_from(["*", "n*", "*A?L", "M*", "no?e", "", "*o*e*"]),
        st.booleans(),
    ),
    st.sampled_from(["", "g", "mail", "GM"]).map(lambda text: field("source.system").contains(text)),
    st.sampled_from(["file", "gm"]).map(lambda text: field("source.system").starts_with(text)),
    st.sampled_from(["S", "L"]).map(lambda text: field("source.system").ends_with(text, ignore_case=True)),
    st.lists(st.sampled_from(["a", "b", "z"]), max_size=2).map(lambda tags: field("tags").has_all(tags)),
)
filters = st.recursive(
    _conditions,
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
        st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
        parts.map(lambda part: ~part),
    ),
    max_leaves=4,
)

examples = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def open_target(target: Target, **overrides: object) -> sennit.Database:
    """Open a target for its owner, who may see everything."""
    named = {"privacy.open": True, **{key.replace("__", "."): value for key, value in overrides.items()}}
    return sennit.open(
        target if isinstance(target, str) else target(), settings=load_settings(overrides=named)
    )


def make_note(name: str, text: str, **values: Any) -> sennit.Record:
    """Return a record."""
    return sennit.Record(id=name, text=text, **values)


def _remove_and_keep_vectors(db: sennit.Database, names: Sequence[str]) -> None:
    """Remove records as an index run does."""
    with db.store.transaction() as transaction:
        transaction.write([], remove=names, keep_vectors=True)


def _ids(found: Iterable[sennit.Hit]) -> list[str]:
    return [hit.id for hit in found]


def replay(db: sennit.Database, writes: Writes) -> None:
    """Make the writes."""
    for write in writes:
        if isinstance(write, int):
            db.remove([f"r{write}"])
        else:
            db.add(write)


def _describe(result: SearchResult) -> Mapping[str, Any]:
    """A result without what depends on the clock and on the number of changes."""
    found = result.to_dict()
    trace: Any = found.pop("trace")
    found.pop("query_id")
    for part in (found, trace):
        part.pop("milliseconds")
    for part in (*trace["sources"], *trace["stages"]):
        part.pop("milliseconds")
    trace["state"].pop("change", None)
    return {**found, "trace": trace}


def _assert_same(ours: object, theirs: object, where: str = "result") -> None:
    """Compare nested values; numbers within the tolerance of docs/ranking-contract.md, section 8."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        assert ours.keys() == theirs.keys(), where
        for key in ours:
            _assert_same(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs), f"{where}: {ours} and {theirs}"
        for at, pair in enumerate(zip(ours, theirs, strict=True)):
            _assert_same(*pair, f"{where}[{at}]")
    elif isinstance(ours, float) and isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=TOLERANCE), where
    else:
        assert ours == theirs, where


class RecordsConformance:
    """Tests of one home of the records. A subclass defines the fixture `new_target`."""

    @pytest.fixture
    def new_target(self) -> NewTarget:
        pytest.fail(f"{type(self).__name__} must define the fixture new_target")

    # Writing.

    def test_a_write_is_visible_to_the_next_search_of_every_handle(self, new_target: NewTarget) -> None:
        target = new_target()
        with open_target(target) as writer, open_target(target) as reader:
            for number in range(5):
                writer.add([make_note(f"n{number}", f"lantern number{number}")])
                assert f"n{number}" in _ids(reader.search("lantern", recipe="keyword"))
                assert f"n{number}" in _ids(reader.search("lantern", recipe="vector"))

    def test_an_update_replaces_the_record_in_every_index(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note("a", "the river floods", kind="note"), make_note("b", "a quiet valley")])
            assert db.add([make_note("a", "bread rises", kind="mail")]).updated == 1
            assert _ids(db.search("river", recipe="keyword")) == []
            assert _ids(db.search("bread", recipe="keyword")) == ["a"]
            assert _ids(db.search("bread", filters='kind = "note"')) == []
            stored = db.get("a")
            assert stored is not None
            assert stored.text == "bread rises"

    def test_an_unchanged_record_is_not_written_again(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            record = make_note("a", "the river floods", metadata={"year": 2026})
            assert db.add([record]).added == 1
            assert db.add([record]).unchanged == 1

    def test_a_removed_record_is_found_by_no_source(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add(
                [
                    make_note("a", "glacier", title="Glacier"),
                    make_note("b", "glacier"),
                    make_note("c", "yeast"),
                ]
            )
            db.add_facts([sennit.Fact(subject="Ana", relation="likes", object="Glacier", id="f")])
            assert db.remove(["a", "f", "never"]) == 2
            for recipe in RECIPES:
                assert not {"a", "f"} & set(_ids(db.search("Ana likes the glacier", recipe=recipe)))
            assert db.get("a") is None
            assert len(db) == 2
            with pytest.raises(NotFound):
                db.why("glacier", "a")

    def test_a_batch_is_written_whole_or_not_at_all(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            caller = sennit.Caller(clearance="normal")
            with pytest.raises(SennitError):
                db.add([make_note("a", "one"), make_note("b", "two", sensitivity="private")], caller=caller)
            assert len(db) == 0

    def test_turns_are_numbered_without_gaps_by_concurrent_writers(self, new_target: NewTarget) -> None:
        target = new_target()
        errors: list[BaseException] = []

        def write(name: str) -> None:
            try:
                with open_target(target, embedding__provider="none") as db:
                    for number in range(20):
                        db.add_turns([sennit.Turn(session="s", speaker=name, text=f"{name} {number}")])
            except BaseException as error:  # noqa: BLE001 - the thread reports to the test
                errors.append(error)

        open_target(target, embedding__provider="none").close()
        threads = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        with open_target(target, embedding__provider="none") as db:
            assert sorted(record.position or 0 for record in db) == list(range(80))

    def test_vectors_that_come_with_records_are_found_by_that_of_the_query(
        self, new_target: NewTarget
    ) -> None:
        target = new_target()
        with open_target(target) as db:
            db.add(
                [
                    make_note("a", "oboe", vector=[1, 0, 0]),
                    make_note("b", "oboe", vector=[0, 1, 0]),
                    make_note("c", "x"),
                ]
            )
            assert db.add([make_note("a", "oboe")]).unchanged == 1
            assert db.add([make_note("a", "oboe", vector=[1, 0, 0.5])]).updated == 1
        with open_target(target) as db:
            assert _ids(db.search("", recipe="vector", vector=[0, 2, 0])) == ["b", "a"]
            db.remove(where='id = "b"')
            assert _ids(db.search("", recipe="vector", vector=[0, 2, 0])) == ["a"]

    # Vectors that no record uses.

    def test_a_kept_vector_serves_a_text_that_comes_back(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note("a", "oboe"), make_note("b", "oboe"), make_note("c", "yeast")])
            models = db.store.models
            _remove_and_keep_vectors(db, ["a"])
            assert models.unused().count == 0
            _remove_and_keep_vectors(db, ["b"])
            assert models.unused().count == 1
            assert models.unused().bytes > 0
            with db.store.transaction() as transaction:
                transaction.write([make_note("d", "oboe")])
            assert models.unused().count == 0
            with db.store.snapshot() as snapshot:
                assert snapshot.vectors(snapshot.keys(field("id") == "d")).any()

    def test_a_removal_on_request_leaves_no_vector_of_its_document(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            texts = {"a": ("oboe", "p"), "b": ("yeast", "p"), "c": ("clay", "q"), "d": ("river", "q")}
            db.add([make_note(name, text, parent=parent) for name, (text, parent) in texts.items()])
            models = db.store.models
            (model,) = models.current()
            _remove_and_keep_vectors(db, ["a", "c"])
            assert models.unused().count == 2
            db.remove(["b"])
            assert models.unused().count == 1, "the one under another parent"
            assert len(set(models.known_hashes(model.fingerprint))) == 2

    def test_unused_vectors_are_deleted_by_size_and_by_age(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note(name, f"{name} oboe") for name in "abcd"])
            models = db.store.models
            (model,) = models.current()
            _remove_and_keep_vectors(db, ["a", "b", "c"])
            size = models.unused().bytes
            assert models.delete_unused(0.0, keep_bytes=size) == 0
            assert models.delete_unused(0.0, keep_bytes=size - 1) == 1
            assert models.delete_unused(time.time() + 60, keep_bytes=size) == 2
            assert models.unused().count == 0
            assert len(set(models.known_hashes(model.fingerprint))) == 1, "that of the record that is left"

    # Reading.

    def test_records_survive_reopening(self, new_target: NewTarget) -> None:
        target = new_target()
        records = [make_note(f"n{n}", f"{WORDS[n]} lantern", metadata={"n": n}) for n in range(len(WORDS))]
        with open_target(target) as db:
            db.add(records)
            before = _describe(db.search("lantern", explain=True))
        with open_target(target) as db:
            assert sorted(db, key=lambda record: record.id) == records
            _assert_same(_describe(db.search("lantern", explain=True)), before)

    def test_iteration_is_a_consistent_snapshot_ordered_by_id(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note(name, "text") for name in ("b", "é", "a", "Z", "東", "10", "9")])
            rows = iter(db)
            first = next(rows)
            db.remove(["b"])
            db.add([make_note("c", "late")])
            names = [first.id, *(record.id for record in rows)]
            assert names == sorted(["b", "é", "a", "Z", "東", "10", "9"])

    @pytest.mark.parametrize("text", HOSTILE)
    def test_any_text_survives_in_every_field(self, new_target: NewTarget, text: str) -> None:
        with open_target(new_target()) as db:
            record = make_note(
                "a",
                f"{text} lantern",
                title=text[:100],
                kind=text[:50],
                metadata={"k": [text], "o": {"p": text}},
            )
            db.add([record])
            assert db.get("a") == record
            assert list(db) == [record]
            assert _ids(db.search("lantern", filters={"k": text})) == ["a"]
            assert _ids(db.search("lantern", filters={"kind": {"ne": text[:50]}})) == []

    def test_a_reader_that_lags_by_a_thousand_changes_catches_up(self, new_target: NewTarget) -> None:
        target = new_target()
        with open_target(target) as writer, open_target(target) as reader:
            writer.add([make_note("first", "lantern zero")])
            assert _ids(reader.search("lantern")) == ["first"]
            for start in range(0, LAG_RECORDS, 100):
                writer.add([make_note(f"n{n}", f"oboe number{n}") for n in range(start, start + 100)])
            writer.remove([f"n{n}" for n in range(0, LAG_RECORDS, 2)])
            found = reader.search("oboe", recipe="keyword", limit=LAG_RECORDS)
            assert sorted(_ids(found)) == sorted(f"n{n}" for n in range(1, LAG_RECORDS, 2))
            assert len(reader) == 1 + LAG_RECORDS // 2

    # The feed of changes and the state.

    @examples
    @given(writes=writes, size=st.integers(1, 7))
    def test_the_feed_in_parts_of_any_size_leads_to_the_records(
        self, new_target: NewTarget, writes: list[list[sennit.Record] | int], size: int
    ) -> None:
        with open_target(new_target(), embedding__provider="none") as db:
            copied: dict[int, sennit.Record] = {}
            after = 0
            for write in writes:
                replay(db, [write])
                with db.store.snapshot() as snapshot:
                    while after < snapshot.seq:
                        part = snapshot.changes(after, size)
                        numbers = [change.number for change in part.changes]
                        assert numbers == sorted(set(numbers))
                        assert all(after < number <= part.through for number in numbers)
                        put = [change.key for change in part.changes if change.action == "put"]
                        copied |= snapshot.records(put)
                        for change in part.changes:
                            if change.action == "delete":
                                copied.pop(change.key, None)
                        after = part.through
            assert sorted(copied.values(), key=lambda one: one.id) == list(db)

    def test_a_key_is_never_used_twice(self, new_target: NewTarget) -> None:
        with open_target(new_target(), embedding__provider="none") as db:
            seen = []
            for number in range(6):
                db.add([make_note("a", f"version {number}")])
                with db.store.snapshot() as snapshot:
                    seen.append(snapshot.find_key("a"))
                if number % 2:
                    db.remove(["a"])
            assert seen == sorted({key for key in seen if key is not None})
            assert len(seen) == 6

    def test_a_transaction_that_fails_leaves_records_and_state_as_they_were(
        self, new_target: NewTarget
    ) -> None:
        with open_target(new_target(), embedding__provider="none") as db:

            def fail() -> None:
                with db.store.transaction() as transaction:
                    transaction.write([make_note("a", "one")])
                    transaction.state.put([(b"key", b"value")])
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                fail()
            with db.store.state() as state:
                assert state.get(b"key") is None
            assert len(db) == 0

    @examples
    @given(
        names=st.lists(st.tuples(st.text(max_size=3), st.integers(0, 300)), unique=True, max_size=12),
        low=st.text(max_size=2),
    )
    def test_state_is_scanned_in_the_order_of_its_keys(
        self, new_target: NewTarget, names: list[tuple[str, int]], low: str
    ) -> None:
        with open_target(new_target(), embedding__provider="none") as db:
            with db.store.transaction() as transaction:
                transaction.state.put((encode_key("t", *name), repr(name).encode()) for name in names)
                transaction.state.put([(encode_key("u"), b"other")])
            with db.store.state() as state:
                found = state.scan(*key_range("t"))
                assert [value for _, value in found] == [repr(name).encode() for name in sorted(names)]
                assert state.scan(*key_range("t"), reverse=True, limit=2) == found[::-1][:2]
                one = state.scan(*key_range("t", low))
                assert [value for _, value in one] == [
                    repr(name).encode() for name in sorted(names) if name[0] == low
                ]

    # Filters.

    @examples
    @given(records=st.lists(_records, max_size=12), where=filters)
    def test_filters_keep_exactly_what_matches(
        self, new_target: NewTarget, records: list[sennit.Record], where: Filter
    ) -> None:
        latest = {record.id: record for record in records}
        with open_target(new_target(), embedding__provider="none") as db:
            db.add([*latest.values(), make_note("anchor", " ".join(WORDS), metadata=EVERY_FIELD)])
            for form in (where, str(where)):
                found = _ids(db.search(" ".join(WORDS), recipe="keyword", filters=form, limit=50))
                expected = {name for name, record in latest.items() if matches(where, record)}
                assert set(found) - {"anchor"} == expected

    def test_a_field_that_no_record_has_is_an_error_with_the_nearest_name(
        self, new_target: NewTarget
    ) -> None:
        with open_target(new_target()) as db:
            assert _ids(db.search("oboe", filters="auther = 'Ana'")) == []
            hidden = make_note("h", "oboe", metadata={"auther": "Ana"}, sensitivity="private")
            db.add([make_note("a", "oboe", metadata={"author": "Ana"}), hidden])
            assert _ids(db.search("oboe", filters="auther = 'Ana'")) == ["h"]
            caller = sennit.Caller(clearance="normal")
            with pytest.raises(
                FilterError, match=r"No record has the field 'auther'\. Did you mean 'author'"
            ):
                db.search("oboe", filters="auther = 'Ana'", caller=caller)
            assert _ids(db.search("oboe", filters="not exists auther", caller=caller)) == ["a"]
            db.remove(["a"])
            db.add([make_note("b", "oboe")])
            with pytest.raises(FilterError, match="No record has the field 'author'"):
                db.search("oboe", filters="author = 'Ana'", caller=caller)

    def test_a_filtered_search_fills_its_limit_when_excluded_records_would_outrank(
        self, new_target: NewTarget
    ) -> None:
        with open_target(new_target()) as db:
            better = [make_note(f"x{n}", "oboe oboe oboe", kind="hidden") for n in range(150)]
            kept = [
                make_note(f"k{n}", f"an oboe among other words, number{n}", kind="shown") for n in range(12)
            ]
            db.add([*better, *kept])
            for recipe in ("default", "rrf", "keyword", "vector"):
                found = db.search("oboe", recipe=recipe, filters=parse_filter('kind = "shown"'), limit=10)
                assert len(found) == 10
                assert all(hit.record.kind == "shown" for hit in found)

    # The oracle.

    @examples
    @given(writes=writes)
    def test_results_traces_and_reasons_equal_those_of_the_embedded_store(
        self, new_target: NewTarget, writes: list[list[sennit.Record] | int]
    ) -> None:
        with open_target(new_target()) as db, open_target(ORACLE) as oracle:
            for one in (db, oracle):
                replay(one, writes)
            assert list(db) == list(oracle)
            for recipe in RECIPES:
                for query in QUERIES:
                    ours, theirs = (
                        one.search(query, recipe=recipe, limit=5, explain=True) for one in (db, oracle)
                    )
                    _assert_same(_describe(ours), _describe(theirs))
            # The recipe `memory` depends on the clock, which moves between the two searches.
            ours, theirs = (one.search("river", recipe="memory", limit=5) for one in (db, oracle))
            assert _ids(ours) == _ids(theirs)
            assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], abs=TOLERANCE)
            for record in list(oracle)[:3]:
                ours_why, theirs_why = (one.why("river valley", record.id, limit=2) for one in (db, oracle))
                _assert_same(ours_why.to_dict(), theirs_why.to_dict())

    # Visibility.

    @examples
    @given(records=st.lists(_records, min_size=1, max_size=12))
    def test_hidden_records_leave_no_trace(self, new_target: NewTarget, records: list[sennit.Record]) -> None:
        latest = {record.id: record for record in records}
        visible = [record for record in latest.values() if record.sensitivity == "normal"]
        caller = sennit.Caller(clearance="normal")
        with open_target(new_target()) as db, open_target(ORACLE) as never_held_them:
            db.add(latest.values())
            never_held_them.add(visible)
            for query in QUERIES:
                ours, theirs = (
                    one.search(query, caller=caller, limit=5, explain=True) for one in (db, never_held_them)
                )
                _assert_same(_describe(ours), _describe(theirs))
            for record in latest.values():
                if record.sensitivity != "normal":
                    assert db.get(record.id, caller=caller) is None
                    with pytest.raises(NotFound):
                        db.why("river", record.id, caller=caller)

    def test_tenants_share_ids_and_nothing_else(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            for tenant in ("acme", "globex"):
                db.add([make_note("1", f"invoice of {tenant}", tenant=tenant)])
            for tenant in ("acme", "globex"):
                found = db.search("invoice", caller=sennit.Caller(tenant=tenant))
                assert [hit.text for hit in found] == [f"invoice of {tenant}"]
