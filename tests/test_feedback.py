"""Feedback: what is recorded about a search and about what was done with its results, and who sees it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import OWNER, Caller, Database, Feedback, Record
from sennit.engine import search_recorder
from sennit.errors import AccessDenied, InvalidInput, NotFound
from sennit.feedback import ACTIONS, FeedbackEvent, LoggedQuery, ShownHit
from sennit.ranking.features import FEATURE_NAMES, FEATURES_VERSION
from sennit.repositories.feedback import FeedbackOwner, FeedbackStore, NewFeedback
from sennit.stores.contract import RecordsRole
from sennit.stores.open import open_backend
from sennit.testing.naive import naive_backend

ANA = Caller(name="ana")
BEN = Caller(name="ben")

RECORDS = [
    Record(id="vines", text="Prune the vines in March", title="Vines"),
    Record(id="grapes", text="Harvest the grapes of the vines in October"),
    Record(id="secret", text="The vines are for sale", sensitivity="private"),
    Record(id="foreign", text="The vines of another company", tenant="other"),
]


@pytest.fixture
def db() -> Iterator[Database]:
    with sennit.open(":memory:") as db:
        db.add(RECORDS)
        yield db


def test_every_search_has_its_own_id(db: Database) -> None:
    ids = {db.search("vines").query_id for _ in range(50)}
    assert len(ids) == 50
    assert {len(query_id) for query_id in ids} == {32}
    result = db.search("vines")
    assert result.to_dict()["query_id"] == result.query_id
    assert db.ask("When do I prune the vines?").query_id


def test_feedback_keeps_the_query_and_what_was_shown(db: Database) -> None:
    result = db.search("vines", session_id="s1", client_id="browser", caller=ANA)
    event = db.feedback.add(result.query_id, "click", result[1].id, caller=ANA)
    assert event.position == 2
    db.feedback.add(result.query_id, "judge", "vines", grade=3, caller=ANA)
    (found,) = db.feedback.read(caller=ANA)
    assert found.query.query == "vines"
    assert found.query.recipe == "default"
    assert found.query.object_ids == tuple(hit.id for hit in result)
    assert (found.query.session_id, found.query.client_id, found.query.user_id) == ("s1", "browser", "ana")
    assert [(one.action_name, one.grade) for one in found.events] == [("click", None), ("judge", 3)]
    assert {one.session_id for one in found.events} == {"s1"}
    assert {one.user_id for one in found.events} == {"ana"}


def test_a_result_and_a_hit_stand_for_their_ids(db: Database) -> None:
    result = db.search("vines")
    assert db.feedback.add(result, "cite", result[0]).object_id == result[0].id
    assert db.feedback.add(result, "reject").object_id == ""


def test_nothing_is_recorded_without_feedback(db: Database) -> None:
    db.search("a personal question")
    assert db.feedback.read() == ()
    with db.store.state() as state:
        assert b"personal" not in b"".join(key + value for key, value in state.scan(b"", b"\xff"))


def test_feedback_of_one_caller_is_invisible_to_another(db: Database) -> None:
    result = db.search("vines", caller=ANA)
    db.feedback.add(result.query_id, "click", "vines", caller=ANA)
    for other in (BEN, Caller(name="ana", clearance="private"), Caller(name="ana", tenant="other"), None):
        assert db.feedback.read(caller=other) == ()
        assert db.feedback.forget(caller=other) == 0
        with pytest.raises(NotFound, match="You made no search") as theirs:
            db.feedback.add(result.query_id, "click", "vines", caller=other)
        with pytest.raises(NotFound) as unknown:
            db.feedback.add("unknown", "click", "vines", caller=other)
        assert str(theirs.value).replace(result.query_id, "unknown") == str(unknown.value)
    assert len(db.feedback.read(caller=ANA)) == 1


def test_an_owner_sees_the_feedback_of_the_tenant_alone(db: Database) -> None:
    for caller in (ANA, BEN, Caller(name="eve", tenant="other")):
        db.feedback.add(db.search("vines", caller=caller), "reject", caller=caller)
    with pytest.raises(AccessDenied):
        db.feedback.read(everything=True, caller=ANA)
    with pytest.raises(AccessDenied):
        db.feedback.forget(everything=True, caller=ANA)

    def users(caller: Caller | None) -> list[str]:
        return [one.query.user_id for one in db.feedback.read(everything=True, caller=caller)]

    assert users(OWNER) == ["ana", "ben"]
    assert users(Caller(tenant="other", everything=True)) == ["eve"]
    assert users(None) == ["ana", "ben", "eve"]
    assert db.feedback.forget(everything=True, caller=OWNER) == 2
    assert users(None) == ["eve"]


@pytest.mark.parametrize("hidden", ["secret", "foreign", "missing", "other\x1fforeign"])
def test_a_hidden_record_is_refused_like_one_that_does_not_exist(db: Database, hidden: str) -> None:
    result = db.search("vines", caller=ANA)
    with pytest.raises(NotFound) as refused:
        db.feedback.add(result.query_id, "click", hidden, caller=ANA)
    assert str(refused.value) == f"The search did not show {hidden!r}, and there is no such record"
    with pytest.raises(NotFound) as refused:
        db.feedback.add_many(
            [Feedback("x", "click", "vines", query="vines", shown=["vines", hidden])], caller=ANA
        )
    assert hidden in str(refused.value).encode().decode("unicode_escape")
    assert db.feedback.read(caller=ANA) == ()


def test_a_record_that_was_not_shown_can_be_judged(db: Database) -> None:
    result = db.search("prune", limit=1)
    assert db.feedback.add(result, "judge", "grapes", grade=2).position is None


def test_a_shown_record_that_is_removed_can_still_get_feedback(db: Database) -> None:
    result = db.search("vines")
    db.remove(["vines"])
    assert db.feedback.add(result.query_id, "reject", "vines").position is not None


def test_feedback_can_bring_a_query_that_no_process_knows(db: Database) -> None:
    feedback = Feedback("from-elsewhere", "click", "grapes", query="vines", shown=["vines", "grapes"])
    assert [one.position for one in db.feedback.add_many([feedback])] == [2]
    (found,) = db.feedback.read()
    assert found.query.reported
    # A later report cannot change what is recorded.
    db.feedback.add_many([Feedback("from-elsewhere", "click", "vines", query="other", shown=["vines"])])
    (found,) = db.feedback.read()
    assert (found.query.query, found.query.object_ids, len(found.events)) == ("vines", ("vines", "grapes"), 2)


def test_several_actions_are_recorded_all_or_none(db: Database) -> None:
    result = db.search("vines")
    with pytest.raises(NotFound):
        db.feedback.add_many(
            [Feedback(result.query_id, "click", "vines"), Feedback("unknown", "click", "vines")]
        )
    assert db.feedback.read() == ()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"action_name": "clik"}, "Did you mean 'click'"),
        ({"action_name": "judge"}, "needs a grade"),
        ({"grade": 1}, "no other action has one"),
        ({"action_name": "judge", "grade": 4}, "from 0 to 3"),
        ({"action_name": "judge", "grade": True}, "from 0 to 3"),
        ({"action_name": "judge", "grade": 1, "object_id": ""}, "about one record"),
        ({"query_id": ""}, "must not be empty"),
        ({"query_id": "x" * 101}, "the limit is 100"),
        ({"object_id": "\ud800"}, "the id of a record"),
        ({"object_id": "x" * 1025}, "the id of a record"),
        ({"position": 0}, "position"),
        ({"message": "x" * 1025}, "the limit is 1,024"),
        ({"shown": ["a"]}, "give the query"),
        ({"query": "q", "shown": "a"}, "a list"),
        ({"query": "q", "shown": ["a"] * 101}, "at most 100"),
        ({"query": "q", "shown": [""]}, "must not be empty"),
    ],
)
def test_feedback_that_makes_no_sense_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Feedback(**{"query_id": "q", "action_name": "click", "object_id": "a", **values})  # type: ignore[arg-type]


def test_feedback_is_refused_where_it_is_switched_off() -> None:
    with sennit.open(":memory:", feedback__record="off") as db:
        db.add(RECORDS)
        result = db.search("vines")
        assert result.query_id
        with pytest.raises(InvalidInput, match="record is off"):
            db.feedback.add(result, "click", "vines")


def test_every_search_is_recorded_where_the_settings_say_so(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db", feedback__record="all") as db:
        db.add(RECORDS)
        result = db.search("vines", caller=ANA)
        db.search_many(["grapes", "march"], caller=BEN)
        assert [one.query.query for one in db.feedback.read(caller=ANA)] == ["vines"]
        db.search("the last one", caller=ANA)
    with sennit.open(tmp_path / "db") as db:
        assert [one.query.query for one in db.feedback.read(everything=True)] == [
            *("vines", "grapes", "march", "the last one"),
        ]
        # Another process knows the search, too.
        assert db.feedback.add(result.query_id, "click", result[1].id, caller=ANA).position == 2


def test_features_are_recorded_where_the_settings_say_so() -> None:
    with sennit.open(":memory:", feedback__features=True) as db:
        db.add(RECORDS)
        result = db.search("vines in march")
        assert result.trace is None
        assert result[0].explanation is None
        assert db.search("vines", explain=True).trace is not None
        db.feedback.add(result.query_id, "click", "vines")
        (found,) = db.feedback.read()
        assert found.query.features_version == FEATURES_VERSION
        for hit in found.query.shown:
            assert len(hit.features) == len(FEATURE_NAMES)
        best = dict(zip(FEATURE_NAMES, found.query.shown[0].features, strict=True))
        assert best["keyword_reciprocal_rank"] == best["score_relative"] == best["match_relative"] == 1.0
        assert best["title_overlap"] == pytest.approx(1 / 3)
        assert best["lists"] >= 2
        assert best["score"] == result[0].score


def test_the_last_search_that_showed_a_record_is_found(db: Database) -> None:
    first = db.search("vines", caller=ANA)
    last = db.search("prune vines", caller=ANA)
    db.search("vines", caller=BEN)
    assert first.query_id != last.query_id
    assert db.feedback.last_query_id("vines", caller=ANA) == last.query_id
    with pytest.raises(NotFound, match="No recent search"):
        db.feedback.last_query_id("secret", caller=ANA)


def test_feedback_is_forgotten_by_query_session_or_as_a_whole(db: Database) -> None:
    results = [db.search("vines", session_id=session) for session in ("a", "a", "b", "c")]
    for result in results:
        db.feedback.add(result, "click", "vines")

    def remaining() -> set[str]:
        return {one.query.query_id for one in db.feedback.read()}

    assert db.feedback.forget([results[3].query_id, "unknown"]) == 1
    assert db.feedback.forget(session_id="a") == 2
    assert remaining() == {results[2].query_id}
    # The process forgets them too.
    for result in (results[0], results[3]):
        with pytest.raises(NotFound):
            db.feedback.add(result.query_id, "click", "vines")
    assert db.feedback.forget() == 1
    assert remaining() == set()
    with db.store.state() as state:
        assert not [key for key, _ in state.scan(b"", b"\xff") if b"feedback" in key]
    with pytest.raises(InvalidInput, match="not both"):
        db.feedback.forget(["x"], session_id="a")


def test_a_search_without_feedback_is_forgotten_with_its_session(db: Database) -> None:
    first, second = (db.search("vines", session_id=session) for session in ("a", "b"))
    assert db.feedback.forget(session_id="a") == 0, "nothing is stored"
    with pytest.raises(NotFound):
        db.feedback.add(first.query_id, "click", "vines")
    db.feedback.add(second.query_id, "click", "vines")


def test_an_owner_forgets_recent_searches_of_the_tenant_alone(db: Database) -> None:
    eve = Caller(name="eve", tenant="other")
    mine, theirs = db.search("vines", caller=ANA), db.search("vines", caller=eve)
    db.feedback.forget(everything=True, caller=OWNER)
    with pytest.raises(NotFound):
        db.feedback.add(mine.query_id, "click", "vines", caller=ANA)
    db.feedback.add(theirs.query_id, "click", "foreign", caller=eve)


@pytest.fixture
def expired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database with feedback of 31 days ago."""
    with sennit.open(tmp_path / "db") as db:
        db.add(RECORDS)
        with monkeypatch.context() as past:
            long_ago = time.time_ns() - 31 * 86400 * 10**9
            past.setattr(time, "time_ns", lambda: long_ago)
            db.feedback.add(db.search("a personal question"), "reject")
        assert _holds(db, b"personal")
    return tmp_path / "db"


