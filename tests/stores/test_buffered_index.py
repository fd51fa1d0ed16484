"""A server's index with a buffer: batches, retries, losses, over-fetching, and filters that it cannot express."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

import sennit
from sennit.analysis import query_terms, terms_in
from sennit.engine import Database
from sennit.errors import ChangesLost, SourceError
from sennit.filters import EVERYTHING, Filter, field, parse_filter
from sennit.records import Record
from sennit.settings import load_settings
from sennit.stores import buffered_index
from sennit.stores.buffered_index import (
    BufferedKeyword,
    BufferedVector,
    IndexFeeder,
    expressible,
    for_every_model,
)
from sennit.stores.contract import (
    BM25,
    Cancelled,
    Document,
    IndexOf,
    KeywordQuery,
    MatchedKeys,
    Model,
    RecordsRole,
    ScoredKeys,
    ServerAnswer,
)
from sennit.stores.embedded import store as embedded_store_module
from sennit.stores.lease import LEASE_SECONDS, Lease
from sennit.stores.open import open_backend
from sennit.testing.naive import naive_backend

from .dict_server import DictKeywordServer, DictServers, DictVectorServer
from .helpers import embedded_store, versioned_record
from .test_conformance import Machines, on_servers
from .unbound_index import check_that_an_unbound_index_is_forgotten

KIND, TAG = parse_filter('kind = "note"'), parse_filter('tags = "a"')
OTHER = field("year") > 2020


class Flaky(DictVectorServer):
    """Fails some requests, and counts them."""

    def __init__(self, servers: DictServers, failures: int) -> None:
        super().__init__(servers)
        self.failures = failures
        self.batches: list[int] = []

    def apply(self, documents: object, deleted: object, through: int) -> None:
        if self.failures:
            self.failures -= 1
            raise SourceError("busy")
        super().apply(documents, deleted, through)  # type: ignore[arg-type]
        self.batches.append(len(self.documents))


class Telling(DictKeywordServer):
    """Tells which terms of the query each record has."""

    def search(self, query: KeywordQuery, limit: int, where: Filter) -> ServerAnswer:
        found = super().search(query, limit, where)
        assert isinstance(found, ScoredKeys)
        texts = [self.documents[key].record.embedding_text for key in found.keys.tolist()]
        has = terms_in(texts, {term for term, _ in query.terms})
        matched = np.array([[term in one for term, _ in query.terms] for one in has], bool)
        return MatchedKeys.of(found, matched.reshape(len(texts), len(query.terms)))


def buffered(server: DictVectorServer) -> BufferedVector:
    return BufferedVector(role_of(server))


def role_of(server: DictVectorServer) -> IndexOf[NDArray[np.float32]]:
    return for_every_model(server, server.capabilities)


def applied(records: RecordsRole) -> int:
    with records.snapshot() as snapshot:
        return snapshot.applied(DictVectorServer.name)


def test_a_feeder_applies_batches_and_records_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered_index, "BATCH_CHANGES", 4)
    with sennit.open(":memory:") as db:
        server = Flaky(DictServers(), 0)
        feeder = IndexFeeder(db.store, role_of(server))
        db.add([versioned_record(f"r{n}", n) for n in range(10)])
        feeder.flush(at_least=1000)
        assert server.batches == []
        feeder.flush()
        assert server.batches == [4, 8, 10]
        with db.store.snapshot() as snapshot:
            assert snapshot.applied(server.name) == server.applied() == snapshot.seq
        feeder.flush()
        assert len(server.batches) == 3


def test_a_failed_batch_is_sent_again_and_the_number_waits_for_it() -> None:
    with sennit.open(":memory:") as db:
        db.add([versioned_record("a", 1)])
        server = Flaky(DictServers(), 2)
        with pytest.raises(SourceError):
            IndexFeeder(db.store, role_of(server), retry_seconds=(0.0,)).flush()
        assert applied(db.store) == 0
        server.failures = 2
        IndexFeeder(db.store, role_of(server), retry_seconds=(0.0, 0.0)).flush()
        assert applied(db.store) == server.applied() > 0


def test_one_process_at_a_time_feeds_an_index() -> None:
    with sennit.open(":memory:") as db:
        db.add([versioned_record("a", 1)])
        server = Flaky(DictServers(), 0)
        other = Lease(db.store, f"feed {server.name}")
        assert other.take()
        feeder = IndexFeeder(db.store, role_of(server))
        feeder.flush()
        assert server.documents == {}
        other.release()
        feeder.flush()
        assert len(server.documents) == 1
        assert other.take()


def test_a_lease_of_a_process_that_died_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    with sennit.open(":memory:") as db:
        dead, other = Lease(db.store, "x"), Lease(db.store, "x")
        assert dead.take()
        assert dead.take()
        assert not other.take()
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + LEASE_SECONDS + 1)
        assert other.take()
        # What the first does later takes nothing from the second.
        dead.release()
        assert not Lease(db.store, "x").take()
        monkeypatch.setattr(time, "time", lambda: now - 1000)
        assert Lease(db.store, "x").take()


def test_a_server_that_is_down_holds_up_nothing_else_and_is_fed_when_it_is_back() -> None:
    servers, healthy = DictServers(), DictServers()
    machines = Machines(servers)
    machines.vector = DictVectorServer(healthy)
    backend = on_servers(naive_backend(), machines)
    with Database(backend, load_settings(), background=False) as db:
        with servers.outage():
            db.add([versioned_record("a", 1)])
            with pytest.raises(SourceError):
                db.admin.flush()
            assert len(machines.vector.documents) == 1
        db.admin.flush()
        assert len(machines.keyword.documents) == 1


def test_a_feeder_that_is_cancelled_sends_nothing() -> None:
    with sennit.open(":memory:") as db:
        db.add([versioned_record("a", 1)])
        server = Flaky(DictServers(), 0)
        feeder = IndexFeeder(db.store, role_of(server))
        feeder.cancel()
        with pytest.raises(Cancelled):
            feeder.flush()
        assert server.documents == {}


def test_a_batch_may_be_applied_twice() -> None:
    with sennit.open(":memory:") as db:
        server = DictVectorServer(DictServers())
        db.add([versioned_record("a", 1), versioned_record("b", 2)])
        feeder = IndexFeeder(db.store, role_of(server))
        feeder.flush()
        db.remove(["a"])
        before = applied(db.store)
        feeder.flush()
        db.store.set_applied(server.name, before)
        feeder.flush()
        assert [one.record.id for one in server.documents.values()] == ["b"]


def test_what_a_server_has_lost_is_applied_again() -> None:
    with sennit.open(":memory:") as db:
        server = DictVectorServer(DictServers())
        feeder, index = IndexFeeder(db.store, role_of(server)), buffered(server)
        db.add([versioned_record(f"r{n}", n) for n in range(5)])
        feeder.flush()
        server.reset()
        feeder.rest()
        assert len(server.documents) == 5
        with db.store.snapshot() as snapshot:
            query = db.embeddings.embed_query(snapshot.model, "river")
            assert len(index.search(snapshot, query, 10).keys) == 5


def test_deletes_stay_in_the_feed_until_every_index_has_applied_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded_store_module, "MIN_TOMBSTONES_TO_PURGE", 1)
    with sennit.open(":memory:") as db:
        server = DictVectorServer(DictServers())
        feeder = IndexFeeder(db.store, role_of(server))
        db.add([versioned_record(f"r{n}", n) for n in range(4)])
        feeder.flush()
        db.remove(["r0"])
        db.admin.optimise()
        embedded_store(db).purge()
        feeder.flush()
        assert len(server.documents) == 3
        db.admin.optimise()
        embedded_store(db).purge()
        with db.store.snapshot() as snapshot, pytest.raises(ChangesLost):
            snapshot.changes(1, 10)


def test_an_index_that_missed_purged_deletes_is_built_again() -> None:
    with sennit.open(":memory:") as db:
        server = DictVectorServer(DictServers())
        feeder = IndexFeeder(db.store, role_of(server))
        db.add([versioned_record(f"r{n}", n) for n in range(4)])
        feeder.flush()
        db.remove(["r0"])
        feeder.flush()
        db.admin.optimise()
        assert embedded_store(db).purge_tombstones(1)
        # As if an older copy of the server's data had been restored.
        server.apply([_document(1, "ghost")], [], 1)
        feeder.rest()
        assert sorted(one.record.id for one in server.documents.values()) == ["r1", "r2", "r3"]


def test_an_index_that_nobody_has_bound_for_a_week_holds_no_deletes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Database(open_backend(":memory:"), load_settings(), background=False) as db:
        check_that_an_unbound_index_is_forgotten(db, monkeypatch)


def _document(key: int, name: str) -> Document:
    return Document(key, Record(id=name, text="ghost"), np.zeros(256, np.float32))


def test_a_server_is_asked_again_until_the_limit_is_full() -> None:
    with sennit.open(":memory:") as db:
        server = DictVectorServer(DictServers())
        index = buffered(server)
        db.add([Record(id=f"x{n}", text="river", metadata={"year": 2000}) for n in range(300)])
        db.add([Record(id=f"k{n}", text=f"river valley {n}", metadata={"year": 2026}) for n in range(9)])
        IndexFeeder(db.store, role_of(server)).flush()
        with db.store.snapshot() as snapshot:
            query = db.embeddings.embed_query(snapshot.model, "river")
            found = index.search(snapshot, query, 5, OTHER)
        assert len(found.keys) == 5
        limits = [limit for limit, _ in server.requests]
        assert limits == sorted(limits)
        assert len(limits) > 1
        assert all(where == EVERYTHING for _, where in server.requests)


def test_the_audience_is_part_of_what_the_server_is_asked() -> None:
    with sennit.open(":memory:") as db:
        server = DictVectorServer(DictServers())
        db.add([versioned_record("a", 1), versioned_record("b", 2, scope="me")])
        IndexFeeder(db.store, role_of(server)).flush()
        audience = parse_filter('scope = "public"')
        with db.store.snapshot(audience) as snapshot:
            query = db.embeddings.embed_query(snapshot.model, "river")
            buffered(server).search(snapshot, query, 5, KIND)
        assert server.requests[-1][1] == audience & KIND


def test_an_index_that_is_being_filled_says_how_far_behind_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffered_index, "MAX_BUFFERED_CHANGES", 3)
    with sennit.open(":memory:") as db:
        db.add([versioned_record(f"r{n}", n) for n in range(5)])
        with db.store.snapshot() as snapshot:
            query = db.embeddings.embed_query(snapshot.model, "river")
            with pytest.raises(SourceError, match="changes behind"):
                buffered(DictVectorServer(DictServers())).search(snapshot, query, 5)


def test_after_a_change_of_model_another_index_is_filled_from_the_beginning() -> None:
    servers: dict[int, DictVectorServer] = {}

    def index_of(model: Model | None) -> DictVectorServer | None:
        if model is None:
            return None
        made = servers.setdefault(model.number, DictVectorServer(DictServers()))
        made.name = f"vectors of model {model.number}"
        return made

    with sennit.open(":memory:") as db:
        role = IndexOf(DictServers(), DictVectorServer.capabilities, index_of)
        feeder, index = IndexFeeder(db.store, role), BufferedVector(role)
        feeder.flush()
        assert servers == {}
        db.add([versioned_record(f"r{n}", n) for n in range(3)])
        feeder.flush()
        old = db.store.models.current()[0]
        new = db.store.models.register("other", "other/model", old.spec, 8)
        texts = db.store.models.pending_texts(new.number, 10)
        vectors = {digest: np.eye(8, dtype=np.float16)[at].tobytes() for at, (digest, _) in enumerate(texts)}
        db.store.models.add_late_vectors(new.number, vectors)
        # The database's own thread may have activated it already.
        db.store.models.activate_if_complete(new.number)
        assert db.store.models.current()[0].number == new.number
        for _ in range(2):
            with db.store.snapshot() as snapshot:
                found = index.search(snapshot, np.eye(8, dtype=np.float32)[0], 10)
                assert found.scores.tolist() == [1.0, 0.0, 0.0]
            feeder.flush()
        assert [len(server.documents) for server in servers.values()] == [3, 3]


@pytest.mark.parametrize(
    ("where", "operators", "expected"),
    [
        (KIND, {"equal"}, KIND),
        (KIND & TAG, {"equal"}, KIND),
        (KIND & OTHER & TAG, {"equal", "and"}, KIND & TAG),
        (KIND & OTHER, {"equal", "and", "range"}, KIND & OTHER),
        (KIND | OTHER, {"equal", "and", "or"}, EVERYTHING),
        (~KIND, {"equal"}, EVERYTHING),
        (~KIND, {"equal", "not"}, ~KIND),
        (EVERYTHING, set(), EVERYTHING),
        (OTHER, {"equal"}, EVERYTHING),
    ],
)
def test_a_server_gets_the_part_of_a_filter_that_it_can_express(
    where: Filter, operators: set[str], expected: Filter
) -> None:
    assert expressible(where, frozenset(operators)) == expected


def test_the_coverage_of_what_a_server_found_is_known_where_it_tells_the_terms() -> None:
    with sennit.open(":memory:") as db:
        db.add(
            [
                Record(id="a", title="oboe", text="yeast"),
                Record(id="b", text="yeast"),
                Record(id="c", text="clay"),
            ]
        )
        db.add([Record(id="d", text="oboe", sensitivity="private")])
        server = Telling(DictServers())
        role = for_every_model(server, server.capabilities)
        IndexFeeder(db.store, role).flush()
        index = BufferedKeyword(role)
        query = KeywordQuery([(term.hash, 1.0) for term in query_terms("oboe yeast")], BM25())
        lighter = query._replace(terms=[(term, 0.5) for term, _ in query.terms])
        public = parse_filter('sensitivity != "private"')
        for audience, expected in (
            (EVERYTHING, [1.0, 0.5, np.nan, 0.5]),
            (public, [1.0, 0.5, np.nan, np.nan]),
        ):
            with db.store.snapshot(audience) as snapshot, db.store.snapshot(audience) as other:
                keys = np.array([change.key for change in snapshot.changes(0, 10).changes], np.int64)
                assert np.isnan(index.coverage(snapshot, query, keys)).all()
                index.search(snapshot, query, 10)
                for asked in (query, lighter):
                    np.testing.assert_array_equal(index.coverage(snapshot, asked, keys), expected)
                assert np.isnan(index.coverage(other, query, keys)).all()
