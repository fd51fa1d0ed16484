from __future__ import annotations

import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sennit.embedding.http import JsonClient, _parse_retry_after
from sennit.errors import EmbeddingError, MissingExtra, SettingsError

from .server import ModelServer, Response, as_json, hang, reset, send_without_end, truncate_body

KEY = "sk-very-secret"
BODY = {"model": "m", "input": ["a"]}


def client(
    server: ModelServer, *, timeout: float = 5, retries: int = 2, key: str | None = None
) -> JsonClient:
    return JsonClient(server.url, timeout=timeout, retries=retries, backoff=0.001, api_key_env=key)


def test_post_sends_and_returns_json(server: ModelServer) -> None:
    server.script = [as_json({"ok": [1]})]
    assert client(server).post("/v1/x", BODY) == {"ok": [1]}
    (request,) = server.requests
    assert (request.path, request.body) == ("/v1/x", BODY)
    assert "authorization" not in request.headers


def test_the_key_is_read_from_its_variable_at_each_request(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_key = client(server, key="A_KEY")
    with pytest.raises(EmbeddingError, match="A_KEY is empty or not set"):
        with_key.post("/x", BODY)
    for key in (KEY, "another"):
        monkeypatch.setenv("A_KEY", f"{key}\n")
        with_key.post("/x", BODY)
        assert server.requests[-1].headers["authorization"] == f"Bearer {key}"
    monkeypatch.setenv("A_KEY", "two\nlines")
    with pytest.raises(EmbeddingError, match="cannot be an API key"):
        with_key.post("/x", BODY)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_retryable_status_is_retried(server: ModelServer, status: int) -> None:
    server.script = [Response(status), Response(status), as_json("fine")]
    assert client(server).post("/x", BODY) == "fine"
    assert len(server.requests) == 3


@pytest.mark.parametrize("failure", [reset, truncate_body])
def test_a_broken_connection_is_retried(server: ModelServer, failure: object) -> None:
    server.script = [Response(act=failure), as_json("fine")]  # type: ignore[arg-type]
    assert client(server).post("/x", BODY) == "fine"


@pytest.mark.parametrize("failure", [reset, truncate_body])
def test_a_connection_that_stays_broken_is_an_error(server: ModelServer, failure: object) -> None:
    server.script = [Response(act=failure)] * 3  # type: ignore[arg-type]
    with pytest.raises(EmbeddingError, match=r"cannot be reached .*is the server running"):
        client(server).post("/x", BODY)
    assert len(server.requests) == 3


def test_the_number_of_retries_is_limited(server: ModelServer) -> None:
    server.script = [Response(503, b"overloaded")] * 9
    with pytest.raises(EmbeddingError, match=r"answered 503 \(overloaded\); try again later"):
        client(server, retries=1).post("/x", BODY)
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
def test_other_error_statuses_are_not_retried(server: ModelServer, status: int) -> None:
    server.script = [as_json({"error": "no\x1b[31m\nsuch thing"}, status)]
    with pytest.raises(EmbeddingError, match=f"answered {status}.*such thing.*; ") as failure:
        client(server).post("/x", BODY)
    assert len(server.requests) == 1
    assert str(failure.value).isprintable()


def test_retry_after_replaces_the_backoff(server: ModelServer) -> None:
    server.script = [Response(429, headers={"Retry-After": "0"}), as_json("fine")]
    patient = JsonClient(server.url, timeout=60, retries=1, backoff=50, api_key_env=None)
    began = time.monotonic()
    assert patient.post("/x", BODY) == "fine"
    assert time.monotonic() - began < 10


def test_a_retry_after_beyond_the_deadline_is_an_error_at_once(server: ModelServer) -> None:
    server.script = [Response(429, headers={"Retry-After": "1"})]
    began = time.monotonic()
    with pytest.raises(EmbeddingError, match="limits the request rate"):
        client(server, timeout=0.5).post("/x", BODY)
    assert time.monotonic() - began < 0.5


def test_a_retry_after_beyond_the_maximum_is_an_error(server: ModelServer) -> None:
    server.script = [Response(429, headers={"Retry-After": "31"})]
    with pytest.raises(EmbeddingError, match="429"):
        client(server, timeout=100).post("/x", BODY)


def test_retry_after_is_seconds_or_a_date() -> None:
    assert _parse_retry_after("7") == 7
    soon = _parse_retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=10)))
    assert soon == pytest.approx(10, abs=2)
    assert _parse_retry_after(format_datetime(datetime(2001, 1, 1, tzinfo=UTC))) == 0
    assert _parse_retry_after("9" * 50) == 999_999_999
    assert [_parse_retry_after(value) for value in (None, "", "soon", "-1", "1.5", "²")] == [None] * 6