def _holds(db: Database, text: bytes) -> bool:
    with db.store.state() as state:
        return text in b"".join(key + value for key, value in state.scan(b"", b"\xff"))


def test_expired_feedback_is_not_read(expired: Path) -> None:
    with sennit.open(expired, feedback__days=30) as db:
        assert db.feedback.read() == ()
    with sennit.open(expired, feedback__days=32) as db:
        assert len(db.feedback.read()) == 1


def test_new_feedback_removes_what_has_expired(expired: Path) -> None:
    with sennit.open(expired, feedback__days=30) as db:
        db.feedback.add(db.search("vines"), "reject")
        assert not _holds(db, b"personal")


def test_searches_alone_remove_what_has_expired(expired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_recorder, "PRUNE_SECONDS", 0.0)
    with sennit.open(expired, feedback__days=30) as db:
        db.search("vines")
    with sennit.open(expired) as db:
        assert not _holds(db, b"personal")


def test_exported_feedback_is_loaded_as_the_callers_own(db: Database) -> None:
    db.feedback.add(db.search("vines", caller=ANA), "click", "vines", caller=ANA)
    (found,) = db.feedback.read(caller=ANA)
    assert db.feedback.load([found.query], found.events, caller=BEN) == 1
    (loaded,) = db.feedback.read(caller=BEN)
    assert (loaded.query, loaded.events) == (found.query, found.events)
    foreign = replace(found.query, query_id="theirs", tenant="other")
    db.feedback.load([foreign], caller=BEN)
    assert {one.query.tenant for one in db.feedback.read(caller=BEN)} == {""}
    with pytest.raises(InvalidInput, match="not among the queries"):
        db.feedback.load([], found.events)


