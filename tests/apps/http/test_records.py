"""Writes: what is stored, for whom, and what a caller cannot do to others."""

from __future__ import annotations

from typing import Any

import pytest

from sennit import Caller, Record
from sennit.facts import Fact, fact_id

from .conftest import CALLERS, RECORDS, Service, assert_error

OWNER = CALLERS["owner"][0]


def kept(service: Service, path: str, body: Any, who: str = "writer") -> Any:
    response = service.post(path, body, who)
    assert response.status_code == 200, response.text
    return response.json()


def test_written_record_is_visible_to_the_next_search(service: Service) -> None:
    record = {
        "id": "boiler",
        "text": "Top up when the pressure drops.",
        "title": "Boiler",
        "kind": "note",
        "lines": [3, 9],
        "path": "docs/a.md",
        "timestamp": "2026-03-03T18:00:00Z",
        "metadata": {"room": "cellar", "deep": [{"a": None}]},
    }
    assert kept(service, "/v1/records", record) == {
        "added": 1,
        "updated": 0,
        "unchanged": 0,
        "ids": ["boiler"],
    }
    assert service.db.get("boiler") == Record.from_dict(record)
    (hit,) = service.search("pressure", recipe="keyword")["hits"]
    assert hit["citation"] == "docs/a.md:3-9"
    assert kept(service, "/v1/records", record)["unchanged"] == 1
    assert kept(service, "/v1/records", {**record, "text": "New."})["updated"] == 1
    assert service.search("pressure", recipe="keyword")["hits"] == []


def test_batch_is_written_completely_or_not_at_all(service: Service) -> None:
    many = [{"id": f"r{at}", "text": f"pebble {at}"} for at in range(1000)]
    assert kept(service, "/v1/records", many)["added"] == 1000
    before = len(service.db)
    bad = [{"id": "good", "text": "pebble"}, {"id": "bad", "text": "pebble", "lines": [2, 1]}]
    assert "Record.lines" in assert_error(service.post("/v1/records", bad), 422, "invalid_request")
    assert len(service.db) == before
    assert_error(service.post("/v1/records", [*many, many[0] | {"id": "one more"}]), 422, "invalid_request")
    assert_error(service.post("/v1/records", []), 422, "invalid_request")


@pytest.mark.parametrize(
    ("record", "where"),
    [
        ({"text": "x"}, "body.id"),
        ({"id": "", "text": "x"}, "body.id"),
        ({"id": 5, "text": "x"}, "body.id"),
        ({"id": "a"}, "body.text"),
        ({"id": "a", "text": "x", "tenant": "other"}, "body.tenant"),
        ({"id": "a", "text": "x", "colour": "red"}, "body.colour"),
        ({"id": "a", "text": "x", "metadata": []}, "body.metadata"),
        ({"id": "a", "text": "x", "timestamp": "yesterday"}, "Not a valid time"),
        ({"id": "a", "text": "x", "timestamp": 1e300}, "Not a valid time"),
        ({"id": "a", "text": "x", "lines": [1]}, "body.lines"),
        ({"id": "a", "text": "x", "position": -1}, "body.position"),
        ({"id": "é" * 1000, "text": "x"}, "Record.id"),
    ],
)
def test_invalid_record_gets_422_with_the_reason(
    service: Service, record: dict[str, Any], where: str
) -> None:
    assert assert_error(service.post("/v1/records", record), 422, "invalid_request").startswith(where)
    if "id" not in where:
        many = assert_error(
            service.post("/v1/records", [{"id": "fine", "text": ""}, record]), 422, "invalid_request"
        )
        assert where.removeprefix("body.") in many
    assert service.db.get("fine") is None


def test_record_is_removed_with_its_chunks(service: Service) -> None:
    service.db.add_artifacts([Record(id="book", text="A paragraph.\n\n" * 400)])
    response = service.request("DELETE", "/v1/records/book")
    assert response.status_code == 200
    assert response.json()["removed"] > 1
    assert service.db.get("book") is None
    assert_error(service.request("DELETE", "/v1/records/book"), 404, "not_found")


# Who may


def test_token_without_write_access_cannot_write(service: Service) -> None:
    for path, body in (
        ("/v1/records", {"id": "x", "text": "x"}),
        ("/v1/turns", {"session": "s", "text": "x"}),
        ("/v1/facts", {"subject": "a", "relation": "b", "object": "c"}),
        ("/v1/records", {"not": "even a record"}),
    ):
        assert "--write" in assert_error(service.post(path, body, "reader"), 403, "forbidden")
    assert_error(service.request("DELETE", "/v1/records/harvest", "reader"), 403, "forbidden")
    assert service.db.get("harvest") is not None


def test_written_records_belong_to_the_tenant_of_the_token(service: Service) -> None:
    kept(service, "/v1/records", {"id": "new", "text": "cedar"}, "other")
    kept(service, "/v1/turns", {"session": "s", "text": "cedar"}, "other")
    kept(service, "/v1/facts", {"subject": "a", "relation": "b", "object": "cedar"}, "other")
    assert service.search("cedar", recipe="keyword")["hits"] == []
    assert len(service.search("cedar", "other", recipe="keyword")["hits"]) == 3
    assert all("tenant" not in hit for hit in service.search("cedar", "other")["hits"])
    kept(service, "/v1/records", {"id": "harvest", "text": "ours now"}, "other")
    assert service.db.get("harvest") == RECORDS[0]


