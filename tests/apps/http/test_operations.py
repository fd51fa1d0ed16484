"""Health, readiness, metrics and the log."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sennit.apps.http.app import HttpOptions
from sennit.apps.http.logs import JsonFormatter
from stores.embedding_server import EmbeddingServer

from .conftest import Service, StartService, assert_error, wait_until


def figures(service: Service) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = service.get("/metrics").text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def figure(service: Service, name: str, **labels: str) -> float:
    return figures(service).get((name, frozenset(labels.items())), 0.0)


# Health and readiness


def test_healthz_and_readyz(service: Service) -> None:
    assert service.get("/healthz", None).json() == {"status": "alive"}
    assert service.get("/readyz", None).json() == {
        "status": "ready",
        "database": "open",
        "vectors": "complete",
    }
    ready = service.get("/readyz").json()
    assert ready["models"] == [
        {"model": "static/sennit-static-256", "state": "active", "pending": 0, "total": 6, "progress": 1.0}
    ]
    assert ready["last_error"] is None


def test_readyz_without_an_embedding_model(serve: StartService) -> None:
    with serve(embedding__provider="none") as service:
        assert service.get("/readyz", None).json()["vectors"] == "off"


def test_pending_vectors_are_reported_and_decrease(serve: StartService) -> None:
    server = EmbeddingServer()
    try:
        with serve(**server.settings) as service:

            def ready() -> Any:
                return service.get("/readyz").json()

            service.search("anything")  # the first search selects the new model
            wait_until(lambda: [one["state"] for one in ready()["models"]] == ["active"], "the new model")
            server.hold()
            service.post("/v1/turns", [{"session": "s", "text": f"turn {at}"} for at in range(5)])
            assert len(service.search("turn", recipe="keyword")["hits"]) == 5
            assert ready()["vectors"] == "building"
            (model,) = ready()["models"]
            assert (model["pending"], model["total"]) == (5, 11)
            assert model["progress"] == pytest.approx(6 / 11, abs=1e-6)
            assert figure(service, "sennit_vectors_pending") == 5
            server.release()
            wait_until(lambda: ready()["vectors"] == "complete", "all vectors")
            assert figure(service, "sennit_vectors_pending") == 0
    finally:
        server.close()


def test_closed_database_is_not_ready(service: Service) -> None:
    service.db.close()
    assert service.get("/healthz", None).status_code == 200
    assert_error(service.get("/readyz", None), 503, "unavailable")


# Metrics


def test_metrics_count_requests_searches_and_writes(service: Service) -> None:
    before = figures(service)
    service.search("vineyard")
    service.get("/v1/context", query="vineyard")
    service.post("/v1/search", {"query": 5})
    service.get("/v1/context", None, query="x")
    service.get("/nothing")
    service.post("/v1/records", [{"id": "a", "text": "x"}, {"id": "harvest", "text": "x"}])
    service.request("DELETE", "/v1/records/a")
    service.request("BREW", "/v1/records/a")
    after = figures(service)

    def moved(name: str, **labels: str) -> float:
        key = (name, frozenset(labels.items()))
        return after.get(key, 0.0) - before.get(key, 0.0)

    requests = "sennit_http_requests_total"
    assert moved(requests, route="/v1/search", method="POST", status="200") == 1
    assert moved(requests, route="/v1/search", method="POST", status="422") == 1
    assert moved(requests, route="/v1/context", method="GET", status="200") == 1
    assert moved(requests, route="other", method="GET", status="401") == 1
    assert moved(requests, route="other", method="GET", status="404") == 1
    assert moved(requests, route="/v1/records/{id}", method="DELETE", status="200") == 1
    assert sum(value for (name, labels), value in after.items() if ("method", "BREW") in labels) == 0
    assert moved("sennit_http_request_seconds_count", route="/v1/search") == 2
    assert moved("sennit_search_seconds_count", recipe="default") == 1
    assert moved("sennit_search_seconds_count", recipe="memory") == 1
    assert moved("sennit_records_written_total", change="added") == 1
    assert moved("sennit_records_written_total", change="updated") == 1
    assert moved("sennit_records_written_total", change="removed") == 1
    assert after["sennit_http_requests_in_flight", frozenset()] == 1


def test_metrics_do_not_contain_callers_or_records(service: Service) -> None:
    service.get("/v1/why", query="secret question", id="harvest")
    service.request("DELETE", "/v1/records/harvest")
    service.get("/some/secret/path")
    page = service.get("/metrics").text
    for word in ("secret", "harvest", "writer", "reader", *service.sample.tokens.values()):
        assert word not in page


# The log


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "sennit.http")
    return lambda: [json.loads(JsonFormatter().format(record)) for record in caplog.records]


def test_each_request_logs_one_line(service: Service, lines: Any) -> None:
    response = service.post("/v1/search", {"query": "vineyard grapes"})
    service.request("DELETE", "/v1/records/harvest-secret")
    service.get("/v1/context", None, query="vineyard grapes")
    searched, removed, refused = (line for line in lines() if line.get("event") == "request")
    assert searched["request_id"] == response.headers["x-request-id"]
    assert (searched["method"], searched["route"], searched["status"]) == ("POST", "/v1/search", 200)
    assert (searched["token"], searched["recipe"], searched["hits"]) == ("writer", "default", 3)
    assert searched["bytes_in"] == len('{"query":"vineyard grapes"}')
    assert searched["bytes_out"] == len(response.content)
    assert searched["milliseconds"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", searched["time"])
    assert (removed["route"], removed["status"]) == ("/v1/records/{id}", 404)
    assert (refused["status"], refused["token"]) == (401, None)


def test_log_does_not_contain_queries_or_records(
    service: Service, lines: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service.search("vineyard grapes")
    service.get("/v1/context", query="vineyard grapes", format="prompt")
    service.get("/v1/why", query="vineyard grapes", id="harvest")
    service.post("/v1/records", {"id": "grapes", "text": "vineyard"})
    service.request("DELETE", "/v1/records/grapes")
    said = json.dumps([line for line in lines() if line["logger"].startswith("sennit")])
    for word in ("vineyard", "grapes", "harvest", *service.sample.tokens.values()):
        assert word not in said


def test_log_queries_option_logs_queries(serve: StartService, lines: Any) -> None:
    with serve(HttpOptions(log_queries=True)) as service:
        service.search("vineyard grapes")
    assert [line["query"] for line in lines() if "query" in line] == ["vineyard grapes"]


def test_log_line_contains_no_line_breaks(lines: Any, serve: StartService) -> None:
    with serve(HttpOptions(log_queries=True)) as service:
        service.search('a\nb\r\n{"event": "request"}\u2028\x1b[2J')
    record = JsonFormatter().format(
        logging.LogRecord("sennit", logging.INFO, "", 0, "a\nb\u2028", None, None)
    )
    assert len(record.splitlines()) == 1
    assert record.isascii()
