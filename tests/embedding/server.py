"""A model server on loopback that speaks the OpenAI and Ollama protocols, and misbehaves when told to."""

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
        given = self.body["input"]
        assert isinstance(given, list)
        return given


@dataclass(frozen=True)
class Answer:
    """What to send instead of vectors; `act` takes over the connection altogether."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    act: Callable[[BaseHTTPRequestHandler, threading.Event], None] | None = None


def as_json(value: object, status: int = 200) -> Answer:
    return Answer(status, json.dumps(value).encode())


def hang(handler: BaseHTTPRequestHandler, released: threading.Event) -> None:
    released.wait(10)


def reset(handler: BaseHTTPRequestHandler, released: threading.Event) -> None:
    """Close with a TCP reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def cut_short(handler: BaseHTTPRequestHandler, released: threading.Event) -> None:
    """Promise a thousand bytes and send a few."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"data": [')
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_WR)


def endless(handler: BaseHTTPRequestHandler, released: threading.Event) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
    part = b" " * (1 << 20)
    while not released.is_set():
        handler.wfile.write(part)


def vector_of(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """Any text's numbers, always the same and not of length one."""
    digest = hashlib.sha256(text.encode()).digest()
    return [(digest[place % 32] - 127) / 16 for place in range(dimensions)]


class ModelServer:
    """Answers with `vector_of` unless `script` holds what to answer next."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.script: list[Answer] = []
        self.dimensions = DIMENSIONS
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Request) -> Answer:
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
                answer = server.script.pop(0) if server.script else server.answer(request)
                if answer.act is not None:
                    self.close_connection = True
                    with suppress(OSError):  # the client went away, as it should
                        answer.act(self, server._released)
                    return
                self.send_response(answer.status)
                for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *args: object) -> None:
                """Quiet."""

            def finish(self) -> None:
                with suppress(OSError):  # after a reset there is nothing to flush to
                    super().finish()

        return Handler
