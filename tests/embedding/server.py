"""A model server on loopback for the OpenAI and Ollama protocols, with scripted failures."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DIMENSIONS = 8


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: dict[str, object]

    @property
    def texts(self) -> list[str]:
        texts = self.body["input"]
        assert isinstance(texts, list)
        return texts


@dataclass(frozen=True)
class Response:
    """Sent instead of vectors; `act` takes over the connection."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    act: Callable[[BaseHTTPRequestHandler, threading.Event], None] | None = None


def as_json(value: object, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode())


def hang(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    closing.wait(10)


def reset(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    """Close with a TCP reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def truncate_body(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    """Announce a thousand bytes and send a few."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"data": [')
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_WR)


def send_without_end(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    chunk = b" " * (1 << 20)
    while not closing.is_set():
        handler.wfile.write(chunk)


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Return a deterministic vector for a text, not of length one."""
    digest = hashlib.sha256(text.encode()).digest()
    return [(digest[index % 32] - 127) / 16 for index in range(dimensions)]


class ModelServer:
    """Sends the responses in `script`, and after them the vectors of `vector_of`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: list[Response] = []
        self.dimensions = DIMENSIONS
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def respond(self, request: Request) -> Response:
        vectors = [vector_of(text, self.dimensions) for text in request.texts]
        if request.path == "/api/embed":
            return as_json({"model": request.body["model"], "embeddings": vectors})
        items = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(vectors)]
        return as_json({"object": "list", "data": items[::-1], "model": request.body["model"]})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = Request(
                    self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body)
                )
                server.requests.append(request)
                response = server.script.pop(0) if server.script else server.respond(request)
                if response.act is not None:
                    self.close_connection = True
                    with suppress(OSError):  # the client has closed the connection, as expected
                        response.act(self, server._closing)
                    return
                self.send_response(response.status)
                for name, value in {"Content-Type": "application/json", **response.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(response.body)))
                self.end_headers()
                self.wfile.write(response.body)

            def log_message(self, *args: object) -> None:
                """Write no log."""

            def finish(self) -> None:
                with suppress(OSError):  # the connection may have been reset
                    super().finish()

        return Handler