def test_a_hanging_server_is_an_error_at_the_deadline(server: ModelServer) -> None:
    server.script = [Response(act=hang)] * 3
    began = time.monotonic()
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.15 s"):
        client(server, timeout=0.15).post("/x", BODY)
    assert time.monotonic() - began < 2


def test_a_redirect_to_another_server_is_not_followed(
    server: ModelServer, other_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    for status in (301, 302, 303, 307, 308):
        server.script = [Response(status, headers={"Location": f"{other_server.url}/x"})]
        with pytest.raises(EmbeddingError, match=r"redirects to .* does not follow"):
            client(server, key="A_KEY").post("/x", BODY)
    assert other_server.requests == []


def test_a_redirect_on_the_same_server_keeps_the_body(server: ModelServer) -> None:
    server.script = [Response(308, headers={"Location": "/y"}), as_json("fine")]
    assert client(server).post("/x", BODY) == "fine"
    assert [(request.path, request.body) for request in server.requests] == [("/x", BODY), ("/y", BODY)]


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://[", "//elsewhere.invalid/"])
def test_an_invalid_redirect_is_rejected(server: ModelServer, location: str) -> None:
    server.script = [Response(307, headers={"Location": location})]
    with pytest.raises(EmbeddingError, match="redirects to"):
        client(server).post("/x", BODY)


def test_a_redirect_loop_is_an_error(server: ModelServer) -> None:
    server.script = [Response(307, headers={"Location": "/x"})] * 20
    with pytest.raises(EmbeddingError, match="in a circle"):
        client(server).post("/x", BODY)
    assert len(server.requests) == 4


def test_a_response_that_is_too_large_is_an_error(server: ModelServer) -> None:
    server.script = [Response(act=send_without_end)]
    with pytest.raises(EmbeddingError, match="more than 64 MB"):
        client(server, timeout=60).post("/x", BODY)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"", b'{"data": [', b"\xff\xfe", b"[" * 100_000])
def test_a_response_that_is_not_json_is_an_error(server: ModelServer, body: bytes) -> None:
    server.script = [Response(200, body)]
    with pytest.raises(EmbeddingError, match="did not answer with JSON"):
        client(server).post("/x", BODY)


def test_a_wrong_content_encoding_is_an_error(server: ModelServer) -> None:
    server.script = [Response(200, b"plain", {"Content-Encoding": "gzip"})] * 3
    with pytest.raises(EmbeddingError, match="DecodingError"):
        client(server).post("/x", BODY)


def test_the_key_appears_in_no_message(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    server.script = [as_json({"error": f"Incorrect API key provided: {KEY}"}, 401)]
    with pytest.raises(EmbeddingError, match="check the key in A_KEY") as failure:
        client(server, key="A_KEY").post("/x", BODY)
    assert KEY not in str(failure.value)


def test_an_unreachable_server_is_an_error() -> None:
    closed = ModelServer()
    closed.close()
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        client(closed).post("/x", BODY)


def test_closing_ends_a_pause_between_retries(server: ModelServer) -> None:
    server.script = [Response(503, headers={"Retry-After": "20"})]
    waiting = client(server, timeout=60)
    failures: list[EmbeddingError] = []

    def post() -> None:
        try:
            waiting.post("/x", BODY)
        except EmbeddingError as error:
            failures.append(error)

    thread = threading.Thread(target=post)
    thread.start()
    while not server.requests:
        time.sleep(0.005)
    waiting.close()
    thread.join(5)
    assert not thread.is_alive()
    assert len(failures) == 1


def test_an_address_that_is_not_http_is_rejected() -> None:
    with pytest.raises(SettingsError, match="not an http"):
        JsonClient("file:///tmp", timeout=1, retries=0, backoff=0, api_key_env=None)


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"sennit\[http-models\]"):
        JsonClient("http://127.0.0.1:1", timeout=1, retries=0, backoff=0, api_key_env=None)
