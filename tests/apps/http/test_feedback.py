"""Feedback over HTTP: who may give it, about what, and who may read it."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Service, assert_error


def give(service: Service, body: Any, who: str = "owner") -> Any:
    return service.post("/v1/feedback", body, who)


def test_feedback_names_the_query_id_of_a_search(service: Service) -> None:
    found = service.search("vineyard", "owner", session_id="tab-1", client_id="firefox")
    query_id, hits = found["query_id"], found["hits"]
    response = give(
        service,
        [
            {"query_id": query_id, "action_name": "click", "object_id": hits[0]["id"]},
            {"query_id": query_id, "action_name": "judge", "object_id": hits[0]["id"], "grade": 3},
        ],
    )
    assert response.json() == {"recorded": 2}
    read = service.get("/v1/feedback", "owner").json()
    (query,) = read["queries"]
    assert query["user_query"] == "vineyard"
    assert query["query_response_hit_ids"] == [hit["id"] for hit in hits]
    assert query["query_attributes"]["session_id"] == "tab-1"
    assert query["client_id"] == "firefox"
    assert [event["event_attributes"]["position"]["ordinal"] for event in read["events"]] == [1, 1]
    removed = service.delete(f"/v1/feedback?query_id={query_id}", "owner")
    assert removed.json() == {"removed": 1}
    assert service.get("/v1/feedback", "owner").json() == {"queries": [], "events": []}


def test_a_reader_may_give_feedback_and_sees_no_other(service: Service) -> None:
    found = service.search("vineyard", who="reader")
    body = {"query_id": found["query_id"], "action_name": "click", "object_id": "harvest"}
    for other in ("owner", "writer", "other"):
        assert_error(give(service, body, other), 404, "not_found")
    assert give(service, body, "reader").status_code == 200
    for other in ("writer", "other"):
        assert service.get("/v1/feedback", other).json()["queries"] == []
    assert len(service.get("/v1/feedback?everything=true", "owner").json()["queries"]) == 1
    assert_error(service.get("/v1/feedback?everything=true", "reader"), 403, "forbidden")


@pytest.mark.parametrize("hidden", ["diary", "only-theirs", "missing"])
def test_a_hidden_record_is_refused_like_a_missing_one(service: Service, hidden: str) -> None:
    query_id = service.search("vineyard", who="reader")["query_id"]
    body = {"query_id": query_id, "action_name": "click", "object_id": hidden}
    message = assert_error(give(service, body, "reader"), 404, "not_found")
    assert message == f"The search did not show {hidden!r}, and there is no such record"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query_id": "x", "action_name": "smile"},
        {"query_id": "x" * 101, "action_name": "click"},
        {"query_id": "x", "action_name": "judge", "object_id": "a", "grade": 9},
        {"query_id": "x", "action_name": "judge", "object_id": "a"},
        {"query_id": "x", "action_name": "click", "tenant": "other"},
        {"query_id": "x", "action_name": "click", "shown": ["a"] * 101, "query": "q"},
        [],
    ],
)
def test_malformed_feedback_is_refused(service: Service, body: Any) -> None:
    assert_error(give(service, body), 422, "invalid_request")


def test_context_and_answers_have_a_query_id_too(service: Service) -> None:
    context = service.get("/v1/context?query=vacation", "owner").json()
    answer = service.post("/v1/ask", {"query": "How was the harvest?"}, "owner").json()
    for found in (context, answer):
        body = {"query_id": found["query_id"], "action_name": "use"}
        assert give(service, body).json() == {"recorded": 1}


def test_a_search_of_another_process_can_be_reported(service: Service) -> None:
    body = {
        "query_id": "0" * 32,
        "action_name": "click",
        "object_id": "harvest",
        "query": "vineyard",
        "shown": ["harvest"],
    }
    assert give(service, body, "reader").json() == {"recorded": 1}
    (query,) = service.get("/v1/feedback", "reader").json()["queries"]
    assert query["query_attributes"]["reported"] is True
