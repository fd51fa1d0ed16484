"""`sennit serve` as a process: it starts only when somebody may ask, answers, and ends without losing anything."""

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
from sennit.client import load_memory_context

from .conftest import PROGRAM, RECORDS, WAIT, Place, Running, error_of, make_place, running, until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """One for all tests here: they leave to each other what they do not look at."""
    return make_place(tmp_path_factory.mktemp("place"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Running]:
    with running(place) as server:
        yield server
        assert server.stop() == 0
        assert "Traceback" not in server.log.read_text()


def client(server: Running, place: Place, who: str = "writer") -> httpx.Client:
    return httpx.Client(base_url=server.url, headers=place.header(who), timeout=WAIT)


def started(*options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, "serve", "--port", "0", *options], capture_output=True, text=True, cwd=cwd, timeout=WAIT
    )


def test_the_main_paths_through_a_real_server(server: Running, place: Place) -> None:
    with client(server, place) as asked:
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
        error_of(asked.get("/v1/nothing"), 404, "not_found")
        for record_id in ("a/b c", "ü?#", "..", ".", "a//b", "a%2Fb", "a\x1fb", "/x", "x/"):
            kept = asked.post("/v1/records", json={"id": record_id, "text": "x"})
            assert kept.status_code == 200, kept.text
            # http.client, because httpx makes paths tidy before it sends them.
            plain = http.client.HTTPConnection(asked.base_url.host, asked.base_url.port or 80, timeout=WAIT)
            plain.request(
                "DELETE", f"/v1/records/{quote(record_id, safe='')}", headers=place.header("writer")
            )
            assert plain.getresponse().status == 200, record_id
            plain.close()
    assert server.lines()[0]["event"] == "started"
    assert {line["event"] for line in server.lines()} == {"started", "request"}


def test_the_loader_of_an_assistant_gets_its_memory(server: Running, place: Place) -> None:
    block = load_memory_context(
        server.url, token=place.tokens["reader"], query="vacation with Priya", timeout=WAIT
    )
    assert "- Rajesh -> Priya: planning vacation to Goa in March" in block.splitlines()
    assert load_memory_context(server.url, token="wrong") == ""


