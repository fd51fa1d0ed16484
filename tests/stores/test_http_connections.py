"""Tests of the connections that searches on servers use, with a real server on loopback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
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


@pytest.fixture
def answer_with() -> Iterator[Callable[[bytes], str]]:
    """Starts a server that answers its first connection with these bytes and closes it; returns its address."""
    threads: list[threading.Thread] = []
    listeners: list[socket.socket] = []

    def start(answer: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        listeners.append(listener)
        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join()
    for listener in listeners:
        listener.close()


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


@pytest.mark.parametrize(
    ("head", "content"),
    [
        ("Content-Length: 5", "hello"),
        ("content-length:5", "hello and what does not belong to it"),
        ("Transfer-Encoding: chunked", "2\r\nhe\r\n3;part=2\r\nllo\r\n0\r\nTrailer: x\r\n\r\n"),
        ("Connection: close", "hello"),
        ("Transfer-Encoding: identity", "hello"),
    ],
)
def test_content_ends_where_http_says(answer_with: Callable[[bytes], str], head: str, content: str) -> None:
    url = answer_with(
        f"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nX-Name: Value\r\n{head}\r\n\r\n{content}".encode()
    )
    connections = _connect(url)
    found = connections.send("POST", "/search", b"x")
    assert (found.status, found.content, found.headers["x-name"]) == (201, b"hello", "Value")
    connections.close()


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_content_is_empty(answer_with: Callable[[bytes], str], status: int) -> None:
    connections = _connect(answer_with(f"HTTP/1.1 {status} Nothing\r\n\r\n".encode()))
    assert connections.send("POST", "/search").content == b""
    connections.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 fine\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: x\r\n" % number for number in range(20_000)) + b"\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
)
def test_what_is_no_answer_of_http_is_a_failure(answer_with: Callable[[bytes], str], answer: bytes) -> None:
    connections = _connect(answer_with(answer))
    with pytest.raises(RequestFailed) as caught:
        connections.send("POST", "/search")
    assert not caught.value.is_late
    connections.close()


def test_a_connection_that_the_answer_ends_is_not_kept(answer_with: Callable[[bytes], str]) -> None:
    connections = _connect(answer_with(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"))
    assert connections.send("POST", "/search").content == b"ok"
    assert not connections._idle
    connections.close()
