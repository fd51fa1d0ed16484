"""Conformance of the index roles: what `keyword`, `vector` and `graph` promise for the snapshot they are asked with.

The oracle scans the records of the same snapshot (`sennit.testing.naive`), so keys can be compared, not only ids.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sennit
from sennit.analysis import query_terms
from sennit.errors import SennitError
from sennit.filters import EVERYTHING, Filter, field, parse_filter
from sennit.graph.names import name_hash
from sennit.stores.contract import (
    BM25,
    Capabilities,
    GraphRole,
    Keys,
    KeywordQuery,
    KeywordRole,
    ScoredKeys,
    Snapshot,
    VectorRole,
)
from sennit.stores.scanned_graph import ScannedGraph
from sennit.testing.naive import NaiveKeyword, NaiveVector
from sennit.testing.records import (
    LAG_RECORDS,
    TOLERANCE,
    WORDS,
    NewTarget,
    Writes,
    examples,
    filters,
    make_note,
    open_target,
    replay,
    writes,
)

Outage: TypeAlias = Callable[[], AbstractContextManager[None]]
"""A block in which the server of an index does not answer."""

PUBLIC: Final = parse_filter('sensitivity = "normal"')
SHOWN: Final = parse_filter('kind = "shown"')
MANY: Final = 10_000
PEOPLE: Final = ("Ana", "Ben", "Chloé", "李")

_queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


def _names(snapshot: Snapshot, keys: Keys) -> list[str]:
    return [name.decode() for name in snapshot.ids(keys)]


class _IndexConformance:
    """What keyword and vector index have in common. A subclass defines the fixture `new_target`."""

    many: int = MANY
    """A limit that no search of the kit fills."""

    @pytest.fixture
    def new_target(self) -> NewTarget:
        pytest.fail(f"{type(self).__name__} must define the fixture new_target")

    @pytest.fixture
    def outage(self) -> Outage | None:
        """Override it for an index on a server: return a block in which the server is down."""
        return None

    def index(self, db: sennit.Database) -> Any:
        raise NotImplementedError

    def oracle(self) -> Any:
        raise NotImplementedError

    def query(self, db: sennit.Database, snapshot: Snapshot, text: str) -> Any:
        raise NotImplementedError

    def _search(
        self, db: sennit.Database, snapshot: Snapshot, text: str, limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        found: ScoredKeys = self.index(db).search(snapshot, self.query(db, snapshot, text), limit, where)
        return found

    # Against the oracle.

    @examples
    @given(
        writes=writes, text=_queries, where=filters, limit=st.sampled_from([1, 3, 50]), upkeep=st.booleans()
    )
    def test_a_search_equals_a_scan_of_the_snapshot(
        self, new_target: NewTarget, writes: Writes, text: str, where: Filter, limit: int, upkeep: bool
    ) -> None:
        with open_target(new_target()) as db:
            # One half of the writes is applied to the index; it is behind by the other until there is upkeep again.
            half = len(writes) // 2
            replay(db, writes[:half])
            db.embeddings.ensure_model()
            _maintain(db)
            replay(db, writes[half:])
            _maintain(db, when=upkeep)
            capabilities: Capabilities = self.index(db).capabilities
            for audience in (EVERYTHING, PUBLIC):
                with db.store.snapshot(audience) as snapshot:
                    if snapshot.model is None:
                        continue
                    for condition in (EVERYTHING, where):
                        query = self.query(db, snapshot, text)
                        ours = self.index(db).search(snapshot, query, limit, condition)
                        theirs = self.oracle().search(snapshot, query, self.many, condition)
                        _assert_conforms(snapshot, ours, theirs, limit, capabilities)

    def test_scores_of_given_keys_are_those_of_the_search(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note(f"n{n}", f"{WORDS[n % 5]} {WORDS[n % 3]} number{n}") for n in range(20)])
            with db.store.snapshot() as snapshot:
                query = self.query(db, snapshot, "river bread")
                found = self.index(db).search(snapshot, query, 20)
                assert len(found.keys)
                assert np.isfinite(found.scores).all()
                shuffled = found.keys[::-1].copy()
                scores = self.index(db).scores(snapshot, query, shuffled)
                assert scores == pytest.approx(found.scores[::-1], abs=TOLERANCE)

    # Order.

    def test_equal_scores_are_ordered_by_id(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            names = ["b", "é", "a", "Z", "東", "10", "9"]
            for name in names:
                db.add([make_note(name, "oboe")])
            with db.store.snapshot() as snapshot:
                found = self._search(db, snapshot, "oboe", self.many)
                assert _names(snapshot, found.keys) == sorted(names)
                cut = self._search(db, snapshot, "oboe", 3)
                assert _names(snapshot, cut.keys) == sorted(names)[:3]

    def test_the_best_come_first(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add(
                [make_note("worse", "oboe among many other quite different words"), make_note("best", "oboe")]
            )
            with db.store.snapshot() as snapshot:
                found = self._search(db, snapshot, "oboe", self.many)
                assert _names(snapshot, found.keys) == ["best", "worse"]
                assert found.scores[0] > found.scores[1]

    # Filters and visibility.

    def test_a_filtered_search_fills_its_limit_when_excluded_records_would_outrank(
        self, new_target: NewTarget
    ) -> None:
        with open_target(new_target()) as db:
            better = [make_note(f"x{n}", "oboe oboe oboe", kind="hidden") for n in range(150)]
            kept = [
                make_note(f"k{n}", f"an oboe among other words, number{n}", kind="shown") for n in range(12)
            ]
            db.add([*better, *kept])
            for where in (SHOWN, ~(field("kind") == "hidden"), SHOWN & field("kind").exists()):
                for upkeep in (False, True):
                    _maintain(db, when=upkeep)
                    with db.store.snapshot() as snapshot:
                        found = self._search(db, snapshot, "oboe", 10, where)
                        assert len(found.keys) == 10
                        assert all(name.startswith("k") for name in _names(snapshot, found.keys))

    def test_no_hidden_record_returns_though_it_would_outrank(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            hidden = [make_note(f"x{n}", "oboe oboe", sensitivity="private") for n in range(60)]
            db.add([*hidden, *(make_note(f"k{n}", f"an oboe, number{n}") for n in range(5))])
            for upkeep in (False, True):
                _maintain(db, when=upkeep)
                with db.store.snapshot(PUBLIC) as snapshot:
                    found = self._search(db, snapshot, "oboe", 10)
                    assert sorted(_names(snapshot, found.keys)) == [f"k{n}" for n in range(5)]

    def test_hidden_records_have_no_influence_on_scores(self, new_target: NewTarget) -> None:
        visible = [make_note(f"k{n}", f"an oboe and {WORDS[n]}, number{n}") for n in range(6)]
        hidden = [make_note(f"x{n}", "oboe", sensitivity="private") for n in range(30)]
        with open_target(new_target()) as db, open_target(new_target()) as never_held_them:
            capabilities: Capabilities = self.index(db).capabilities
            if capabilities.statistics in ("whole", "shard"):
                pytest.skip(f"capability: statistics are {capabilities.statistics!r}, not 'audience'")
            db.add([*visible, *hidden])
            never_held_them.add(visible)
            scores = []
            for one in (db, never_held_them):
                with one.store.snapshot(PUBLIC) as snapshot:
                    found = self._search(one, snapshot, "oboe river", self.many)
                    scores.append(dict(zip(_names(snapshot, found.keys), found.scores.tolist(), strict=True)))
            assert scores[0] == pytest.approx(scores[1], abs=TOLERANCE)

    # Changes.

    def test_a_snapshot_sees_neither_later_writes_nor_loses_what_they_remove(
        self, new_target: NewTarget
    ) -> None:
        with open_target(new_target()) as db:
            db.add([make_note("a", "oboe one"), make_note("b", "oboe two")])
            with db.store.snapshot() as before:
                first = _names(before, self._search(db, before, "oboe", self.many).keys)
                writer = threading.Thread(target=_change, args=(db,))
                writer.start()
                writer.join()
                assert _names(before, self._search(db, before, "oboe", self.many).keys) == first
            with db.store.snapshot() as after:
                assert sorted(_names(after, self._search(db, after, "oboe", self.many).keys)) == ["b", "c"]

    def test_a_replaced_or_deleted_record_never_returns(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note(f"n{n}", f"oboe number{n}") for n in range(10)])
            _maintain(db)
            db.remove(["n0", "n1"])
            db.add([make_note("n2", "oboe again"), make_note("n3", "oboe and again")])
            for upkeep in (False, True):
                _maintain(db, when=upkeep)
                with db.store.snapshot() as snapshot:
                    found = self._search(db, snapshot, "oboe", self.many)
                    assert snapshot.exists(found.keys).all()
                    assert sorted(_names(snapshot, found.keys)) == [f"n{n}" for n in range(2, 10)]

    def test_an_index_that_is_a_thousand_changes_behind_misses_none(self, new_target: NewTarget) -> None:
        with open_target(new_target(), store__flush_at=100_000) as db:
            db.add([make_note("first", "oboe zero")])
            _maintain(db)
            for start in range(0, LAG_RECORDS, 200):
                db.add([make_note(f"n{n}", f"oboe number{n}") for n in range(start, start + 200)])
            db.remove([f"n{n}" for n in range(0, LAG_RECORDS, 2)])
            expected = sorted(["first", *(f"n{n}" for n in range(1, LAG_RECORDS, 2))])
            for upkeep in (False, True):
                _maintain(db, when=upkeep)
                with db.store.snapshot() as snapshot:
                    assert self.index(db).applied(snapshot) <= snapshot.seq
                    found = self._search(db, snapshot, "oboe", self.many)
                    assert sorted(_names(snapshot, found.keys)) == expected

    def test_upkeep_leaves_nothing_to_the_buffer(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note(f"n{n}", f"oboe number{n}") for n in range(10)])
            _maintain(db)
            db.remove(["n0"])
            db.add([make_note("n1", "oboe again"), make_note("n10", "another oboe")])
            _maintain(db)
            with db.store.snapshot() as snapshot:
                assert self.index(db).applied(snapshot) == snapshot.seq
                found = self._search(db, snapshot, "oboe", self.many)
                assert sorted(_names(snapshot, found.keys)) == sorted(f"n{n}" for n in range(1, 11))

    def test_upkeep_changes_no_answer(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            db.add([make_note(f"n{n}", f"{WORDS[n % 7]} {WORDS[n % 4]} number{n}") for n in range(60)])
            answers = []
            for upkeep in (False, True):
                _maintain(db, when=upkeep)
                with db.store.snapshot() as snapshot:
                    found = self._search(db, snapshot, "river oboe", 10)
                    answers.append((_names(snapshot, found.keys), found.scores))
            capabilities: Capabilities = self.index(db).capabilities
            if capabilities.statistics in ("whole", "shard"):
                pytest.skip(
                    "capability: statistics are those of the server, which has not applied the buffer"
                )
            assert answers[0][0] == answers[1][0]
            assert answers[0][1] == pytest.approx(answers[1][1], abs=TOLERANCE)

    def test_every_confirmed_write_of_concurrent_writers_is_found(self, new_target: NewTarget) -> None:
        with open_target(new_target()) as db:
            errors: list[BaseException] = []

            def write(name: str) -> None:
                try:
                    for number in range(10):
                        db.add([make_note(f"{name}{number}", f"oboe {name} number{number}")])
                        with db.store.snapshot() as snapshot:
                            found = self._search(db, snapshot, "oboe", self.many)
                            assert f"{name}{number}" in _names(snapshot, found.keys)
                except BaseException as error:  # noqa: BLE001 - the thread reports to the test
                    errors.append(error)

            threads = [threading.Thread(target=write, args=(f"w{n}x",)) for n in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert errors == []

    def test_a_server_that_dies_and_returns_misses_nothing(
        self, new_target: NewTarget, outage: Outage | None
    ) -> None:
        with open_target(new_target()) as db:
            if not self.index(db).capabilities.waits:
                pytest.skip("capability: waits is False, so there is no server to lose")
            assert outage is not None, f"{type(self).__name__} must define the fixture outage"
            db.add([make_note("before", "oboe before")])
            _maintain(db)
            with outage():
                # The source of truth takes the write; the search says what is missing.
                db.add([make_note("during", "oboe during")])
                found = db.search("oboe")
                assert found.degraded
                with pytest.raises(SennitError):
                    _maintain(db)
            for upkeep in (False, True):
                _maintain(db, when=upkeep)
                result = db.search("oboe")
                assert not result.degraded
                assert {hit.id for hit in result} == {"before", "during"}


class KeywordConformance(_IndexConformance):
    """Tests of a keyword index."""

    def index(self, db: sennit.Database) -> KeywordRole:
        return db.backend.keyword

    def oracle(self) -> KeywordRole:
        return NaiveKeyword()

    def query(self, db: sennit.Database, snapshot: Snapshot, text: str) -> KeywordQuery:  # noqa: ARG002
        return KeywordQuery([(term.hash, float(term.count)) for term in query_terms(text)], BM25(), text)

    def test_a_record_without_the_terms_scores_0(self, new_target: NewTarget) -> None:
        with open_target(new_target(), embedding__provider="none") as db:
            db.add([make_note("with", "oboe"), make_note("without", "yeast")])
            with db.store.snapshot() as snapshot:
                keys = np.array([snapshot.find_key(name) for name in ("with", "without")], np.int64)
                scores = self.index(db).scores(snapshot, self.query(db, snapshot, "oboe"), keys)
                assert scores[0] > 0
                assert scores[1] == 0

    def test_the_coverage_of_a_query_is_that_of_the_formula(self, new_target: NewTarget) -> None:
        with open_target(new_target(), embedding__provider="none") as db:
            if self.index(db).capabilities.scores == "own":
                pytest.skip("capability: scores are 'own', without document frequencies of our terms")
            db.add([make_note("a", "oboe and yeast"), make_note("b", "yeast"), make_note("c", "clay")])
            db.add([make_note("d", "oboe", sensitivity="private")])
            for audience, oboes, records in ((EVERYTHING, 2, 4), (PUBLIC, 1, 3)):
                with db.store.snapshot(audience) as snapshot:
                    keys = np.array([snapshot.find_key(name) for name in "abc"], np.int64)
                    idf = [math.log(1 + (records - n + 0.5) / (n + 0.5)) for n in (oboes, 2, 0)]
                    covered = self.index(db).coverage(
                        snapshot, self.query(db, snapshot, "oboe yeast kiln"), keys
                    )
                    expected = [(idf[0] + idf[1]) / sum(idf), idf[1] / sum(idf), 0.0]
                    assert np.isnan(covered).all() or covered == pytest.approx(expected), "or cannot tell"

    def test_the_share_of_records_with_a_term_counts_visible_ones(self, new_target: NewTarget) -> None:
        with open_target(new_target(), embedding__provider="none") as db:
            if self.index(db).capabilities.scores == "own":
                pytest.skip("capability: scores are 'own', without document frequencies of our terms")
            db.add([make_note("a", "oboe"), make_note("b", "yeast")])
            db.add([make_note("c", "oboe", sensitivity="private")])
            (term,) = query_terms("oboe")
            for audience, share in ((EVERYTHING, 2 / 3), (PUBLIC, 1 / 2)):
                with db.store.snapshot(audience) as snapshot:
                    assert self.index(db).document_share(snapshot, term.hash) == pytest.approx(share)


class VectorConformance(_IndexConformance):
    """Tests of a vector index."""

    def index(self, db: sennit.Database) -> VectorRole:
        return db.backend.vector

    def oracle(self) -> VectorRole:
        return NaiveVector()

    def query(self, db: sennit.Database, snapshot: Snapshot, text: str) -> NDArray[np.float32]:
        return db.embeddings.embed_query(snapshot.model, text)

    def test_a_record_without_a_vector_has_no_score(self, new_target: NewTarget) -> None:
        target = new_target()
        with open_target(target) as db:
            db.add([make_note("with", "oboe")])
        with open_target(target, embedding__provider="none") as other:
            other.add([make_note("without", "oboe of another process")])
        with open_target(target) as db, db.store.snapshot() as snapshot:
            keys = np.array([snapshot.find_key(name) for name in ("with", "without")], np.int64)
            scores = self.index(db).scores(snapshot, self.query(db, snapshot, "oboe"), keys)
            vectors = snapshot.vectors(keys)
            assert scores[0] == pytest.approx(1, abs=1e-2)
            assert np.isnan(scores[1]) == (not vectors[1].any())

    def test_a_vector_that_comes_late_is_found(self, new_target: NewTarget) -> None:
        target = new_target()
        with open_target(target) as db:
            db.add([make_note("first", "yeast")])
            _maintain(db)
        with open_target(target, embedding__provider="none") as other:
            other.add([make_note("late", "oboe")])
        with open_target(target) as db:
            _maintain(db)
            db.admin.embed_pending()
            for upkeep in (False, True):
                _maintain(db, when=upkeep)
                with db.store.snapshot() as snapshot:
                    found = self._search(db, snapshot, "oboe", 1)
                    assert _names(snapshot, found.keys) == ["late"]


class GraphConformance:
    """Tests of a graph index. A subclass defines the fixture `new_target`."""

    @pytest.fixture
    def new_target(self) -> NewTarget:
        pytest.fail(f"{type(self).__name__} must define the fixture new_target")

    def index(self, db: sennit.Database) -> GraphRole:
        return db.backend.graph

    @examples
    @given(
        facts=st.lists(
            st.tuples(
                st.sampled_from(PEOPLE),
                st.sampled_from(PEOPLE),
                st.sampled_from([0.2, 0.5, 1.0]),
                st.integers(-5, 5),
                st.sampled_from(["normal", "private"]),
            ),
            max_size=10,
        )
    )
    def test_names_and_facts_equal_those_of_a_scan(
        self, new_target: NewTarget, facts: list[tuple[str, str, float, int, str]]
    ) -> None:
        now = datetime(2026, 1, 5, tzinfo=UTC)
        names = [hash_ for person in PEOPLE if (hash_ := name_hash(person)) is not None]
        hashes = np.array(names, np.int64)
        with open_target(new_target(), embedding__provider="none") as db:
            db.add([sennit.Entity(name="Ana", aliases=("Anna",), id="ana").to_record()])
            for number, (subject, object_, weight, days, level) in enumerate(facts):
                db.add_facts(
                    [
                        sennit.Fact(
                            subject=subject,
                            relation="knows",
                            object=object_,
                            weight=weight,
                            timestamp=now + timedelta(days=days),
                            sensitivity=level,
                            id=f"f{number}",
                        )
                    ],
                    same_relation=number % 3 == 0,
                )
            db.remove(["f1"])
            for upkeep, audience in product((False, True), (EVERYTHING, PUBLIC)):
                _maintain(db, when=upkeep)
                with db.store.snapshot(audience) as snapshot:
                    ours, theirs = self.index(db).view(snapshot), ScannedGraph().view(snapshot)
                    assert ours.has_names
                    assert ours.has_facts >= theirs.has_facts
                    for history in (False, True):
                        found, expected = (
                            view.edges(names, 3, now, EVERYTHING, history=history) for view in (ours, theirs)
                        )
                        assert found == expected
                    named, expected_named = (
                        view.entities_named(hashes.view(np.uint64)) for view in (ours, theirs)
                    )
                    pairs = sorted(zip(named.which.tolist(), named.rows.tolist(), strict=True))
                    assert pairs == list(
                        zip(expected_named.which.tolist(), expected_named.rows.tolist(), strict=True)
                    )
                    assert ours.synonyms(hashes, EVERYTHING) == theirs.synonyms(hashes, EVERYTHING)
                    assert (ours.known_endpoints(hashes) >= theirs.known_endpoints(hashes)).all()
                    labels, expected_labels = (
                        {row: text.label for row, text in view.labelled_texts(named.rows.tolist()).items()}
                        for view in (ours, theirs)
                    )
                    assert labels == expected_labels

    def test_a_removed_or_ended_fact_is_not_followed(self, new_target: NewTarget) -> None:
        with open_target(new_target(), embedding__provider="none") as db:
            for name, object_, supersedes in (
                ("old", "Pune", ()),
                ("x", "Goa", ()),
                ("new", "Kochi", ("old",)),
            ):
                fact = sennit.Fact(
                    subject="Ana", relation="lives in", object=object_, id=name, supersedes=supersedes
                )
                db.add_facts([fact])
            db.remove(["x"])
            ana = name_hash("Ana")
            assert ana is not None
            with db.store.snapshot() as snapshot:
                view = self.index(db).view(snapshot)
                (edges,) = view.edges([ana], 10, datetime.now(UTC), EVERYTHING)
                keys = np.array([edge.row for edge in edges], np.int64)
                assert _names(snapshot, keys) == ["new"]


def _assert_conforms(
    snapshot: Snapshot, ours: ScoredKeys, theirs: ScoredKeys, limit: int, capabilities: Capabilities
) -> None:
    """Compare an answer with all records that match, which the oracle found."""
    names = snapshot.ids(ours.keys)
    assert len(set(names)) == len(names) == min(limit, len(theirs.keys))
    assert b"" not in names
    expected = dict(zip(theirs.keys.tolist(), theirs.scores.tolist(), strict=True))
    assert set(ours.keys.tolist()) <= expected.keys()
    ranked = sorted(zip((-ours.scores).tolist(), names, strict=True))
    assert [name for _, name in ranked] == names, "best first, and equal scores by id"
    is_whole = snapshot.audience == EVERYTHING or capabilities.statistics in ("audience", "none")
    if capabilities.scores == "contract" and is_whole:
        assert ours.scores == pytest.approx(theirs.scores[:limit], abs=TOLERANCE)
        assert ours.scores == pytest.approx([expected[key] for key in ours.keys.tolist()], abs=TOLERANCE)


def _maintain(db: sennit.Database, *, when: bool = True) -> None:
    """Let every index apply all changes."""
    if when:
        db.admin.flush()


def _change(db: sennit.Database) -> None:
    db.add([make_note("c", "oboe three")])
    db.remove(["a"])