# The repository


@pytest.fixture(params=["sqlite", "naive"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordsRole]:
    backend = naive_backend() if request.param == "naive" else open_backend(tmp_path / "db")
    yield backend.records
    backend.records.close()


def test_the_store_works_on_every_backend(records: RecordsRole) -> None:
    store = FeedbackStore(records)
    ana, ben = FeedbackOwner.of(ANA), FeedbackOwner.of(BEN)
    query = LoggedQuery(query_id="q", query="vines", shown=(ShownHit("a"), ShownHit("b")))
    click = FeedbackEvent(query_id="q", action_name="click", object_id="b", position=2)
    store.add([NewFeedback(ana, query, [click]), NewFeedback(ben, query)])
    store.add([NewFeedback(ana, query, [click] * 300)])
    assert [len(one.events) for one in store.read()] == [301, 0]
    assert store.read(ana)[0].events[300] == click
    assert store.read(tenant="other") == []
    assert store.query(ana, "q") == query
    assert store.query(ana, "other") is None
    assert store.remove([(ana, "q"), (ana, "q")]) == 1
    assert store.query(ana, "q") is None
    assert store.query(ben, "q") == query


def test_what_has_expired_is_neither_read_nor_kept(records: RecordsRole) -> None:
    store = FeedbackStore(records)
    owner = FeedbackOwner.of(ANA)
    store.add([NewFeedback(owner, LoggedQuery(query_id="q", query="vines"))])
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).timestamp()
    assert store.read(recorded_after=tomorrow) == []
    assert store.prune(tomorrow - 2 * 86400) == 0
    assert len(store.read()) == 1
    assert store.prune(tomorrow) == 1
    assert store.read() == []
    with records.state() as state:
        assert state.scan(b"", b"\xff") == []


