"""Generated answers over HTTP: complete, streamed, and with a language model that fails."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import httpx
import pytest

from llm.server import PATHS, ChatServer, Response, endless, events, hang, streamed
from sennit import Record
from sennit.apps.http.app import HttpOptions
from sennit.apps.http.limits import Limits

from ..conftest import document
from .conftest import (
    TIMEOUT_SECONDS,
    RunningServer,
    SampleDatabase,
    Service,
    StartService,
    assert_error,
    run_server,
    wait_until,
)

QUESTION = {"query": "what is a lease?"}


@pytest.fixture
def sample(sample: SampleDatabase, tmp_path: Path) -> SampleDatabase:
    document(sample.path, tmp_path / "docs")
    return sample


def parsed(stream: str) -> list[tuple[str, Any]]:
    """The events of a stream: name and data."""
    found = []
    for event in stream.split("\n\n")[:-1]:
        name, data = event.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def ask(service: Service, who: str | None = "reader", **more: Any) -> Any:
    answer = service.post("/v1/ask", QUESTION | more, who)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_without_a_model_the_answer_consists_of_found_sentences(service: Service) -> None:
    answer = ask(service)
    assert "A lease is a loan of a job to a worker. [1]" in answer["text"]
    assert answer["model"] is None
    assert answer["citations"][0]["number"] == 1
    assert answer["citations"][0]["location"].endswith("leases.md:1-5")
    assert answer["degraded"] == []
    (page,) = answer["pages"]
    assert page["name"] == "Leases"
    assert all("tenant" not in record for record in (*page["chunks"], *answer["examples"]))
    assert "configure(lease=60)" in answer["examples"][0]["text"]
    assert "prompt" not in answer


def test_citations_of_the_model_are_checked(serve: StartService, chat: ChatServer) -> None:
    chat.says = "It is a loan [1]. Nonsense [99]."
    with serve(**chat.settings()) as service:
        answer = ask(service)
    assert (answer["text"], answer["model"]) == ("It is a loan [1]. Nonsense.", "openai/small")
    assert answer["removed_citations"] == [99]


def test_stream_ends_with_the_complete_answer(serve: StartService, chat: ChatServer) -> None:
    chat.says = "It is a loan [1],\nand a short one."
    with serve(**chat.settings()) as service:
        whole = ask(service)
        told = service.post("/v1/ask", {**QUESTION, "stream": True}, "reader")
    assert told.headers["content-type"].startswith("text/event-stream")
    *parts, (last, answer) = parsed(told.text)
    assert {name for name, _ in parts} == {"text"}
    assert len(parts) > 2
    assert "".join(value["text"] for _, value in parts) == answer["text"] == chat.says
    assert last == "answer"
    varies = {"milliseconds": 0, "query_id": ""}
    assert answer | varies == whole | varies


def test_ask_parameters_are_passed_to_the_engine(service: Service) -> None:
    service.db.add([Record(id="m1", text="We picked March for Goa.", collection="memory")])
    answer = ask(service, query="when did we pick Goa?", recipe="memory")
    assert "We picked March for Goa. [" in answer["text"]
    assert len(ask(service, limit=1, recipe="keyword", query="lease")["pages"]) == 1
    assert ask(service, filters="kind = 'nothing'")["text"] == "Nothing was found that answers this."
    assert ask(service, editor="configure(lease=1)", language="python")["editor_keywords"]
    assert ask(service, transform=False)["transform"] == {}


def test_write_false_returns_the_prompt_without_calling_the_model(
    serve: StartService, chat: ChatServer
) -> None:
    with serve(**chat.settings()) as service:
        answer = ask(service, write=False)
    assert answer["text"] == ""
    assert "A lease is a loan" in answer["prompt"]
    assert chat.requests == []


def test_hidden_records_are_in_no_prompt_and_no_answer(serve: StartService, chat: ChatServer) -> None:
    with serve(**chat.settings()) as service:
        for who, sees in (("reader", False), ("other", False), ("owner", True)):
            answer = service.post("/v1/ask", {"query": "lease of the vault", "write": False}, who)
            assert ("eleven" in answer.text) is sees
            told = service.post("/v1/ask", {"query": "lease of the vault", "stream": True}, who)
            assert ("eleven" in told.text) is sees
    said = [json.dumps(request.body) for request in chat.requests]
    assert ["eleven" in prompt for prompt in said] == [False, False, True]


def test_failed_model_is_reported_without_its_url(serve: StartService, chat: ChatServer) -> None:
    chat.script = [Response(500), Response(500)]
    with serve(**chat.settings()) as service:
        whole = service.post("/v1/ask", QUESTION)
        told = service.post("/v1/ask", {**QUESTION, "stream": True})
        figures = service.get("/metrics").text
    for answer in (whole.json(), parsed(told.text)[-1][1]):
        assert "A lease is a loan of a job to a worker. [1]" in answer["text"]
        assert [one["source"] for one in answer["degraded"]] == ["answer"]
    assert "127.0.0.1" not in whole.text + told.text
    assert 'sennit_source_failures_total{source="answer"} 2.0' in figures


def test_failed_transform_is_reported_without_the_models_url(serve: StartService, chat: ChatServer) -> None:
    chat.script = [Response(500)]
    with serve(**chat.settings() | {"llm__transform": "auto"}) as service:
        answer = service.post("/v1/ask", {**QUESTION, "write": False})
    assert answer.json()["transform"]["error"]
    assert "transform" in {one["source"] for one in answer.json()["degraded"]}
    assert "127.0.0.1" not in answer.text


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "body.query"),
        ({"query": "x", "limit": 0}, "body.limit"),
        ({"query": "x", "editor": "x" * 1_000_001}, "body.editor"),
        ({"query": "x", "editor": 5}, "body.editor"),
        ({"query": "x", "stream": "yes"}, "body.stream"),
        ({"query": "x", "caller": {"clearance": "private"}}, "body.caller"),
        ({"query": "x" * 100_001}, "body.query"),
    ],
)
def test_invalid_ask_body_gets_422_with_the_field(service: Service, body: object, where: str) -> None:
    assert assert_error(service.post("/v1/ask", body), 422, "invalid_request").startswith(where)


@pytest.mark.parametrize("stream", [False, True])
def test_error_before_the_first_event_is_a_response_and_no_stream(service: Service, stream: bool) -> None:
    def post(who: str | None = "reader", **more: Any) -> Any:
        return service.post("/v1/ask", {**QUESTION, "stream": stream, **more}, who)

    assert_error(post(recipe="nope"), 404, "not_found")
    assert_error(post(filters="kind ="), 422, "invalid_request")
    assert_error(post(None), 401, "unauthorized")


def test_slow_model_gets_504_or_an_error_event(serve: StartService, chat: ChatServer) -> None:
    limits = HttpOptions(limits=Limits(timeout_seconds=1.0))
    begun = events(PATHS["openai"], ["It is ", "a loan "])[:2]
    chat.script = [Response(act=hang), Response(act=hang), streamed(begun, then_hang=True)]
    with serve(limits, **chat.settings()) as service:
        assert_error(service.post("/v1/ask", QUESTION), 504, "timeout")
        assert_error(service.post("/v1/ask", {**QUESTION, "stream": True}), 504, "timeout")
        told = service.post("/v1/ask", {**QUESTION, "stream": True})
        chat.close()
    assert told.status_code == 200
    (first, part), *_, (last, problem) = parsed(told.text)
    assert (first, part, last) == ("text", {"text": "It is"}, "error")
    assert problem["error"]["code"] == "timeout"
    assert problem["error"]["request_id"] == told.headers["x-request-id"]


def test_waiting_for_a_model_does_not_block_searches(serve: StartService, chat: ChatServer) -> None:
    asked, released = threading.Event(), threading.Event()

    def slow(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
        asked.set()
        released.wait(TIMEOUT_SECONDS)

    chat.script = [Response(act=slow)]
    with (
        serve(HttpOptions(limits=Limits(threads=1)), **chat.settings()) as service,
        ThreadPoolExecutor(1) as beside,
    ):
        answer = beside.submit(ask, service)
        assert asked.wait(TIMEOUT_SECONDS)
        assert service.search("vineyard")["hits"]
        assert not answer.done()
        released.set()
        assert "loan" in answer.result()["text"]


# A real server


def listening(server: RunningServer, sample: SampleDatabase) -> AbstractContextManager[httpx.Response]:
    """An answer as it comes."""
    return httpx.stream(
        "POST",
        f"{server.url}/v1/ask",
        json={**QUESTION, "stream": True},
        headers=sample.auth_header("reader"),
        timeout=TIMEOUT_SECONDS,
    )


def test_events_arrive_while_the_model_is_writing(sample: SampleDatabase, chat: ChatServer) -> None:
    released = threading.Event()

    def slow(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
        first, second, *end = events(PATHS["openai"], ["It is a loan ", "of a job [1]."])
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + first)
        handler.wfile.flush()
        released.wait(TIMEOUT_SECONDS)
        handler.wfile.write(second + b"".join(end))

    chat.script = [Response(act=slow)]
    with run_server(sample, env=chat.environment()) as server:
        with listening(server, sample) as told:
            lines = told.iter_lines()
            assert (next(lines), next(lines)) == ("event: text", 'data: {"text":"It is a loan"}')
            released.set()
            answer = json.loads([line for line in lines if line][-1].removeprefix("data: "))
        assert answer["text"] == "It is a loan of a job [1]."
        assert server.stop() == 0
        (line,) = [line for line in server.lines() if line.get("route") == "/v1/ask"]
        assert (line["status"], line["model"], line["citations"]) == (200, "openai/small", 1)
        assert "query" not in line


def test_client_disconnect_stops_reading_from_the_model(sample: SampleDatabase, chat: ChatServer) -> None:
    unheard = threading.Event()
    chat.script = [Response(act=endless(unheard))]
    patient = chat.environment() | {"SENNIT_LLM_TIMEOUT": "600"}
    with run_server(sample, "--timeout", "600", env=patient) as server:
        with listening(server, sample) as told:
            assert next(told.iter_lines()) == "event: text"
        assert unheard.wait(TIMEOUT_SECONDS)
        wait_until(
            lambda: any(line.get("route") == "/v1/ask" for line in server.lines()), "the line of the log"
        )
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text()
