"""An embedding server on loopback with OpenAI's protocol, which can fail and delay its answers."""

from __future__ import annotations

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 16


def vector_of(text: str) -> list[float]:
    digest = hashlib.sha256(text.encode()).digest()
    return [(digest[index] - 127) / 64 for index in range(DIMENSIONS)]


class EmbeddingServer:
    """While `failing`, it answers 503. `hold` delays every answer until `release`."""

    def __init__(self) -> None:
        self.failing = False
        self.texts: list[str] = []
        self._released = threading.Event()
        self._released.set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                server._released.wait(30)
                if not server.failing:
                    server.texts += texts
                    data = [{"index": at, "embedding": vector_of(text)} for at, text in enumerate(texts)]
                    self.respond(200, {"data": data})
                else:
                    self.respond(503, {"error": "not now"})

            def respond(self, status: int, body: object) -> None:
                payload = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *args: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "embedding__provider": "openai",
            "embedding__model": "toy",
            "embedding__base_url": f"http://127.0.0.1:{self._server.server_address[1]}/v1",
            "embedding__retries": 0,
            "embedding__timeout": 20.0,
        }

    def hold(self) -> None:
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    def close(self) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
