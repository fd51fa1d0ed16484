"""Tests of the connections that searches on servers use, with a real server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sennit.stores.servers.http_connections import HttpConnections, RequestFailed


class _Server(ThreadingHTTPServer):
    """Answers each request with what it got, and notes the port that each came from."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.client_ports: list[int] = []
        self.released = threading.Event()
        self.drops = 0
        """How many requests to `/dropped` get no answer but the end of the connection."""
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        self.released.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        self.server.client_ports.append(self.client_address[1])
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/dropped" and self.server.drops:
            self.server.drops -= 1
            self.close_connection = True
            return
        if self.path == "/wait":
            self.server.released.wait()
        content = json.dumps({"path": self.path, "body": body, "headers": dict(self.headers)}).encode()
        self.send_response(404 if self.path.endswith("/missing") else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        # The end of the connection, which no header announces.
        self.close_connection = self.path.endswith("/last")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    one = _Server()
    try:
        yield one
    finally:
        one.stop()


def _connect(url: str, seconds: float = 60.0, **headers: str) -> HttpConnections:
    return HttpConnections(url, timeout_seconds=seconds, headers=headers)


def test_requests_after_each_other_use_one_connection(server: _Server) -> None:
    connections = _connect(server.url)
    for number in range(3):
        found = connections.send("POST", "/search", f"{number}".encode())
        assert (found.status, json.loads(found.content)["body"]) == (200, str(number))
    assert len(set(server.client_ports)) == 1
    connections.close()


def test_a_connection_that_the_server_has_closed_is_replaced(server: _Server) -> None:
    connections = _connect(server.url)
    assert connections.send("POST", "/last").status == 200
    (idle,) = connections._idle  # To wait for its end without a clock.
    assert idle.sock is not None
    idle.sock.recv(1)
    assert connections.send("POST", "/search").status == 200
    assert len(set(server.client_ports)) == 2
    connections.close()


def test_a_request_that_met_the_end_of_a_kept_connection_is_sent_again(server: _Server) -> None:
    connections = _connect(server.url)
    assert connections.send("POST", "/search").status == 200
    server.drops = 1
    assert connections.send("POST", "/dropped").status == 200
    assert len(server.client_ports) == 3
    connections.close()


def test_a_server_that_drops_a_new_connection_has_failed(server: _Server) -> None:
    connections = _connect(server.url)
    server.drops = 1
    with pytest.raises(RequestFailed):
        connections.send("POST", "/dropped")
    assert len(server.client_ports) == 1
    connections.close()


def test_a_key_that_no_header_can_hold_is_not_shown(server: _Server) -> None:
    connections = _connect(server.url, Key="hunter2\n")
    with pytest.raises(RequestFailed, match="line break") as caught:
        connections.send("POST", "/search")
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__
    connections.close()


def test_a_refusal_is_a_response_like_any_other(server: _Server) -> None:
    connections = _connect(server.url)
    assert connections.send("POST", "/missing").status == 404
    assert connections.send("POST", "/search").status == 200
    assert len(set(server.client_ports)) == 1
    connections.close()


def test_the_path_and_the_user_of_the_address_are_in_each_request(server: _Server) -> None:
    address = server.url.replace("//", "//me:p%40ss@") + "/behind/"
    connections = _connect(address, Key="k")
    got = json.loads(connections.send("POST", "/search", b"x", {"Content-Type": "text/plain"}).content)
    assert got["path"] == "/behind/search"
    wanted = {"Authorization": "Basic bWU6cEBzcw==", "Key": "k", "Content-Type": "text/plain"}
    assert wanted.items() <= got["headers"].items()
    connections.close()


def test_a_server_that_takes_too_long_is_late(server: _Server) -> None:
    connections = _connect(server.url, seconds=0.05)
    with pytest.raises(RequestFailed) as caught:
        connections.send("POST", "/wait")
    assert caught.value.is_late
    connections.close()


def test_a_server_that_is_gone_is_not_late() -> None:
    server = _Server()
    url = server.url
    server.stop()
    connections = _connect(url)
    with pytest.raises(RequestFailed) as caught:
        connections.send("POST", "/search")
    assert not caught.value.is_late
    connections.close()


def test_a_proxy_of_the_environment_gets_the_requests(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url)
    connections = _connect("http://search.example:9200/behind")
    got = json.loads(connections.send("POST", "/search", b"x").content)
    assert (got["path"], got["body"]) == ("http://search.example:9200/behind/search", "x")
    connections.close()


def test_nothing_is_sent_after_the_connections_were_closed(server: _Server) -> None:
    connections = _connect(server.url)
    assert connections.send("POST", "/search").status == 200
    connections.close()
    with pytest.raises(RequestFailed):
        connections.send("POST", "/search")
    assert len(server.client_ports) == 1
