"""The recipe `memory` on Postgres, Qdrant and Graphiti: its worked figures, and each server killed in turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from scripts.servers.falkordb import FalkorProcess
from scripts.servers.postgres import PostgresServer
from scripts.servers.qdrant import QdrantCluster

from journeys.conftest import DEADLINE_SECONDS, RankedModel, Service, User, wait_until

pytestmark = pytest.mark.servers

QUESTION = "What did I tell Priya about vacation?"
GOA = "We should plan that Goa trip, Priya"
TOLD = "I told Priya we can do March for vacation"
DATES = "Priya said she needs to check dates"
FLIGHTS = "Looking at flights to Goa for next month"
FACT = "Rajesh -> Priya: planning vacation to Goa in March"
LATE = "Priya booked the ferry to Goa"
AGES = {GOA: 5, TOLD: 3, DATES: 3, FLIGHTS: 45}


@pytest.fixture
def model() -> Iterator[RankedModel]:
    server = RankedModel([GOA, TOLD, FLIGHTS, DATES, LATE])
    yield server
    server.close()


@pytest.fixture
def service(
    user: User, dsn: str, qdrant: QdrantCluster, falkordb: FalkorProcess, model: RankedModel
) -> Iterator[Service]:
    """A service with the worked example, written by the command line."""
    user.target = dsn
    user.configure(
        f"""
        [roles]
        records = "postgres"
        keyword = "qdrant"
        vector = "qdrant"
        graph = "graphiti"
        [qdrant]
        urls = ["{qdrant.urls[0]}"]
        timeout_seconds = {DEADLINE_SECONDS}
        [graphiti]
        backend = "falkordb"
        url = "{falkordb.url}"
        timeout_seconds = {DEADLINE_SECONDS}
        [embedding]
        provider = "ollama"
        model = "ranked"
        base_url = "{model.url}"
        """
    )
    now = datetime.now(UTC)
    turns = [
        {
            "text": text,
            "speaker": "Rajesh",
            "session": "call",
            "timestamp": (now - timedelta(days=days)).isoformat(),
        }
        for text, days in AGES.items()
    ]
    (user.folder / "call.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    user.run("remember", "--from", "call.jsonl")
    user.run("facts", "add", "Rajesh", "planning", "Priya", "--text", "planning vacation to Goa in March")
    user.run("migrate")
    found = user.json("doctor")["findings"]
    assert {"qdrant", "graphiti"} <= {one["check"] for one in found if one["level"] == "ok"}
    with user.serving() as service:
        wait_until(service.is_complete, "the servers to have every change")
        yield service


def check_figures(service: Service) -> None:
    """The numbers of the worked example in the specification."""
    answer = service.search(QUESTION, recipe="memory", limit=10, recency=1, explain=True)
    assert answer["degraded"] == []
    hits: dict[str, Any] = {hit["text"]: hit for hit in answer["hits"]}
    told, flights = hits[TOLD], hits[FLIGHTS]
    ranks = {one["source"]: one["rank"] for one in told["explanation"]["sources"]}
    assert {ranks["keyword"], ranks["vector"]} == {1, 2}
    assert round(told["explanation"]["fused"], 4) == 0.0325
    assert round(told["score"], 4) == 0.0303
    assert round(flights["explanation"]["fused"], 4) == 0.0159
    assert round(flights["score"], 4) == 0.0056
    assert hits[FACT]["score"] == pytest.approx(1 / 61)


@pytest.mark.timeout(900)
def test_memory_on_three_servers_survives_the_loss_of_each(
    user: User,
    service: Service,
    postgres: PostgresServer,
    qdrant: QdrantCluster,
    falkordb: FalkorProcess,
) -> None:
    check_figures(service)
    block = service.client.get("/v1/context", params={"query": QUESTION}).json()
    assert {one["text"] for one in block["results"]} == {*AGES, FACT}
    confirmed = service.ids()

    # The indexes of words and vectors are gone: facts answer, and the answer says what is missing.
    qdrant.kill()
    answer = service.search(QUESTION, recipe="memory")
    assert [hit["text"] for hit in answer["hits"]] == [FACT]
    assert {"keyword", "vector"} <= {one["source"] for one in answer["degraded"]}
    assert all("cannot be reached" in one["reason"] for one in answer["degraded"])
    shown = user.try_to("search", QUESTION, "--recipe", "memory")
    assert (shown.returncode, FACT in shown.stdout) == (0, True)
    assert "Warning: the source keyword did not answer: Qdrant at" in shown.stderr
    late = {"text": LATE, "speaker": "Rajesh", "session": "call"}
    service.post("/v1/turns", late)
    found = service.search("Who booked the ferry?", recipe="memory")
    assert LATE in {hit["text"] for hit in found["hits"]}, "what was just written is found without the server"
    qdrant.restart()
    wait_until(lambda: not service.degraded(QUESTION, recipe="memory"), "Qdrant to answer again")
    wait_until(service.is_complete, "Qdrant to get what was written meanwhile")
    check_figures(service)
    found = service.search("Who booked the ferry?", recipe="memory")
    assert LATE in {hit["text"] for hit in found["hits"]}

    # The graph is gone: words and vectors answer.
    falkordb.kill()
    answer = service.search(QUESTION, recipe="memory")
    assert {one["source"] for one in answer["degraded"]} == {"graph"}
    assert {GOA, TOLD, DATES} <= {hit["text"] for hit in answer["hits"]}
    service.post("/v1/facts", {"subject": "Anil", "relation": "works at", "object": "the harbour"})
    falkordb.start()
    wait_until(lambda: not service.degraded(QUESTION, recipe="memory"), "FalkorDB to answer again")
    wait_until(service.is_complete, "the graph to get what was written meanwhile")
    check_figures(service)
    found = service.search("Where does Anil work?", recipe="memory")
    assert "Anil -> the harbour: works at" in {hit["text"] for hit in found["hits"]}

    # The source of truth is gone: nothing can be answered or written, which is said, and nothing is lost.
    before = service.ids()
    assert before > confirmed
    postgres.kill()
    refused = service.client.post("/v1/search", json={"query": QUESTION, "recipe": "memory"})
    assert refused.status_code == 503
    assert service.client.post("/v1/turns", json=late).status_code == 503
    postgres.start()
    wait_until(
        lambda: service.client.post("/v1/search", json={"query": QUESTION}).status_code == 200,
        "Postgres to answer again",
    )
    assert service.ids() == before
    check_figures(service)
