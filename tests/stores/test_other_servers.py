"""What answers at the address of a server is another program: the error says so, and which setting names the address."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from sennit.errors import SourceError
from sennit.filters import EVERYTHING
from sennit.settings import load_settings
from sennit.stores.contract import Model, ServerSearch
from sennit.stores.open import SERVERS, Opening


class Answer(NamedTuple):
    """What a server answers to everything but, perhaps, `GET /`."""

    status: int
    body: str
    root: str = ""


NOT_FOUND_ELASTICSEARCH = {"error": "no handler found for uri [/x] and method [POST]", "status": 400}
NOT_FOUND_CHROMA = {"detail": "Not Found"}
NOT_FOUND_QDRANT = {"status": {"error": "Not found: Collection `x` doesn't exist!"}, "time": 0.1}
ROOT_QDRANT = {"title": "qdrant - vector search engine", "version": "1.15.0", "commit": "x"}
ROOT_ELASTICSEARCH = {
    "version": {"number": "9.2.0", "build_flavor": "default"},
    "tagline": "You Know, for Search",
}

ANYTHING = {
    "a page": Answer(200, "<html>Welcome</html>"),
    "a page that is missing": Answer(404, "<h1>Not Found</h1>"),
    "nothing": Answer(404, ""),
    "a login": Answer(302, ""),
    "an object": Answer(200, '{"status": "ok"}'),
    "a list": Answer(200, "[1]"),
}
ELASTICSEARCH = Answer(400, json.dumps(NOT_FOUND_ELASTICSEARCH), json.dumps(ROOT_ELASTICSEARCH))
QDRANT = Answer(404, json.dumps(NOT_FOUND_QDRANT), json.dumps(ROOT_QDRANT))
CHROMA = Answer(404, json.dumps(NOT_FOUND_CHROMA))

EXPECTED = {
    "qdrant": ("qdrant.urls", "qdrant_client"),
    "chroma": ("chroma.url", "chromadb"),
    "opensearch": ("opensearch.hosts", "numpy"),
}
"""The setting of the address of each server, and the client that its binding needs."""

CASES = [
    *((server, name, answer) for server in EXPECTED for name, answer in ANYTHING.items()),
    ("qdrant", "Elasticsearch", ELASTICSEARCH),
    ("qdrant", "Chroma", CHROMA),
    ("chroma", "Elasticsearch", ELASTICSEARCH),
    ("chroma", "Qdrant", QDRANT),
    ("opensearch", "Qdrant", QDRANT),
    ("opensearch", "Chroma", CHROMA),
]
MODEL = Model(number=1, fingerprint="f", name="m", spec="m", dimensions=2, state="active")


class Stranger(ThreadingHTTPServer):
    """A program that is none of the servers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = Answer(200, "")
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stranger

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, body, root = self.server.answer
        if root and self.path == "/":
            status, body = 200, root
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 302:
            self.send_header("Location", "/login")
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - named by the base class

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def stranger() -> Iterator[Stranger]:
    server = Stranger()
    yield server
    server.shutdown()
    server.server_close()


def _open(name: str, url: str, folder: Path) -> Any:
    key, client = EXPECTED[name]
    pytest.importorskip(client)
    value = url if name == "chroma" else (url,)
    settings = load_settings(overrides={key: value, "roles.vector": name})
    return SERVERS[name](Opening(settings, str(folder), "abcdef"))


@pytest.mark.parametrize(("name", "_what", "answer"), CASES, ids=[f"{one[0]} gets {one[1]}" for one in CASES])
def test_another_server_is_named_as_such_with_the_setting(
    stranger: Stranger, tmp_path: Path, name: str, _what: str, answer: Answer
) -> None:
    stranger.answer = answer
    server = _open(name, stranger.url, tmp_path)
    try:
        (finding,) = server.check()
        index = server.vector().find(MODEL)
        with pytest.raises(SourceError) as applied:
            index.applied()
        search = ServerSearch(index, np.array([1.0, 0.0], np.float32), 3, EVERYTHING, applied=5)
        try:
            (found,) = server.search_many([search])
        except SourceError as error:
            found = error
    finally:
        server.close()
    assert finding.level == "problem"
    for message in (finding.message, str(applied.value), str(found)):
        assert message.startswith("what answers at "), message
        assert stranger.url.removeprefix("http://") in message
        assert EXPECTED[name][0] in message
        assert "\n" not in message


@pytest.mark.parametrize("name", EXPECTED)
def test_a_server_that_is_overloaded_is_not_taken_for_another(
    stranger: Stranger, tmp_path: Path, name: str
) -> None:
    stranger.answer = Answer(503, "<h1>Service Unavailable</h1>")
    server = _open(name, stranger.url, tmp_path)
    try:
        (finding,) = server.check()
    finally:
        server.close()
    assert finding.level == "problem"
    assert "what answers" not in finding.message