def test_caller_cannot_write_a_record_it_could_not_read(service: Service) -> None:
    for more in ({"sensitivity": "private"}, {"scope": "me"}, {"sensitivity": "unheard of"}):
        assert "could not read" in assert_error(
            service.post("/v1/records", {"id": "x", "text": "x", **more}), 403, "forbidden"
        )
    assert kept(service, "/v1/records", {"id": "x", "text": "x", "sensitivity": "private"}, "owner")["added"]


def test_caller_cannot_replace_a_hidden_record(service: Service) -> None:
    assert "taken" in assert_error(
        service.post("/v1/records", [{"id": "new", "text": "x"}, {"id": "diary", "text": "mine now"}]),
        409,
        "conflict",
    )
    assert service.db.get("diary", caller=OWNER) == RECORDS[1]
    assert service.db.get("new") is None


def test_hidden_record_looks_like_a_missing_one(service: Service) -> None:
    def same(method: str, path: str) -> None:
        hidden = assert_error(service.request(method, path.format(id="diary")), 404, "not_found")
        missing = assert_error(service.request(method, path.format(id="nobody")), 404, "not_found")
        others = assert_error(service.request(method, path.format(id="only-theirs")), 404, "not_found")
        assert hidden.replace("diary", "nobody") == missing == others.replace("only-theirs", "nobody")

    same("DELETE", "/v1/records/{id}")
    same("GET", "/v1/why?query=vineyard&id={id}")
    assert service.db.get("diary", caller=OWNER) is not None
    assert service.db.get("only-theirs", caller=Caller(tenant="other")) is not None


# Turns


def test_conversation_turns_are_stored_with_session_and_position(service: Service) -> None:
    turns: list[dict[str, Any]] = [
        {
            "session": "s9",
            "speaker": "Ana",
            "text": "The ferry leaves at noon",
            "timestamp": "2026-05-01T10:00:00Z",
            "entities": ["ferry"],
            "position": 4,
            "metadata": {"mood": "calm"},
        },
        {"session": "s9", "text": "Then we take it"},
    ]
    response = kept(service, "/v1/turns", turns)
    assert response["added"] == 2
    record = service.db.get(response["ids"][0])
    assert record is not None
    assert (record.collection, record.parent, record.position) == ("history", "s9", 4)
    assert record.metadata == {"mood": "calm", "session": "s9", "speaker": "Ana", "entities": ["ferry"]}
    results = service.get("/v1/context", query="when does the ferry leave").json()["results"]
    said = next(result for result in results if result["id"] == record.id)
    assert (said["source_session"], said["speaker"], said["entities"]) == ("s9", "Ana", ["ferry"])
    assert kept(service, "/v1/turns", turns[0])["unchanged"] == 1
    assert kept(service, "/v1/turns", {**turns[0], "position": 5})["added"] == 1
    assert kept(service, "/v1/turns", {**turns[0], "id": "mine"})["ids"] == ["mine"]


def test_turn_needs_a_session(service: Service) -> None:
    assert "session" in assert_error(service.post("/v1/turns", {"text": "x"}), 422, "invalid_request")


# Facts


def test_fact_is_found_by_its_entities(service: Service) -> None:
    fact = {"subject": "Ana", "relation": "lives in", "object": "Lisbon", "weight": 3}
    response = kept(service, "/v1/facts", fact)
    assert response["ids"] == [fact_id("Ana", "lives in", "Lisbon")]
    found = service.get("/v1/context", query="Where is Ana?").json()["results"]
    assert "Ana -> Lisbon: lives in" in {result["text"] for result in found}


def test_superseded_fact_ends_and_stays_in_history(service: Service) -> None:
    first = {"subject": "Ana", "relation": "lives in", "object": "Lisbon", "timestamp": "2020-01-01"}
    old = kept(service, "/v1/facts", first)["ids"][0]
    then = {"subject": "Ana", "relation": "lives in", "object": "Porto", "supersedes": [old]}
    kept(service, "/v1/facts", [then])
    record = service.db.get(old)
    assert record is not None
    assert Fact.from_record(record).superseded_at is not None
    found = service.get("/v1/context", query="Where is Ana?").json()["results"]
    assert [result["text"] for result in found if result["text"].startswith("Ana ->")] == [
        "Ana -> Porto: lives in"
    ]


def test_caller_cannot_supersede_a_hidden_fact(service: Service) -> None:
    hidden = Fact(subject="Ana", relation="owes", object="Ben", sensitivity="private")
    service.db.add_facts([hidden])
    new = {"subject": "Ana", "relation": "owes", "object": "Cy", "supersedes": [hidden.id]}
    seen = assert_error(service.post("/v1/facts", new), 404, "not_found")
    missing = assert_error(service.post("/v1/facts", {**new, "supersedes": ["fact:none"]}), 404, "not_found")
    assert seen.replace(hidden.id, "fact:none") == missing
    record = service.db.get(hidden.id, caller=OWNER)
    assert record is not None
    assert Fact.from_record(record) == hidden
    same = {"subject": "Ana", "relation": "owes", "object": "Ben"}
    assert_error(service.post("/v1/facts", same), 409, "conflict")


@pytest.mark.parametrize(
    "fact",
    [
        {"subject": "a", "relation": "b"},
        {"subject": " ", "relation": "b", "object": "c"},
        {"subject": "a", "relation": "b", "object": "c", "weight": -1},
        {"subject": "a", "relation": "b", "object": "c", "metadata": {"subject": "x"}},
        {"subject": "a", "relation": "b", "object": "c", "timestamp": 9, "superseded_at": 8},
    ],
)
def test_invalid_fact_gets_422(service: Service, fact: dict[str, Any]) -> None:
    assert_error(service.post("/v1/facts", fact), 422, "invalid_request")
