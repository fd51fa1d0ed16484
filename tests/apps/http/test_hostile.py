"""Bodies and addresses that mean harm: each is an answer below 500, in the one form, and does no harm."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sennit import Caller
from sennit.apps.http.bodies import parse_json
from sennit.apps.http.errors import HttpError

from .conftest import Service, error_of

TYPE = {"content-type": "application/json"}
WRITES = ("/v1/records", "/v1/turns", "/v1/facts")


@pytest.fixture
def naughty(shared_data: Path) -> list[str]:
    strings: list[str] = json.loads((shared_data / "security/blns/blns.json").read_text())
    return [*strings, "a\0b", "\0", "\ufeff", "\U0010ffff", "\r\n\r\nHTTP/1.1 200 OK", "e\u0301" * 100]


def raw(service: Service, path: str, body: bytes, who: str = "writer") -> Any:
    return service.ask("POST", path, who, TYPE, content=body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"nul",
        b'{"query": "x"',
        b'{"query": "x"} {"query": "y"}',
        b"{'query': 'x'}",
        b'{"query": "x",}',
        b'{"query": "\x01"}',
        b'\xef\xbb\xbf{"query": "x"}',
        b'{"query": "\xff\xfe"}',
        b'{"query": "\xc0\xaf"}',
        b'{"query": "\xed\xa0\x80"}',
        '{"query": "x"}'.encode("utf-16"),
        b'{"query": "x", "query": "y"}',
        b'{"query": "x", "filters": {"a": 1, "a": 2}}',
        b'{"query": "x", "filters": {"a": NaN}}',
        b'{"query": "x", "filters": {"a": Infinity}}',
        b'{"query": "x", "filters": {"a": -Infinity}}',
        b'{"query": "x", "filters": {"a": 1e999}}',
        b'{"query": "x", "limit": ' + b"9" * 5000 + b"}",
        b'{"query": "x", "filters": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"query": "x", "filters": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    ],
)
def test_what_is_not_plain_json_is_refused(service: Service, body: bytes) -> None:
    for path in ("/v1/search", *WRITES):
        error_of(raw(service, path, body), 400, "bad_request")


@pytest.mark.parametrize("text", [r"\ud800", r"a\udfffb", r"\udc00\ud800"])
def test_half_of_a_character_is_refused(service: Service, text: str) -> None:
    for path, body in (
        ("/v1/search", '{"query": "%s"}'),
        ("/v1/search", '{"query": "x", "recipe": "%s"}'),
        ("/v1/search", '{"query": "x", "filters": {"kind": "%s"}}'),
        ("/v1/search", '{"query": "x", "filters": {"%s": 1}}'),
        ("/v1/search", '{"query": "x", "filters": "%s"}'),
        ("/v1/search", '{"query": "x", "include": ["%s"], "recipe": "artifacts"}'),
        ("/v1/search", '{"query": "x", "%s": 1}'),
        ("/v1/records", '{"id": "%s", "text": "x"}'),
        ("/v1/records", '{"id": "x", "text": "%s"}'),
        ("/v1/records", '{"id": "x", "text": "x", "metadata": {"%s": 1}}'),
        ("/v1/records", '{"id": "x", "text": "x", "metadata": {"a": ["%s"]}}'),
        ("/v1/turns", '{"session": "%s", "text": "x"}'),
        ("/v1/facts", '{"subject": "%s", "relation": "b", "object": "c"}'),
    ):
        answer = raw(service, path, (body % text).encode())
        assert answer.status_code in (404, 422), (body, answer.text)
        error_of(answer, answer.status_code, "invalid_request" if answer.status_code == 422 else "not_found")
    assert service.db.get("x") is None


def test_a_body_must_say_that_it_is_json(service: Service) -> None:
    for kind in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/json",
        "a;b",
    ):
        refused = service.ask(
            "POST", "/v1/records", headers={"content-type": kind}, content=b'{"id": "x", "text": "y"}'
        )
        error_of(refused, 415, "unsupported_media_type")
    assert service.db.get("x") is None
    for kind in ("application/json; charset=utf-8", "APPLICATION/JSON"):
        answer = service.ask("POST", "/v1/search", headers={"content-type": kind}, content=b'{"query": "x"}')
        assert answer.status_code == 200


def test_naughty_strings_are_kept_as_they_are_or_refused(service: Service, naughty: list[str]) -> None:
    records = [
        {
            "id": f"n{at}",
            "text": text,
            "title": text,
            "kind": text,
            "metadata": {"value": text, "list": [text]},
        }
        for at, text in enumerate(naughty)
    ]
    answer = service.post("/v1/records", records)
    assert answer.status_code == 200, answer.text
    for record in records:
        kept = service.db.get(record["id"])  # type: ignore[arg-type]
        assert kept is not None
        assert (kept.text, kept.metadata) == (record["text"], record["metadata"])
    for at, text in enumerate(naughty):
        found = service.search(text, filters={"id": f"n{at}"}, limit=1)
        assert all(hit["text"] == text for hit in found["hits"])
        assert found["query"] == text


def test_naughty_strings_in_addresses_are_answered(service: Service, naughty: list[str]) -> None:
    for text in naughty[::3]:
        for path in (
            f"/v1/context?query={quote(text)}&recipe=keyword&format=prompt",
            f"/v1/context?query=x&recipe={quote(text)}",
            f"/v1/why?query=x&id={quote(text)}",
            f"/v1/why?query=x&id=harvest&filters={quote(text)}",
            f"/{quote(text)}",
        ):
            answer = service.ask("GET", path)
            assert answer.status_code in (200, 404, 422), (path, answer.text)
        gone = service.ask("DELETE", f"/v1/records/{quote(text, safe='')}")
        assert gone.status_code in (404, 405)
    assert service.db.get("harvest") is not None


def test_odd_bytes_in_addresses_are_answered(service: Service) -> None:
    for path in ("/v1/context?query=%ff%fe", "/v1/context?query=%00", "/v1/why?query=x&id=%ed%a0%80", "/%ff"):
        assert service.ask("GET", path).status_code in (200, 404, 422)
    assert service.ask("DELETE", "/v1/records/%ed%a0%80").status_code == 404


def test_filters_that_are_built_to_hurt_are_answered(service: Service) -> None:
    deep: Any = {"kind": "x"}
    for _ in range(200):
        deep = {"not": deep}
    for filters in (
        deep,
        {"and": [{"kind": "x"}] * 5000},
        {"kind": {"in": ["x"] * 5000}},
        {"a" * 5000: 1},
        "(" * 5000 + ")" * 5000,
        "not " * 5000 + "kind = 'x'",
        {"kind": {"$where": "sleep(1)"}},
        {"tenant": "other"},
        "kind = 'x' or tenant = 'other'",
    ):
        answer = service.post("/v1/search", {"query": "vineyard", "filters": filters})
        assert answer.status_code in (200, 422), answer.text
        assert "only the others know" not in answer.text


def test_a_record_cannot_be_made_another_s_by_its_id(service: Service) -> None:
    answer = service.post("/v1/records", {"id": "other\x1fonly-theirs", "text": "stolen"})
    assert answer.status_code in (200, 422)
    theirs = service.db.get("only-theirs", caller=Caller(tenant="other"))
    assert theirs is not None
    assert theirs.text == "A vineyard that only the others know."
    assert service.ask("DELETE", "/v1/records/other%1Fonly-theirs").status_code in (200, 404)
    assert service.db.get("only-theirs", caller=Caller(tenant="other")) == theirs


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "text", "query", "filters", "limit", "metadata", "session", "subject"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=JSON, path=st.sampled_from(["/v1/search", *WRITES]))
def test_any_json_is_answered(service: Service, value: Any, path: str) -> None:
    answer = raw(service, path, json.dumps(value).encode())
    assert answer.status_code in (200, 400, 403, 404, 409, 422), answer.text
    if answer.status_code >= 400:
        error_of(answer, answer.status_code, answer.json()["error"]["code"])


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_refused(body: bytes) -> None:
    with contextlib.suppress(HttpError):
        json.dumps(parse_json(body), allow_nan=False)
