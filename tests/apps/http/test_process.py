"""`sennit serve` as a process: start, requests, and a shutdown that loses nothing."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

import sennit
from sennit import Record
from sennit.client import load_memory_context_sync

from .conftest import (
    PROGRAM,
    RECORDS,
    TIMEOUT_SECONDS,
    RunningServer,
    SampleDatabase,
    assert_error,
    make_sample,
    run_server,
    wait_until,
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> SampleDatabase:
    """Shared by all tests of this module."""
    return make_sample(tmp_path_factory.mktemp("sample"))


@pytest.fixture(scope="module")
def server(sample: SampleDatabase) -> Iterator[RunningServer]:
    with run_server(sample) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text()


def client(server: RunningServer, sample: SampleDatabase, who: str = "writer") -> httpx.Client:
    return httpx.Client(base_url=server.url, headers=sample.auth_header(who), timeout=TIMEOUT_SECONDS)


def started(*options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "serve", "--port", "0", *options],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=TIMEOUT_SECONDS,
    )


def test_main_routes_of_a_real_server(server: RunningServer, sample: SampleDatabase) -> None:
    with client(server, sample) as asked:
        assert asked.get("/healthz").json() == {"status": "alive"}
        assert asked.get("/readyz").json()["status"] == "ready"
        found = asked.post("/v1/search", json={"query": "vineyard"}).json()
        assert found["hits"][0]["id"] == "harvest"
        block = asked.get("/v1/context", params={"query": "vacation Priya", "format": "prompt"}).text
        assert '- Rajesh said: "I told Priya we can do March for vacation"' in block
        assert asked.get("/v1/why", params={"query": "vineyard", "id": "harvest"}).json()["kept"]
        assert asked.post("/v1/records", json={"id": "new", "text": "juniper"}).json()["added"] == 1
        assert asked.post("/v1/search", json={"query": "juniper"}).json()["hits"][0]["id"] == "new"
        assert asked.delete("/v1/records/new").json() == {"removed": 1}
        assert "sennit_http_requests_total" in asked.get("/metrics").text
        assert asked.get("/openapi.json").json()["info"]["title"] == "sennit"
        assert_error(asked.get("/v1/nothing"), 404, "not_found")
        for record_id in ("a/b c", "ü?#", "..", ".", "a//b", "a%2Fb", "a\x1fb", "/x", "x/"):
            kept = asked.post("/v1/records", json={"id": record_id, "text": "x"})
            assert kept.status_code == 200, kept.text
            # http.client, because httpx normalises paths.
            plain = http.client.HTTPConnection(
                asked.base_url.host, asked.base_url.port or 80, timeout=TIMEOUT_SECONDS
            )
            plain.request(
                "DELETE", f"/v1/records/{quote(record_id, safe='')}", headers=sample.auth_header("writer")
            )
            assert plain.getresponse().status == 200, record_id
            plain.close()
    assert server.lines()[0]["event"] == "started"
    assert {line["event"] for line in server.lines()} == {"started", "request"}


def test_client_loader_gets_memory_context(server: RunningServer, sample: SampleDatabase) -> None:
    block = load_memory_context_sync(
        server.url, token=sample.tokens["reader"], query="vacation with Priya", timeout=TIMEOUT_SECONDS
    )
    assert "- Rajesh -> Priya: planning vacation to Goa in March" in block.splitlines()
    assert load_memory_context_sync(server.url, token="wrong") == ""


def test_tokens_can_be_added_and_removed_while_serving(server: RunningServer, sample: SampleDatabase) -> None:
    def tokens(*args: str) -> str:
        done = subprocess.run(
            [PROGRAM, "tokens", *args, "--db", str(sample.path)], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    with httpx.Client(base_url=server.url, timeout=TIMEOUT_SECONDS) as asked:
        token = tokens("add", "late", "--tenant", "other")

        def found() -> httpx.Response:
            shown = {"authorization": f"Bearer {token}"}
            return asked.post("/v1/search", json={"query": "vineyard"}, headers=shown)

        assert {hit["id"] for hit in found().json()["hits"]} == {"harvest", "only-theirs"}
        refused = asked.post(
            "/v1/records", json={"id": "x", "text": "y"}, headers={"authorization": f"Bearer {token}"}
        )
        assert_error(refused, 403, "forbidden")
        tokens("remove", "late")
        assert_error(found(), 401, "unauthorized")


def test_writes_of_another_process_are_visible(server: RunningServer, sample: SampleDatabase) -> None:
    with client(server, sample) as asked, sennit.open(sample.path) as db:
        db.add([Record(id="beside", text="sycamore")])
        assert asked.post("/v1/search", json={"query": "sycamore"}).json()["hits"][0]["id"] == "beside"
        asked.post("/v1/records", json={"id": "from there", "text": "hawthorn"})
        assert db.search("hawthorn")[0].id == "from there"


def test_concurrent_clients(server: RunningServer, sample: SampleDatabase) -> None:
    def work(number: int) -> list[int]:
        with client(server, sample, ("reader", "owner")[number % 2]) as asked:
            return [
                asked.post("/v1/search", json={"query": f"vineyard {number} {turn}"}).status_code
                for turn in range(10)
            ]

    def write() -> list[int]:
        with client(server, sample) as asked:
            return [
                asked.post("/v1/records", json={"id": f"w{turn}", "text": f"vineyard {turn}"}).status_code
                for turn in range(30)
            ]

    with ThreadPoolExecutor(9) as pool:
        writing = pool.submit(write)
        answers = [status for statuses in pool.map(work, range(8)) for status in statuses]
        assert answers == [200] * 80
        assert writing.result() == [200] * 30


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_request_in_flight_is_finished_before_shutdown(
    sample: SampleDatabase, number: signal.Signals, workers: str
) -> None:
    last = f"{number.name}-{workers}"
    with run_server(sample, "--workers", workers) as server, client(server, sample) as asked:
        address = httpx.URL(server.url)
        body = json.dumps({"id": last, "text": "written at the very end"}).encode()
        with socket.create_connection((address.host, address.port), timeout=TIMEOUT_SECONDS) as half:
            head = (
                f"POST /v1/records HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nAuthorization: Bearer {sample.tokens['writer']}\r\n\r\n"
            )
            half.sendall(head.encode() + body[:10])
            wait_until(
                lambda: "sennit_http_requests_in_flight 2.0" in asked.get("/metrics").text, "half a request"
            )
            server.process.send_signal(number)
            wait_until(lambda: _refused(address), "the end of listening")
            half.sendall(body[10:])
            response = b""
            while part := half.recv(4096):
                response += part
        assert response.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'"added":1' in response
        assert server.process.wait(TIMEOUT_SECONDS) == 0
        assert server.lines()[-1]["event"] == "stopped"
    with sennit.open(sample.path) as db:
        assert db.get(last) is not None
        assert db.get("harvest") == RECORDS[0]


def _refused(address: httpx.URL) -> bool:
    try:
        socket.create_connection((address.host, address.port), timeout=1).close()
    except OSError:
        return True
    return False


def test_incomplete_body_gets_408(sample: SampleDatabase) -> None:
    with run_server(sample, "--timeout", "0.2") as server:
        address = httpx.URL(server.url)
        with socket.create_connection((address.host, address.port), timeout=TIMEOUT_SECONDS) as half:
            half.sendall(
                f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
                f"Authorization: Bearer {sample.tokens['reader']}\r\n\r\n{{".encode()
            )
            assert half.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_client_disconnect_is_logged_as_499(server: RunningServer, sample: SampleDatabase) -> None:
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port), timeout=TIMEOUT_SECONDS) as half:
        half.sendall(
            f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
            f"Authorization: Bearer {sample.tokens['reader']}\r\n\r\n{{".encode()
        )
    wait_until(lambda: 499 in [line.get("status") for line in server.lines()], "a line for who left")
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET " + b"/x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_malformed_http_does_not_stop_the_service(
    server: RunningServer, sample: SampleDatabase, sent: bytes
) -> None:
    address = httpx.URL(server.url)
    status: list[bytes] = []
    # The service may close the connection before it has read everything.
    with (
        socket.create_connection((address.host, address.port), timeout=TIMEOUT_SECONDS) as odd,
        contextlib.suppress(ConnectionError),
    ):
        odd.sendall(sent)
        with contextlib.suppress(OSError):
            odd.shutdown(socket.SHUT_WR)
        status = odd.recv(4096).split(b" ")[1:2]
    assert status in ([], [b"200"], [b"400"], [b"401"], [b"404"], [b"413"], [b"421"], [b"431"])
    with client(server, sample) as asked:
        assert asked.get("/healthz").status_code == 200
    assert "Traceback" not in server.log.read_text()


def test_what_is_not_http_gets_an_error_as_json(server: RunningServer) -> None:
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port), timeout=TIMEOUT_SECONDS) as odd:
        odd.sendall(b"GET /v1/why?query=" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head, _, body = odd.makefile("rb").read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert json.loads(body)["error"]["code"] == "bad_request"


def test_a_head_without_end_is_refused(server: RunningServer, sample: SampleDatabase) -> None:
    address = httpx.URL(server.url)
    response = b""
    with socket.create_connection((address.host, address.port), timeout=TIMEOUT_SECONDS) as odd:
        odd.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                odd.sendall(b"x" * 16_384)
        with contextlib.suppress(ConnectionError):
            response = odd.recv(4096)
    # The connection may be reset before the response is read.
    assert response == b"" or response.startswith(b"HTTP/1.1 400 ")
    with client(server, sample) as asked:
        assert asked.get("/healthz").status_code == 200


# Starting


def test_service_without_tokens_does_not_start(tmp_path: Path) -> None:
    with sennit.open(tmp_path / ".sennit") as db:
        db.add(RECORDS[:1])
    done = started(cwd=tmp_path)
    assert done.returncode == 2
    assert "sennit tokens add NAME" in done.stderr
    assert "--open" in done.stderr


def test_open_requires_a_loopback_host(sample: SampleDatabase) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5"):
        done = started("--open", "--host", host, "--db", str(sample.path), cwd=sample.path.parent)
        assert done.returncode == 2
        assert "--open works only on a loopback address" in done.stderr


def test_open_creates_a_named_database(tmp_path: Path) -> None:
    with (
        run_server(SampleDatabase(tmp_path / "new.sennit", {}), "--open") as server,
        httpx.Client(base_url=server.url) as asked,
    ):
        assert asked.post("/v1/records", json={"id": "first", "text": "a beginning"}).status_code == 200
        assert asked.post("/v1/search", json={"query": "beginning"}).json()["hits"][0]["id"] == "first"
        assert_error(asked.get("/healthz", headers={"host": "evil.example"}), 421, "wrong_host")


def test_missing_database_is_not_created(tmp_path: Path) -> None:
    assert started("--open", cwd=tmp_path).returncode == 3
    assert started("--db", "nowhere", cwd=tmp_path).returncode == 3
    assert list(tmp_path.iterdir()) == []


def test_public_host_accepts_any_host_header_with_a_token(sample: SampleDatabase) -> None:
    with run_server(sample, "--host", "0.0.0.0") as server:
        port = httpx.URL(server.url).port
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_SECONDS) as asked:
            named = {"host": "box.example"}
            assert asked.get("/healthz", headers=named).status_code == 200
            assert_error(asked.get("/v1/context?query=x", headers=named), 401, "unauthorized")
            shown = {**named, **sample.auth_header("reader")}
            assert asked.get("/v1/context?query=x", headers=shown).status_code == 200


def test_port_in_use_is_a_clear_error(server: RunningServer, sample: SampleDatabase) -> None:
    port = str(httpx.URL(server.url).port)
    done = started("--port", port, "--db", str(sample.path), cwd=sample.path.parent)
    assert done.returncode == 2
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr


def test_open_uses_the_privacy_settings(sample: SampleDatabase) -> None:
    with (
        run_server(sample, "--open", env={"SENNIT_PRIVACY_OPEN": "true"}) as server,
        httpx.Client(base_url=server.url) as asked,
    ):
        found = asked.post("/v1/search", json={"query": "secretly for sale"}).json()
        assert "diary" in {hit["id"] for hit in found["hits"]}


def test_two_services_on_one_database(sample: SampleDatabase) -> None:
    with run_server(sample) as one, run_server(sample) as two:
        with client(one, sample) as first, client(two, sample) as second:
            for turn in range(5):
                writer, reader = (first, second) if turn % 2 else (second, first)
                writer.post("/v1/records", json={"id": f"t{turn}", "text": f"turnstile {turn}"})
                found = reader.post("/v1/search", json={"query": f"turnstile {turn}", "limit": 1}).json()
                assert found["hits"][0]["id"] == f"t{turn}"
        assert two.stop() == 0
        assert one.process.poll() is None
