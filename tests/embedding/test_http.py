from __future__ import annotations

import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sennit.embedding.http import JsonClient, _retry_after
from sennit.errors import EmbeddingError, MissingExtra, SettingsError

from .server import Answer, ModelServer, as_json, cut_short, endless, hang, reset

KEY = "sk-very-secret"
ASK = {"model": "m", "input": ["a"]}


def client(
    server: ModelServer, *, timeout: float = 5, retries: int = 2, key: str | None = None
) -> JsonClient:
    return JsonClient(server.url, timeout=timeout, retries=retries, backoff=0.001, api_key_env=key)


def test_json_goes_out_and_comes_back(server: ModelServer) -> None:
    server.script = [as_json({"ok": [1]})]
    assert client(server).post("/v1/x", ASK) == {"ok": [1]}
    (request,) = server.requests
    assert (request.path, request.body) == ("/v1/x", ASK)
    assert "authorization" not in request.headers


def test_the_key_is_read_from_its_variable_at_each_request(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = client(server, key="A_KEY")
    with pytest.raises(EmbeddingError, match="A_KEY is empty or not set"):
        asking.post("/x", ASK)
    for key in (KEY, "another"):
        monkeypatch.setenv("A_KEY", f"{key}\n")
        asking.post("/x", ASK)
        assert server.requests[-1].headers["authorization"] == f"Bearer {key}"
    monkeypatch.setenv("A_KEY", "two\nlines")
    with pytest.raises(EmbeddingError, match="cannot be an API key"):
        asking.post("/x", ASK)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(server: ModelServer, status: int) -> None:
    server.script = [Answer(status), Answer(status), as_json("fine")]
    assert client(server).post("/x", ASK) == "fine"
    assert len(server.requests) == 3


@pytest.mark.parametrize("trouble", [reset, cut_short])
def test_a_broken_connection_is_tried_again(server: ModelServer, trouble: object) -> None:
    server.script = [Answer(act=trouble), as_json("fine")]  # type: ignore[arg-type]
    assert client(server).post("/x", ASK) == "fine"


@pytest.mark.parametrize("trouble", [reset, cut_short])
def test_a_connection_that_stays_broken_is_reported(server: ModelServer, trouble: object) -> None:
    server.script = [Answer(act=trouble)] * 3  # type: ignore[arg-type]
    with pytest.raises(EmbeddingError, match=r"cannot be reached .*is the server running"):
        client(server).post("/x", ASK)
    assert len(server.requests) == 3


def test_retries_end(server: ModelServer) -> None:
    server.script = [Answer(503, b"overloaded")] * 9
    with pytest.raises(EmbeddingError, match=r"answered 503 \(overloaded\); try again later"):
        client(server, retries=1).post("/x", ASK)
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501])
def test_a_lasting_failure_is_reported_at_once(server: ModelServer, status: int) -> None:
    server.script = [as_json({"error": "no\x1b[31m\nsuch thing"}, status)]
    with pytest.raises(EmbeddingError, match=f"answered {status}.*such thing.*; ") as failure:
        client(server).post("/x", ASK)
    assert len(server.requests) == 1
    assert str(failure.value).isprintable()


def test_the_pause_that_a_server_asks_for_replaces_our_own(server: ModelServer) -> None:
    server.script = [Answer(429, headers={"Retry-After": "0"}), as_json("fine")]
    patient = JsonClient(server.url, timeout=60, retries=1, backoff=50, api_key_env=None)
    began = time.monotonic()
    assert patient.post("/x", ASK) == "fine"
    assert time.monotonic() - began < 10


def test_a_pause_beyond_the_deadline_is_reported_and_not_begun(server: ModelServer) -> None:
    server.script = [Answer(429, headers={"Retry-After": "1"})]
    began = time.monotonic()
    with pytest.raises(EmbeddingError, match="limits how often"):
        client(server, timeout=0.5).post("/x", ASK)
    assert time.monotonic() - began < 0.5


def test_a_pause_longer_than_the_cap_is_reported(server: ModelServer) -> None:
    server.script = [Answer(429, headers={"Retry-After": "31"})]
    with pytest.raises(EmbeddingError, match="429"):
        client(server, timeout=100).post("/x", ASK)