def test_tokens_come_and_go_while_it_runs(server: Running, place: Place) -> None:
    def tokens(*args: str) -> str:
        done = subprocess.run(
            [PROGRAM, "tokens", *args, "--db", str(place.path)], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    with httpx.Client(base_url=server.url, timeout=WAIT) as asked:
        token = tokens("add", "late", "--tenant", "other")

        def found() -> httpx.Response:
            shown = {"authorization": f"Bearer {token}"}
            return asked.post("/v1/search", json={"query": "vineyard"}, headers=shown)

        assert {hit["id"] for hit in found().json()["hits"]} == {"harvest", "only-theirs"}
        refused = asked.post(
            "/v1/records", json={"id": "x", "text": "y"}, headers={"authorization": f"Bearer {token}"}
        )
        error_of(refused, 403, "forbidden")
        tokens("remove", "late")
        error_of(found(), 401, "unauthorized")


def test_what_another_process_writes_is_found(server: Running, place: Place) -> None:
    with client(server, place) as asked, sennit.open(place.path) as db:
        db.add([Record(id="beside", text="sycamore")])
        assert asked.post("/v1/search", json={"query": "sycamore"}).json()["hits"][0]["id"] == "beside"
        asked.post("/v1/records", json={"id": "from there", "text": "hawthorn"})
        assert db.search("hawthorn")[0].id == "from there"


def test_many_clients_at_once(server: Running, place: Place) -> None:
    def work(number: int) -> list[int]:
        with client(server, place, ("reader", "owner")[number % 2]) as asked:
            return [
                asked.post("/v1/search", json={"query": f"vineyard {number} {turn}"}).status_code
                for turn in range(10)
            ]

    def write() -> list[int]:
        with client(server, place) as asked:
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
def test_a_request_under_way_is_finished_before_it_ends(
    place: Place, number: signal.Signals, workers: str
) -> None:
    last = f"{number.name}-{workers}"
    with running(place, "--workers", workers) as server, client(server, place) as asked:
        address = httpx.URL(server.url)
        body = json.dumps({"id": last, "text": "written at the very end"}).encode()
        with socket.create_connection((address.host, address.port), timeout=WAIT) as half:
            head = (
                f"POST /v1/records HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nAuthorization: Bearer {place.tokens['writer']}\r\n\r\n"
            )
            half.sendall(head.encode() + body[:10])
            until(
                lambda: "sennit_http_requests_in_flight 2.0" in asked.get("/metrics").text, "half a request"
            )
            server.process.send_signal(number)
            until(lambda: _refused(address), "the end of listening")
            half.sendall(body[10:])
            answer = b""
            while part := half.recv(4096):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b'"added":1' in answer
        assert server.process.wait(WAIT) == 0
        assert server.lines()[-1]["event"] == "stopped"
    with sennit.open(place.path) as db:
        assert db.get(last) is not None
        assert db.get("harvest") == RECORDS[0]


def _refused(address: httpx.URL) -> bool:
    try:
        socket.create_connection((address.host, address.port), timeout=1).close()
    except OSError:
        return True
    return False


def test_a_body_that_never_comes_is_given_up(place: Place) -> None:
    with running(place, "--timeout", "0.2") as server:
        address = httpx.URL(server.url)
        with socket.create_connection((address.host, address.port), timeout=WAIT) as half:
            half.sendall(
                f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
                f"Authorization: Bearer {place.tokens['reader']}\r\n\r\n{{".encode()
            )
            assert half.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_leaves_is_no_error(server: Running, place: Place) -> None:
    address = httpx.URL(server.url)
    with socket.create_connection((address.host, address.port), timeout=WAIT) as half:
        half.sendall(
            f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
            f"Authorization: Bearer {place.tokens['reader']}\r\n\r\n{{".encode()
        )
    until(lambda: 499 in [line.get("status") for line in server.lines()], "a line for who left")
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
def test_what_is_hardly_http_is_answered_and_the_service_lives_on(
    server: Running, place: Place, sent: bytes
) -> None:
    address = httpx.URL(server.url)
    status: list[bytes] = []
    # The service may hang up before it has read everything.
    with (
        socket.create_connection((address.host, address.port), timeout=WAIT) as odd,
        contextlib.suppress(ConnectionError),
    ):
        odd.sendall(sent)
        with contextlib.suppress(OSError):
            odd.shutdown(socket.SHUT_WR)
        status = odd.recv(4096).split(b" ")[1:2]
    assert status in ([], [b"200"], [b"400"], [b"401"], [b"404"], [b"413"], [b"421"], [b"431"])
    with client(server, place) as asked:
        assert asked.get("/healthz").status_code == 200
    assert "Traceback" not in server.log.read_text()


# Starting


def test_without_anybody_who_may_ask_it_does_not_start(tmp_path: Path) -> None:
    with sennit.open(tmp_path / ".sennit") as db:
        db.add(RECORDS[:1])
    done = started(cwd=tmp_path)
    assert done.returncode == 2
    assert "sennit tokens add NAME" in done.stderr
    assert "--open" in done.stderr


def test_open_is_for_this_machine_alone(place: Place) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5"):
        done = started("--open", "--host", host, "--db", str(place.path), cwd=place.path.parent)
        assert done.returncode == 2
        assert "--open works only on a loopback address" in done.stderr


def test_open_on_a_new_database(tmp_path: Path) -> None:
    with (
        running(Place(tmp_path / "new.sennit", {}), "--open") as server,
        httpx.Client(base_url=server.url) as asked,
    ):
        assert asked.post("/v1/records", json={"id": "first", "text": "a beginning"}).status_code == 200
        assert asked.post("/v1/search", json={"query": "beginning"}).json()["hits"][0]["id"] == "first"
        error_of(asked.get("/healthz", headers={"host": "evil.example"}), 421, "wrong_host")


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert started("--open", cwd=tmp_path).returncode == 3
    assert started("--db", "nowhere", cwd=tmp_path).returncode == 3
    assert list(tmp_path.iterdir()) == []


def test_other_machines_are_let_in_by_token_under_any_name(place: Place) -> None:
    with running(place, "--host", "0.0.0.0") as server:
        port = httpx.URL(server.url).port
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT) as asked:
            named = {"host": "box.example"}
            assert asked.get("/healthz", headers=named).status_code == 200
            error_of(asked.get("/v1/context?query=x", headers=named), 401, "unauthorized")
            shown = {**named, **place.header("reader")}
            assert asked.get("/v1/context?query=x", headers=shown).status_code == 200


def test_a_port_that_is_taken_is_one_clear_error(server: Running, place: Place) -> None:
    port = str(httpx.URL(server.url).port)
    done = started("--port", port, "--db", str(place.path), cwd=place.path.parent)
    assert done.returncode == 2
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr


def test_the_settings_of_the_user_decide_what_open_sees(place: Place) -> None:
    with (
        running(place, "--open", env={"SENNIT_PRIVACY_OPEN": "true"}) as server,
        httpx.Client(base_url=server.url) as asked,
    ):
        found = asked.post("/v1/search", json={"query": "secretly for sale"}).json()
        assert "diary" in {hit["id"] for hit in found["hits"]}


def test_two_services_on_one_database(place: Place) -> None:
    with running(place) as one, running(place) as two:
        with client(one, place) as first, client(two, place) as second:
            for turn in range(5):
                writer, reader = (first, second) if turn % 2 else (second, first)
                writer.post("/v1/records", json={"id": f"t{turn}", "text": f"turnstile {turn}"})
                found = reader.post("/v1/search", json={"query": f"turnstile {turn}", "limit": 1}).json()
                assert found["hits"][0]["id"] == f"t{turn}"
        assert two.stop() == 0
        assert one.process.poll() is None
