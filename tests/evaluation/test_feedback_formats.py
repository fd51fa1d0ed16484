"""Feedback in the formats of other tools is read back as it was, whatever the ids and texts are."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sennit
from sennit import Record
from sennit.errors import InvalidInput
from sennit.evaluation.datasets import read_collection
from sennit.evaluation.feedback_formats import (
    decode_token,
    encode_cell,
    encode_token,
    from_qrels,
    from_run,
    from_svmlight,
    from_ubi,
    grades,
    judged_from_svmlight,
    read_beir_feedback,
    to_qrels,
    to_run,
    to_svmlight,
    to_ubi,
    write_beir,
)
from sennit.feedback import FeedbackEvent, LoggedQuery, ShownHit
from sennit.ranking.features import FEATURE_NAMES, FEATURES_VERSION
from sennit.repositories.feedback import FeedbackOwner, QueryFeedback

OWNER = FeedbackOwner("", "")
_id = st.text(min_size=1, max_size=12)
_features = st.lists(
    st.floats(-1e9, 1e9) | st.just(float("nan")), min_size=len(FEATURE_NAMES), max_size=len(FEATURE_NAMES)
).map(tuple)


@st.composite
def feedback(draw: st.DrawFn) -> list[QueryFeedback]:
    out = []
    for query_id in draw(st.lists(_id, max_size=3, unique=True)):
        ids = draw(st.lists(_id, min_size=1, max_size=4, unique=True))
        query = LoggedQuery(
            query_id=query_id,
            query=draw(st.text(max_size=20)),
            shown=tuple(ShownHit(one, features=draw(_features)) for one in ids),
            features_version=FEATURES_VERSION,
        )
        judged = draw(st.dictionaries(st.sampled_from(ids), st.integers(0, 3)))
        events = tuple(
            FeedbackEvent(query_id=query_id, action_name="judge", object_id=name, grade=grade)
            for name, grade in judged.items()
        )
        out.append(QueryFeedback(OWNER, query, events))
    return out


def _plain(text: str) -> list[str]:
    """The lines as a program reads them that knows only line feeds."""
    return text.split("\n")


@given(st.text())
def test_any_id_becomes_one_word_and_is_read_back(text: str) -> None:
    word = encode_token(text)
    assert word.split() == ([word] if text else [])
    assert decode_token(word) == text


@given(st.text(min_size=1))
def test_any_id_becomes_one_cell_and_is_read_back(text: str) -> None:
    cell = encode_cell(text)
    assert cell.strip() == cell
    assert not set("\t\r\n") & set(cell)
    assert decode_token(cell) == text


def test_a_usual_id_is_its_own_cell() -> None:
    for text in ("docs/my file.md:3-9", "50% off", "q1"):
        assert encode_cell(text) == text


@given(feedback())
def test_run_and_qrels_are_read_back_as_they_were(found: list[QueryFeedback]) -> None:
    run = from_run(_plain("".join(to_run(found))))
    assert run == {one.query.query_id: list(one.query.object_ids) for one in found}
    qrels = from_qrels(_plain("".join(to_qrels(found))))
    assert qrels == {one.query.query_id: grades(one) for one in found if grades(one)}


@given(feedback())
def test_ubi_is_read_back_as_it_was(found: list[QueryFeedback]) -> None:
    read = from_ubi(json.dumps(to_ubi(found), ensure_ascii=False))
    assert repr(read.queries) == repr([one.query for one in found])  # nan is not equal to itself
    assert read.events == [event for one in found for event in one.events]


@given(feedback())
def test_svmlight_is_read_back_as_it_was(found: list[QueryFeedback]) -> None:
    rows = list(from_svmlight(_plain("".join(to_svmlight(found)))))
    shown = [(one, hit) for one in found for hit in one.query.shown]
    assert len(rows) == len(shown)
    for row, (one, hit) in zip(rows, shown, strict=True):
        assert row.grade == grades(one).get(hit.object_id, 0)
        expected = {at: value for at, value in enumerate(hit.features, 1) if value == value}
        assert row.features == expected
        assert [decode_token(word) for word in row.comment.split()] == [one.query.query_id, hit.object_id]


@given(feedback())
def test_imported_svmlight_is_exported_as_it_was(found: list[QueryFeedback]) -> None:
    lines = list(to_svmlight(found))
    read = judged_from_svmlight(lines, {one.query.query_id: one.query.query for one in found})
    again = [
        QueryFeedback(OWNER, query, tuple(one for one in read.events if one.query_id == query.query_id))
        for query in read.queries
    ]
    exported = {line.partition("# ")[2]: line.split(" qid:")[0] for line in lines[1:]}
    assert {
        line.partition("# ")[2]: line.split(" qid:")[0] for line in list(to_svmlight(again))[1:]
    } == exported
    assert {repr(query.shown[0].features) for query in read.queries} == {
        repr(one.query.shown[0].features) for one in found if one.query.shown
    }
    for query in read.queries:
        (same,) = [one.query for one in found if one.query.query_id == query.query_id]
        assert (query.query, query.object_ids, query.features_version) == (
            same.query,
            same.object_ids,
            FEATURES_VERSION,
        )


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "The first line must name"),
        (["2 qid:1 1:0.5 # q d"], "The first line must name"),
        (["# sennit features 1: a b", "2 qid:1 1:0.5"], "needs the ids"),
        (["# sennit features 1: a b", "2 qid:1 3:0.5 # q d"], "at most 2 features"),
        (["# sennit features 1: a b", "2 qid:1 1:0.5 # other d"], "no query 'other'"),
    ],
)
def test_svmlight_that_is_no_feedback_is_refused(lines: list[str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        judged_from_svmlight(lines, {"q": "text"})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(found=feedback())
def test_a_database_exports_what_it_imported(found: list[QueryFeedback]) -> None:
    text = json.dumps(to_ubi(found), ensure_ascii=False)
    read = from_ubi(text)
    with sennit.open(":memory:") as db:
        db.feedback.load(read.queries, read.events)
        again = json.loads(json.dumps(to_ubi(db.feedback.read())))
    expected = json.loads(text)
    for name in ("queries", "events"):
        one, other = (sorted(values[name], key=itemgetter("query_id")) for values in (again, expected))
        assert one == other


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=feedback())
def test_a_beir_folder_is_read_back_and_can_be_evaluated(tmp_path: Path, found: list[QueryFeedback]) -> None:
    names = dict.fromkeys(name for one in found for name in one.query.object_ids)
    count = write_beir(tmp_path / "beir", found, [Record(id=name, text="text") for name in names])
    relevant = {one.query.query_id: grades(one) for one in found if any(grades(one).values())}
    assert count == len(relevant)
    if not relevant:
        return
    read = read_beir_feedback(tmp_path / "beir")
    assert {query.query_id: query.query for query in read.queries} == {
        one.query.query_id: one.query.query for one in found if one.query.query_id in relevant
    }
    assert {(event.query_id, event.object_id): event.grade for event in read.events} == {
        (query, name): grade for query, graded in relevant.items() for name, grade in graded.items()
    }
    collection = read_collection(tmp_path / "beir")
    assert not collection.warnings
    assert len(collection.queries) == count


def test_a_grade_outweighs_a_click_and_the_last_grade_counts() -> None:
    def event(action: str, name: str, grade: int | None = None) -> FeedbackEvent:
        return FeedbackEvent(query_id="q", action_name=action, object_id=name, grade=grade)

    found = QueryFeedback(
        OWNER,
        LoggedQuery(query_id="q", query="x"),
        (
            event("judge", "a", 3),
            event("judge", "a", 0),
            event("click", "a"),
            event("reject", "b"),
            event("use", "b"),
            event("cite", "c"),
            event("reject", "c"),
            event("impression", "d"),
            event("reject", ""),
        ),
    )
    assert grades(found) == {"a": 0, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("read", "line"),
    [
        (from_run, "q Q0 d 1 x tag"),
        (from_run, "q Q0 d 1 0.5"),
        (from_qrels, "q 0 d nan"),
        (from_qrels, "q 0 %ff 1"),
        (from_svmlight, "1 1:2"),
        (from_svmlight, "1 qid: 1:2"),
        (from_svmlight, "1 qid:1 0:2"),
        (from_svmlight, "1 qid:1 a:2"),
        (from_svmlight, "x qid:1 1:2"),
    ],
)
def test_a_malformed_line_is_named(read: object, line: str) -> None:
    with pytest.raises(InvalidInput, match="Line 2"):
        list(read(["", line]))  # type: ignore[operator]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"queries": 1}', '{"events": [1]}', '{"queries": [{}]}', "[" * 10000]
)
def test_malformed_ubi_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        from_ubi(text)


def test_public_collections_for_learning_to_rank_are_read() -> None:
    (row,) = from_svmlight(["2 qid:10032 1:0.056537 2:0.000000 46:1e-3 #docid = GX029-35 inc = 1"])
    assert row.grade == 2
    assert row.query == "10032"
    assert row.features == {1: 0.056537, 2: 0.0, 46: 0.001}
