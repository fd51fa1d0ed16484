"""Search, context and explanations over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from sennit import Record
from sennit.context.briefing import HEADING

from .conftest import FACT, Service, assert_error


def test_search_returns_hits_with_all_fields(service: Service) -> None:
    found = service.search("vineyard grapes", limit=1)
    assert found["query"] == "vineyard grapes"
    assert found["recipe"] == "default"
    assert found["degraded"] == []
    assert found["status"].endswith(" ms")
    (hit,) = found["hits"]
    assert hit["id"] == "harvest"
    assert hit["rank"] == 1
    assert hit["citation"] == "https://example.org/harvest"
    assert hit["title"] == "Harvest report"
    assert hit["collection"] == "artifacts"
    assert hit["metadata"] == {"artifact_type": "report"}
    assert hit["timestamp"] is None
    assert "explanation" not in hit
    assert "trace" not in found


@pytest.mark.parametrize("query", ["vineyard grapes", "quantum chromodynamics"])
def test_every_hit_says_whether_it_fits(service: Service, query: str) -> None:
    found = service.search(query)
    assert found["hits"]
    assert [hit["fits"] for hit in found["hits"]] == [hit.fits for hit in service.db.search(query)]
    assert found["fits"] is (query == "vineyard grapes")


def test_search_parameters_are_passed_to_the_engine(service: Service) -> None:
    assert service.search("March", recipe="keyword")["hits"][0]["sources"] == ["keyword"]
    assert len(service.search("vineyard", limit=1)["hits"]) == 1
    only = service.search("vineyard", filters={"artifact_type": "report"})
    assert [hit["id"] for hit in only["hits"]] == ["harvest"]
    assert service.search("vineyard", filters="kind = 'report'")["hits"] == only["hits"]
    explained = service.search("vineyard", explain=True)
    assert explained["hits"][0]["explanation"]["sources"]
    assert explained["trace"]["candidates"]
    service.search("vineyard", recipe="files", keywords=["grapes"])


def test_an_excerpt_has_the_best_lines_with_the_words_of_the_query_marked(service: Service) -> None:
    text = "# Start\n\nNobody reads this.\n\n```\nrun --quince\n```\n\nA quince is [hard](a.md) and sour.\n"
    code = Record(
        id="quince",
        text="def quince():\n    return 1",
        path="a.py",
        lines=(7, 8),
        metadata={"language": "python"},
    )
    service.db.add([Record(id="page", text=text), code])
    try:
        found = {hit["id"]: hit for hit in service.search("the quince", excerpts=True)["hits"]}
        plain = service.search("the quince")["hits"]
    finally:
        service.db.remove(["page", "quince"])
    assert found["page"]["excerpt"] == [
        {
            "number": None,
            "verbatim": True,
            "parts": [{"text": "run --", "match": False}, {"text": "quince", "match": True}],
        },
        {
            "number": None,
            "verbatim": False,
            "parts": [
                {"text": "A ", "match": False},
                {"text": "quince", "match": True},
                {"text": " is hard and sour.", "match": False},
            ],
        },
    ]
    assert [line["number"] for line in found["quince"]["excerpt"]] == [7, 8]
    assert all("excerpt" not in hit for hit in plain)
    assert_error(service.post("/v1/search", {"query": "x", "excerpts": "yes"}), 422, "invalid_request")


@pytest.mark.parametrize("query", ["***", '" ( ) OR -', "\u202e\x00quince"])
def test_any_query_has_excerpts(service: Service, query: str) -> None:
    for hit in service.search(query, excerpts=True)["hits"]:
        assert "".join(part["text"] for line in hit["excerpt"] for part in line["parts"])


def test_include_and_neighbours_are_passed_to_the_engine(service: Service) -> None:
    service.db.add(
        [
            Record(id="note", text="orchard apples", collection="memory"),
            *(
                Record(
                    id=f"book/{position}",
                    text=f"orchard page {position}",
                    collection="artifact_chunks",
                    parent="book",
                    position=position,
                )
                for position in range(3)
            ),
        ]
    )
    without = service.search("orchard", recipe="artifacts", limit=10)
    assert "note" not in {hit["id"] for hit in without["hits"]}
    found = service.search("orchard page 1", recipe="artifacts", limit=10, include=["memory"], neighbours=1)
    assert "note" in {hit["id"] for hit in found["hits"]}
    chunk = next(hit for hit in found["hits"] if hit["collection"] == "artifact_chunks")
    assert "[CHUNK BOUNDARY]" in chunk["passage"]


def test_search_without_results_returns_an_empty_list(service: Service) -> None:
    assert service.search("zzzzqqqq", recipe="keyword")["hits"] == []
    assert service.search("", recipe="keyword")["hits"] == []


def test_context_returns_turns_and_facts(service: Service) -> None:
    response = service.get("/v1/context", query="What did I tell Priya about vacation?", limit=5)
    assert response.status_code == 200
    body = response.json()
    assert body["recipe"] == "memory"
    by_id = {result["id"]: result for result in body["results"]}
    said = by_id["said/1"]
    assert said["text"] == "I told Priya we can do March for vacation"
    assert said["source_session"] == "s1"
    assert said["timestamp"] == "2026-03-03T18:00:00+00:00"
    assert said["speaker"] == "Rajesh"
    assert said["entities"] == ["Priya"]
    assert 0 < said["relevance_score"] < 1
    known = by_id[FACT.id]
    assert known["text"] == "Rajesh -> Priya: planning vacation to Goa in March"
    assert known["speaker"] is None
    assert known["entities"] == ["Rajesh", "Priya"]


def test_context_can_be_returned_as_a_prompt_block(service: Service) -> None:
    response = service.get("/v1/context", query="What did I tell Priya about vacation?", format="prompt")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    lines = response.text.splitlines()
    assert (lines[0], lines[-1]) == ("<memory>", "</memory>")
    assert HEADING in lines
    assert '- Rajesh said: "I told Priya we can do March for vacation"' in lines
    assert "- Rajesh -> Priya: planning vacation to Goa in March" in lines
    with_source = service.get("/v1/context", query="vacation", format="prompt", provenance=True).text
    assert "(s1, 2026-03-03)" in with_source
    nothing = service.get("/v1/context", query="zzzzqqqq", recipe="keyword", format="prompt")
    assert (nothing.status_code, nothing.text) == (200, "")


def test_context_says_what_the_block_holds_and_what_it_had_no_room_for(service: Service) -> None:
    body = service.get("/v1/context", query="vacation in March", provenance=True).json()
    text = service.get("/v1/context", query="vacation in March", provenance=True, format="prompt").text
    assert body["block"] == text
    assert body["max_characters"] == 2000
    said = next(one for one in body["results"] if one["id"] == "said/1")
    line = '- Rajesh said: "I told Priya we can do March for vacation" (s1, 2026-03-03)\n'
    assert (said["characters"], said["shortened"], said["in_block"]) == (len(line), False, True)
    turns = [
        {"session": "s2", "speaker": "Rajesh", "text": f"The ferry {number} leaves. {'x' * 200}"}
        for number in range(14)
    ]
    service.post("/v1/turns", turns)
    results = service.get("/v1/context", query="ferry leaves", recipe="keyword", limit=14).json()["results"]
    assert all(one["shortened"] for one in results)
    assert {one["in_block"] for one in results} == {True, False}


def test_look_back_limits_the_age_of_context(service: Service) -> None:
    def ids(**more: Any) -> set[str]:
        response = service.get("/v1/context", query="I told Priya vacation", **more)
        assert response.status_code == 200, response.text
        return {result["id"] for result in response.json()["results"]}

    assert "said/1" in ids()
    assert "said/1" in ids(look_back=900_000)
    assert "said/1" not in ids(look_back=1)
    assert "said/1" not in ids(look_back="default")
    assert_error(service.get("/v1/context", query="x", look_back="sometimes"), 422, "invalid_request")


def test_why_returns_the_deciding_stage(service: Service) -> None:
    kept = service.get("/v1/why", query="vineyard", id="harvest").json()
    assert kept["kept"] is True
    assert kept["rank"] == 1
    out = service.get("/v1/why", query="vineyard", id="said/1", limit=1, recipe="keyword").json()
    assert out["kept"] is False
    assert out["stage"] == "source:keyword"
    filtered = service.get("/v1/why", query="vineyard", id="harvest", filters="kind = 'note'").json()
    assert filtered["stage"] == "filter"


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "body.query"),
        ({"query": 5}, "body.query"),
        ({"query": None}, "body.query"),
        ({"query": "x", "limit": 0}, "body.limit"),
        ({"query": "x", "limit": 1001}, "body.limit"),
        ({"query": "x", "limit": "5"}, "body.limit"),
        ({"query": "x", "limit": True}, "body.limit"),
        ({"query": "x", "neighbours": 51}, "body.neighbours"),
        ({"query": "x", "include": "memory"}, "body.include"),
        ({"query": "x", "keywords": ["a"] * 101}, "body.keywords"),
        ({"query": "x", "explain": "yes"}, "body.explain"),
        ({"query": "x", "filters": ["a"]}, "body.filters"),
        ({"query": "x", "caller": {"clearance": "private"}}, "body.caller"),
        ({"query": "x" * 100_001}, "body.query"),
        ([], "body"),
        ("query", "body"),
    ],
)
def test_invalid_search_body_gets_422_with_the_field(service: Service, body: object, where: str) -> None:
    message = assert_error(service.post("/v1/search", body), 422, "invalid_request")
    assert message.startswith(where)


def test_an_unknown_field_of_a_body_is_refused_with_the_nearest_or_all(service: Service) -> None:
    misspelt = service.post("/v1/search", {"query": "x", "limi": 3})
    assert assert_error(misspelt, 422, "invalid_request") == (
        "body.limi: There is no such field. Did you mean 'limit'?"
    )
    wrapped = service.post("/v1/records", {"records": [{"id": "a", "text": "x"}]})
    assert assert_error(wrapped, 422, "invalid_request").startswith(
        "body.records: There is no such field. The fields are: id, text, "
    )


def test_engine_errors_keep_their_message(service: Service) -> None:
    assert "There is no recipe 'nope'" in assert_error(
        service.post("/v1/search", {"query": "x", "recipe": "nope"}), 404, "not_found"
    )
    assert "position" in assert_error(
        service.post("/v1/search", {"query": "x", "filters": "kind ="}), 422, "invalid_request"
    )
    assert_error(service.post("/v1/search", {"query": "x", "include": ["memory"]}), 422, "invalid_request")
    assert_error(service.get("/v1/context"), 422, "invalid_request")
    assert_error(service.get("/v1/context", query="x", format="xml"), 422, "invalid_request")
    assert_error(service.get("/v1/why", query="x"), 422, "invalid_request")
    assert_error(service.get("/v1/why", query="x", id="nobody"), 404, "not_found")


def test_unknown_routes_and_methods_get_the_error_format(service: Service) -> None:
    assert_error(service.get("/v2/search"), 404, "not_found")
    assert_error(service.get("/nothing-here"), 404, "not_found")
    wrong = service.get("/v1/search")
    assert_error(wrong, 405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
    assert service.client.post("/openapi.json").headers["allow"] == "GET, HEAD"
