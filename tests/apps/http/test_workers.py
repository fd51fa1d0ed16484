"""`sennit serve --workers`: several processes that answer as one."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import httpx
import pytest

from sennit.apps.http.app import HttpOptions
from sennit.apps.http.server import WorkerConfig, serve_with_workers
from sennit.apps.sockets import listen
from sennit.errors import StoreError

from .conftest import WAIT, Place, Running, running, until


def ask(server: Running, place: Place, path: str = "/v1/context?query=vineyard") -> httpx.Response:
    """Over a connection of its own, which any worker may take."""
    return httpx.get(server.url + path, headers=place.header("writer"), timeout=WAIT)


def workers_of(server: Running) -> set[int]:
    """The processes that have answered so far."""
    return {line["process"] for line in server.lines() if line.get("event") == "request"}


def all_have_answered(server: Running, place: Place, count: int) -> bool:
    assert ask(server, place).status_code == 200
    return len(workers_of(server)) >= count


def ended(url: httpx.URL) -> bool:
    try:
        socket.create_connection((url.host, url.port or 80), timeout=1).close()
    except OSError:
        return True
    return False


def test_workers_share_a_socket_and_tell_their_figures_together(place: Place) -> None:
    with running(place, "--workers", "2") as server:
        until(lambda: all_have_answered(server, place, 2), "an answer of each worker")
        assert server.process.pid not in workers_of(server)
        answered = sum(line.get("route") == "/v1/context" for line in server.lines())
        for _ in range(5):
            page = ask(server, place, "/metrics").text
            sums = 'sennit_http_requests_total{method="GET",route="/v1/context",status="200"}'
            assert f"{sums} {float(answered)}" in page
            assert "sennit_http_requests_in_flight 1.0" in page
            assert "sennit_vectors_pending 0.0" in page
        assert ask(server, place, "/readyz").json()["status"] == "ready"
        assert server.stop() == 0
        events = [line["event"] for line in server.lines() if line["event"] != "request"]
        assert events == ["started", "stopped"]
        assert server.lines()[0]["workers"] == 2


def test_what_one_worker_writes_the_others_find(place: Place) -> None:
    with running(place, "--workers", "2") as server:
        for turn in range(10):
            record = {"id": f"t{turn}", "text": f"turnstile {turn}"}
            httpx.post(
                f"{server.url}/v1/records", json=record, headers=place.header("writer"), timeout=WAIT
            ).raise_for_status()
            found = ask(server, place, f"/v1/context?query=turnstile%20{turn}&limit=1").json()
            assert found["results"][0]["id"] == f"t{turn}"
        assert server.stop(signal.SIGINT) == 0


def test_a_worker_that_is_killed_is_replaced(place: Place) -> None:
    with running(place, "--workers", "2") as server:
        until(lambda: all_have_answered(server, place, 2), "an answer of each worker")
        os.kill(min(workers_of(server)), signal.SIGKILL)
        until(lambda: any(line["level"] == "error" for line in server.lines()), "a line about its end")
        until(lambda: all_have_answered(server, place, 3), "an answer of the new one")
        assert server.stop() == 0


def test_workers_end_with_the_process_that_started_them(place: Place) -> None:
    with running(place, "--workers", "2") as server:
        until(lambda: all_have_answered(server, place, 2), "an answer of each worker")
        server.stop(signal.SIGKILL)
        until(lambda: ended(httpx.URL(server.url)), "the end of the workers")


def test_a_worker_that_cannot_begin_ends_the_service(tmp_path: Path) -> None:
    nothing = tmp_path / "file"
    nothing.write_text("not a folder")
    with listen("127.0.0.1", 0) as listener, pytest.raises(StoreError, match="failed with exit code"):
        serve_with_workers(WorkerConfig(path=nothing, options=HttpOptions(), quiet=True), listener, 2)