_name = st.text(max_size=20)
_time = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1)).map(lambda one: one.replace(tzinfo=UTC))
_number = st.floats(-1e300, 1e300)
_hits = st.builds(
    ShownHit,
    st.text(min_size=1, max_size=20),
    _number,
    _number,
    _name,
    st.lists(_number, max_size=3).map(tuple),
)
logged_queries = st.builds(
    LoggedQuery,
    query_id=st.text(min_size=1, max_size=20),
    query=st.text(max_size=50),
    recipe=_name,
    shown=st.lists(_hits, max_size=4, unique_by=lambda hit: hit.object_id).map(tuple),
    timestamp=_time,
    session_id=_name,
    client_id=_name,
    application=_name,
    user_id=_name,
    tenant=_name,
    experiment=_name,
    features_version=st.integers(0, 9),
    reported=st.booleans(),
)
events = st.builds(
    FeedbackEvent,
    query_id=st.text(min_size=1, max_size=20),
    action_name=st.sampled_from([*ACTIONS, "add_to_cart"]),
    object_id=st.text(min_size=1, max_size=20),
    position=st.none() | st.integers(1, 1000),
    grade=st.none() | st.integers(0, 3),
    timestamp=_time,
    session_id=_name,
    client_id=_name,
    application=_name,
    user_id=_name,
    message=_name,
)


@given(logged_queries, events)
def test_ubi_json_is_read_back_as_it_was(query: LoggedQuery, event: FeedbackEvent) -> None:
    assert LoggedQuery.from_ubi(json.loads(json.dumps(query.to_ubi()))) == query
    assert FeedbackEvent.from_ubi(json.loads(json.dumps(event.to_ubi()))) == event


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_fields = st.sampled_from(
    [
        *("query_id", "user_query", "timestamp", "query_response_hit_ids", "query_attributes", "client_id"),
        *("action_name", "event_attributes", "session_id", "shown", "object", "position", "ordinal", "grade"),
    ]
)


@given(st.dictionaries(_fields, _json | st.dictionaries(_fields, _json, max_size=4), max_size=6))
def test_any_other_json_is_read_or_refused(values: dict[str, object]) -> None:
    for kind in (LoggedQuery, FeedbackEvent):
        with contextlib.suppress(InvalidInput):
            kind.from_ubi(values)


def test_events_have_what_the_schema_of_ubi_requires() -> None:
    event = FeedbackEvent(query_id="q", action_name="judge", object_id="a", grade=2).to_ubi()
    assert event["action_name"] == "judge"
    assert datetime.fromisoformat(str(event["timestamp"])).tzinfo is not None
    assert event["event_attributes"] == {
        "object": {"object_id": "a"},
        "position": {"ordinal": 0},
        "grade": 2,
    }
    query = LoggedQuery(query_id="q", query="vines", shown=(ShownHit("a"),)).to_ubi()
    assert query["user_query"] == "vines"
    assert query["query_response_hit_ids"] == ["a"]
