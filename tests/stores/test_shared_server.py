"""Sources whose indexes share a server: one request for all of them, and one that fails does not take the others along."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sennit
from sennit.errors import SourceError
from sennit.stores.contract import (
    FILTER_OPERATORS,
    PartialKeys,
    ScoredKeys,
    ServerAnswer,
    ServerSearch,
    Steps,
)
from sennit.stores.search_steps import run_steps, together
from sennit.testing.naive import naive_backend

from .dict_server import DictServers
from .test_conformance import Machines, on_servers

NOTES = [sennit.Record(id=f"n{n}", text=f"the river rose by {n} metres") for n in range(30)]


class OneLegFails(DictServers):
    """Answers all searches but those of one index."""

    failing = "dict keyword"

    def search_many(self, searches: Sequence[ServerSearch]) -> list[ServerAnswer]:
        found = super().search_many(searches)
        return [
            SourceError("a shard failed") if one.index.name == self.failing else answer
            for one, answer in zip(searches, found, strict=True)
        ]


class SecondRoundHangs(DictServers):
    """Answers the first request, and no other before it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()

    def search_many(self, searches: Sequence[ServerSearch]) -> list[ServerAnswer]:
        if self.round_trips:
            self.release.wait(60)
        return super().search_many(searches)


def open_filled(servers: DictServers, **settings: Any) -> sennit.Database:
    machines = Machines(servers)
    machines.vector.capabilities = replace(machines.vector.capabilities, filters=FILTER_OPERATORS - {"like"})
    db = sennit.open(on_servers(naive_backend(), machines), **settings)
    db.add(NOTES)
    db.admin.flush()
    return db


def test_keyword_and_vector_search_are_one_request() -> None:
    servers = DictServers()
    with open_filled(servers) as db:
        result = db.search("river metres", limit=3)
        assert len(result) == 3
        assert servers.round_trips == [["dict keyword", "dict vector"]]


def test_a_search_of_two_periods_is_one_request_too() -> None:
    servers = DictServers()
    with open_filled(servers) as db:
        db.add([sennit.Record(id="m", text="the river rose", timestamp=datetime(2026, 3, 2, tzinfo=UTC))])
        db.admin.flush()
        db.search("what rose in March 2026", recipe="memory")
        assert servers.round_trips[0] == ["dict keyword", "dict keyword", "dict vector", "dict vector"]


def test_one_leg_that_fails_is_named_and_the_other_answers() -> None:
    with open_filled(OneLegFails()) as db:
        result = db.search("river", limit=3, explain=True)
        assert len(result) == 3
        assert [(one.source, one.reason) for one in result.degraded] == [("keyword", "a shard failed")]
        assert result.trace is not None
        assert result.trace.sources[0].error == "a shard failed"


def test_a_leg_that_has_its_answer_keeps_it_when_the_other_is_late() -> None:
    servers = SecondRoundHangs()
    with open_filled(servers, search__deadline=0.5) as db:
        # The keyword server knows no filters, so of its best many are hidden: it is asked again, and hangs.
        db.add([sennit.Record(id=f"h{n}", text="river", sensitivity="private") for n in range(300)])
        db.admin.flush()
        result = db.search("river", limit=2)
        servers.release.set()
    assert len(result) == 2
    assert [(one.source, one.reason) for one in result.degraded] == [("keyword", "no answer within 0.5 s")]


def test_steps_that_run_together_end_by_themselves() -> None:
    def count_down(rounds: int) -> Steps[int]:
        for _ in range(rounds):
            answers = yield []
            assert answers == []
        return rounds

    assert run_steps(together([count_down(n) for n in (0, 3, 1)])) == [0, 3, 1]


def test_a_server_that_answers_too_few_is_an_error() -> None:
    class Short(DictServers):
        def search_many(self, searches: Sequence[ServerSearch]) -> list[ServerAnswer]:
            return [ScoredKeys.empty()] * (len(searches) - 1)

    with open_filled(Short()) as db:
        assert {one.source for one in db.search("river").degraded} == {"keyword", "vector"}


def test_without_a_model_only_the_words_are_asked() -> None:
    servers = DictServers()
    with open_filled(servers, embedding__provider="none") as db:
        assert len(db.search("river", limit=3)) == 3
        assert servers.round_trips == [["dict keyword"]]


class OneShardIsGone(DictServers):
    """Answers with what the other shards have, and says so."""

    def search_many(self, searches: Sequence[ServerSearch]) -> list[ServerAnswer]:
        return [
            PartialKeys.of(answer, "1 of 3 shards did not answer")
            if isinstance(answer, ScoredKeys)
            else answer
            for answer in super().search_many(searches)
        ]


def test_a_partial_answer_is_used_and_reported() -> None:
    with open_filled(OneShardIsGone()) as db:
        result = db.search("river", limit=3)
        assert len(result) == 3
        assert [(one.source, one.reason) for one in result.degraded] == [
            ("keyword", "1 of 3 shards did not answer"),
            ("vector", "1 of 3 shards did not answer"),
        ]


def test_what_was_just_written_is_found_although_the_server_is_down() -> None:
    servers = DictServers()
    with open_filled(servers) as db, servers.outage():
        db.add([sennit.Record(id="late", text="the river froze")])
        result = db.search("river", limit=3)
        assert [hit.id for hit in result] == ["late"]
        assert {one.source for one in result.degraded} == {"keyword", "vector"}
        assert all("only what the server has not applied yet" in one.reason for one in result.degraded)


def test_names_lead_into_the_graph_although_the_server_of_the_texts_is_down() -> None:
    servers = DictServers()
    with open_filled(servers) as db:
        db.add_facts([sennit.Fact(subject="Rajesh", relation="knows", object="Priya")])
        db.admin.flush()
        assert not db.search("Who is Priya?", recipe="memory").degraded
        with servers.outage():
            result = db.search("Who is Priya?", recipe="memory")
    assert [hit.text for hit in result] == ["Rajesh -> Priya: knows"]
    assert {one.source for one in result.degraded} == {"keyword", "vector", "graph"}
    assert any("not searched by their text" in one.reason for one in result.degraded)


def test_ways_into_the_graph_by_text_are_one_request() -> None:
    servers = DictServers()
    with open_filled(servers) as db:
        db.add_facts([sennit.Fact(subject="Rajesh", relation="knows", object="Priya")])
        db.admin.flush()
        servers.round_trips.clear()
        db.search("Who is Priya?", recipe="memory")
        assert sorted(map(len, servers.round_trips)) == [2, 3]
