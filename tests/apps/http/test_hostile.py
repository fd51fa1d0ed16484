"""Hostile bodies and URLs: each gets a response below 500 in the error format, and does no harm."""

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

from .conftest import Service, assert_error

TYPE = {"content-type": "application/json"}
WRITES = ("/v1/records", "/v1/turns", "/v1/facts")


@pytest.fixture
def naughty(shared_data: Path) -> list[str]:
    strings: list[str] = json.loads((shared_data / "security/blns/blns.json").read_text())
    return [*strings, "a\0b", "\0", "\ufeff", "\U0010ffff", "\r\n\r\nHTTP/1.1 200 OK", "e\u0301" * 100]


def raw(service: Service, path: str, body: bytes, who: str = "writer") -> Any:
    return service.request("POST", path, who, TYPE, content=body)


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
def test_invalid_json_gets_400(service: Service, body: bytes) -> None:
    for path in ("/v1/search", *WRITES):
        assert_error(raw(service, path, body), 400, "bad_request")


@pytest.mark.parametrize("text", [r"\ud800", r"a\udfffb", r"\udc00\ud800"])
def test_lone_surrogates_are_rejected(service: Service, text: str) -> None:
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
        response = raw(service, path, (body % text).encode())
        assert response.status_code in (404, 422), (body, response.text)
        assert_error(
            response, response.status_code, "invalid_request" if response.status_code == 422 else "not_found"
        )
    assert service.db.get("x") is None


def test_other_content_types_get_415(service: Service) -> None:
    for kind in (
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/json",
        "a;b",
    ):
        refused = service.request(
            "POST", "/v1/records", headers={"content-type": kind}, content=b'{"id": "x", "text": "y"}'
        )
        assert_error(refused, 415, "unsupported_media_type")
    assert service.db.get("x") is None
    for kind in ("application/json; charset=utf-8", "APPLICATION/JSON"):
        response = service.request(
            "POST", "/v1/search", headers={"content-type": kind}, content=b'{"query": "x"}'
        )
        assert response.status_code == 200


def test_naughty_strings_are_stored_unchanged(service: Service, naughty: list[str]) -> None:
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
    response = service.post("/v1/records", records)
    assert response.status_code == 200, response.text
    for record in records:
        kept = service.db.get(record["id"])  # type: ignore[arg-type]
        assert kept is not None
        assert (kept.text, kept.metadata) == (record["text"], record["metadata"])
    for at, text in enumerate(naughty):
        found = service.search(text, filters={"id": f"n{at}"}, limit=1)
        assert all(hit["text"] == text for hit in found["hits"])
        assert found["query"] == text


def test_naughty_strings_in_urls_cause_no_server_error(service: Service, naughty: list[str]) -> None:
    for text in naughty[::3]:
        for path in (
            f"/v1/context?query={quote(text)}&recipe=keyword&format=prompt",
            f"/v1/context?query=x&recipe={quote(text)}",
            f"/v1/why?query=x&id={quote(text)}",
            f"/v1/why?query=x&id=harvest&filters={quote(text)}",
            f"/{quote(text)}",
        ):
            response = service.request("GET", path)
            assert response.status_code in (200, 404, 422), (path, response.text)
        gone = service.request("DELETE", f"/v1/records/{quote(text, safe='')}")
        assert gone.status_code in (404, 405)
    assert service.db.get("harvest") is not None


def test_invalid_bytes_in_urls_cause_no_server_error(service: Service) -> None:
    for path in ("/v1/context?query=%ff%fe", "/v1/context?query=%00", "/v1/why?query=x&id=%ed%a0%80", "/%ff"):
        assert service.request("GET", path).status_code in (200, 404, 422)
    assert service.request("DELETE", "/v1/records/%ed%a0%80").status_code == 404


def test_hostile_filters_cause_no_server_error(service: Service) -> None:
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
        response = service.post("/v1/search", {"query": "vineyard", "filters": filters})
        assert response.status_code in (200, 422), response.text
        assert "only the others know" not in response.text


def test_id_cannot_reach_into_another_tenant(service: Service) -> None:
    response = service.post("/v1/records", {"id": "other\x1fonly-theirs", "text": "stolen"})
    assert response.status_code in (200, 422)
    theirs = service.db.get("only-theirs", caller=Caller(tenant="other"))
    assert theirs is not None
    assert theirs.text == "A vineyard that only the others know."
    assert service.request("DELETE", "/v1/records/other%1Fonly-theirs").status_code in (200, 404)
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
def test_any_json_body_causes_no_server_error(service: Service, value: Any, path: str) -> None:
    response = raw(service, path, json.dumps(value).encode())
    assert response.status_code in (200, 400, 403, 404, 409, 422), response.text
    if response.status_code >= 400:
        assert_error(response, response.status_code, response.json()["error"]["code"])


@given(st.binary(max_size=200))
def test_any_bytes_parse_as_json_or_raise_http_error(body: bytes) -> None:
    with contextlib.suppress(HttpError):
        json.dumps(parse_json(body), allow_nan=False)
