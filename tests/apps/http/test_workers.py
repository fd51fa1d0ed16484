"""`sennit serve --workers`: several processes on one socket."""

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

from .conftest import TIMEOUT_SECONDS, RunningServer, SampleDatabase, run_server, wait_until


def ask(
    server: RunningServer, sample: SampleDatabase, path: str = "/v1/context?query=vineyard"
) -> httpx.Response:
    """Send a request over a new connection, which any worker may accept."""
    return httpx.get(server.url + path, headers=sample.auth_header("writer"), timeout=TIMEOUT_SECONDS)


def workers_of(server: RunningServer) -> set[int]:
    """The processes that have logged a request so far."""
    return {line["process"] for line in server.lines() if line.get("event") == "request"}


def all_have_answered(server: RunningServer, sample: SampleDatabase, count: int) -> bool:
    assert ask(server, sample).status_code == 200
    return len(workers_of(server)) >= count


def ended(url: httpx.URL) -> bool:
    try:
        socket.create_connection((url.host, url.port or 80), timeout=1).close()
    except OSError:
        return True
    return False


def test_workers_share_a_socket_and_sum_their_metrics(sample: SampleDatabase) -> None:
    with run_server(sample, "--workers", "2") as server:
        wait_until(lambda: all_have_answered(server, sample, 2), "an response of each worker")
        assert server.process.pid not in workers_of(server)
        answered = sum(line.get("route") == "/v1/context" for line in server.lines())
        for _ in range(5):
            page = ask(server, sample, "/metrics").text
            sums = 'sennit_http_requests_total{method="GET",route="/v1/context",status="200"}'
            assert f"{sums} {float(answered)}" in page
            assert "sennit_http_requests_in_flight 1.0" in page
            assert "sennit_vectors_pending 0.0" in page
        assert ask(server, sample, "/readyz").json()["status"] == "ready"
        assert server.stop() == 0
        events = [line["event"] for line in server.lines() if line["event"] != "request"]
        assert events == ["started", "stopped"]
        assert server.lines()[0]["workers"] == 2


def test_writes_of_one_worker_are_visible_to_the_others(sample: SampleDatabase) -> None:
    with run_server(sample, "--workers", "2") as server:
        for turn in range(10):
            record = {"id": f"t{turn}", "text": f"turnstile {turn}"}
            httpx.post(
                f"{server.url}/v1/records",
                json=record,
                headers=sample.auth_header("writer"),
                timeout=TIMEOUT_SECONDS,
            ).raise_for_status()
            found = ask(server, sample, f"/v1/context?query=turnstile%20{turn}&limit=1").json()
            assert found["results"][0]["id"] == f"t{turn}"
        assert server.stop(signal.SIGINT) == 0


def test_killed_worker_is_replaced(sample: SampleDatabase) -> None:
    with run_server(sample, "--workers", "2") as server:
        wait_until(lambda: all_have_answered(server, sample, 2), "an response of each worker")
        os.kill(min(workers_of(server)), signal.SIGKILL)
        wait_until(lambda: any(line["level"] == "error" for line in server.lines()), "a line about its end")
        wait_until(lambda: all_have_answered(server, sample, 3), "an response of the new one")
        assert server.stop() == 0


def test_workers_exit_with_the_parent_process(sample: SampleDatabase) -> None:
    with run_server(sample, "--workers", "2") as server:
        wait_until(lambda: all_have_answered(server, sample, 2), "an response of each worker")
        server.stop(signal.SIGKILL)
        wait_until(lambda: ended(httpx.URL(server.url)), "the end of the workers")


def test_worker_that_cannot_start_stops_the_service(tmp_path: Path) -> None:
    nothing = tmp_path / "file"
    nothing.write_text("not a folder")
    with listen("127.0.0.1", 0) as listener, pytest.raises(StoreError, match="failed with exit code"):
        serve_with_workers(WorkerConfig(database=nothing, options=HttpOptions(), quiet=True), listener, 2)