def test_retry_after_is_seconds_or_a_date() -> None:
    assert _retry_after("7") == 7
    soon = _retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=10)))
    assert soon == pytest.approx(10, abs=2)
    assert _retry_after(format_datetime(datetime(2001, 1, 1, tzinfo=UTC))) == 0
    assert _retry_after("9" * 50) == 999_999_999
    assert [_retry_after(value) for value in (None, "", "soon", "-1", "1.5", "²")] == [None] * 6


def test_a_server_that_hangs_is_given_up_at_the_deadline(server: ModelServer) -> None:
    server.script = [Answer(act=hang)] * 3
    began = time.monotonic()
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.15 s"):
        client(server, timeout=0.15).post("/x", ASK)
    assert time.monotonic() - began < 2


def test_a_redirect_to_another_server_is_not_followed(
    server: ModelServer, other_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    for status in (301, 302, 303, 307, 308):
        server.script = [Answer(status, headers={"Location": f"{other_server.url}/x"})]
        with pytest.raises(EmbeddingError, match=r"redirects to .* does not follow"):
            client(server, key="A_KEY").post("/x", ASK)
    assert other_server.requests == []


def test_a_redirect_on_the_same_server_keeps_the_question(server: ModelServer) -> None:
    server.script = [Answer(308, headers={"Location": "/y"}), as_json("fine")]
    assert client(server).post("/x", ASK) == "fine"
    assert [(request.path, request.body) for request in server.requests] == [("/x", ASK), ("/y", ASK)]


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://[", "//elsewhere.invalid/"])
def test_a_strange_redirect_is_refused(server: ModelServer, location: str) -> None:
    server.script = [Answer(307, headers={"Location": location})]
    with pytest.raises(EmbeddingError, match="redirects to"):
        client(server).post("/x", ASK)


def test_redirects_in_a_circle_end(server: ModelServer) -> None:
    server.script = [Answer(307, headers={"Location": "/x"})] * 20
    with pytest.raises(EmbeddingError, match="in a circle"):
        client(server).post("/x", ASK)
    assert len(server.requests) == 4


def test_a_huge_answer_is_cut_off(server: ModelServer) -> None:
    server.script = [Answer(act=endless)]
    with pytest.raises(EmbeddingError, match="more than 64 MB"):
        client(server, timeout=60).post("/x", ASK)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>Welcome</html>", b"", b'{"data": [', b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_not_json_is_refused(server: ModelServer, body: bytes) -> None:
    server.script = [Answer(200, body)]
    with pytest.raises(EmbeddingError, match="did not answer with JSON"):
        client(server).post("/x", ASK)


def test_an_answer_that_is_not_what_its_encoding_says_is_reported(server: ModelServer) -> None:
    server.script = [Answer(200, b"plain", {"Content-Encoding": "gzip"})] * 3
    with pytest.raises(EmbeddingError, match="DecodingError"):
        client(server).post("/x", ASK)


def test_the_key_appears_in_no_message(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    server.script = [as_json({"error": f"Incorrect API key provided: {KEY}"}, 401)]
    with pytest.raises(EmbeddingError, match="check the key in A_KEY") as failure:
        client(server, key="A_KEY").post("/x", ASK)
    assert KEY not in str(failure.value)


def test_nobody_at_the_address_is_reported() -> None:
    gone = ModelServer()
    gone.close()
    with pytest.raises(EmbeddingError, match="cannot be reached"):
        client(gone).post("/x", ASK)


def test_closing_ends_a_pause_between_retries(server: ModelServer) -> None:
    server.script = [Answer(503, headers={"Retry-After": "20"})]
    asking = client(server, timeout=60)
    failures: list[EmbeddingError] = []

    def ask() -> None:
        try:
            asking.post("/x", ASK)
        except EmbeddingError as error:
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not server.requests:
        time.sleep(0.005)
    asking.close()
    thread.join(5)
    assert not thread.is_alive()
    assert len(failures) == 1


def test_an_address_that_is_not_http_is_refused() -> None:
    with pytest.raises(SettingsError, match="not an http"):
        JsonClient("file:///tmp", timeout=1, retries=0, backoff=0, api_key_env=None)


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingExtra, match=r"sennit\[http-models\]"):
        JsonClient("http://127.0.0.1:1", timeout=1, retries=0, backoff=0, api_key_env=None)
