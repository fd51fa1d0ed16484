"""Who is let in: by token, by name, by origin; and what every answer carries."""

from __future__ import annotations

import re

import pytest

from sennit.apps.http.app import HttpOptions
from sennit.apps.http.auth import PUBLIC_PATHS
from sennit.apps.http.hosts import HostPolicy

from .conftest import Serve, Service, error_of

PROTECTED = [
    ("POST", "/v1/search"),
    ("GET", "/v1/context?query=x"),
    ("GET", "/v1/why?query=x&id=harvest"),
    ("POST", "/v1/records"),
    ("POST", "/v1/turns"),
    ("POST", "/v1/facts"),
    ("DELETE", "/v1/records/harvest"),
    ("GET", "/metrics"),
    ("GET", "/nothing/here"),
]


@pytest.mark.parametrize(("method", "path"), PROTECTED)
def test_without_a_token_nothing_is_told(service: Service, method: str, path: str) -> None:
    tokens = service.place.tokens
    for shown in (
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong"},
        {"authorization": tokens["writer"]},
        {"authorization": f"Basic {tokens['writer']}"},
        {"authorization": f"Bearer {tokens['writer']}x"},
        {"authorization": f"Bearer {tokens['writer'][:-1]}"},
        {"authorization": f"Bearer {tokens['writer']} {tokens['writer']}"},
        {"authorization": "Bearer " + "x" * 10_000},
        {"authorization": b"Bearer \xff\xfe"},
    ):
        refused = service.ask(method, path, None, shown, content=b"{")
        error_of(refused, 401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
    twice = [("authorization", f"Bearer {tokens['writer']}"), ("authorization", f"Bearer {tokens['reader']}")]
    error_of(service.client.request(method, path, headers=twice), 401, "unauthorized")
    assert service.db.get("harvest") is not None


def test_the_scheme_is_known_in_any_case(service: Service) -> None:
    token = service.place.tokens["reader"]
    for shown in (f"bearer {token}", f"BEARER  {token} "):
        answer = service.ask("GET", "/v1/context?query=x", None, {"authorization": shown})
        assert answer.status_code == 200


def test_a_token_that_is_taken_back_is_refused_at_once(service: Service) -> None:
    assert service.get("/v1/context", "reader", query="x").status_code == 200
    service.db.tokens.revoke("reader")
    error_of(service.get("/v1/context", "reader", query="x"), 401, "unauthorized")
    assert service.get("/v1/context", "writer", query="x").status_code == 200


def test_each_token_sees_what_its_caller_may_see(service: Service) -> None:
    def seen(who: str) -> set[str]:
        return {
            hit["text"] for hit in service.search("vineyard", who, limit=50)["hits"] if "vine" in hit["text"]
        }

    harvest, diary = "Report of the harvest", "The vineyard is secretly for sale."
    assert any(text.startswith(harvest) for text in seen("reader"))
    assert diary not in seen("reader")
    assert diary in seen("owner")
    assert seen("other") == {"The vineyard of the other company.", "A vineyard that only the others know."}
    for who in ("reader", "owner", "other"):
        answer = service.post("/v1/search", {"query": "vineyard", "explain": True, "limit": 50}, who)
        assert ("secretly" in answer.text or "diary" in answer.text) is (who == "owner")
        assert ("only-theirs" in answer.text) is (who == "other")


def test_nothing_in_a_request_but_the_token_says_who_asks(service: Service) -> None:
    for name in ("x-caller", "x-tenant", "x-forwarded-user", "x-clearance"):
        assert (
            service.ask(
                "POST", "/v1/search", "reader", {name: "owner"}, json={"query": "secretly"}
            ).text.count("secretly for sale")
            == 0
        )
    assert (
        "secretly for" not in service.get("/v1/context", "reader", query="secretly", clearance="private").text
    )


@pytest.mark.parametrize("path", sorted(PUBLIC_PATHS))
def test_what_anybody_may_ask(service: Service, path: str) -> None:
    for who in (None, "reader"):
        assert service.get(path, who).status_code == 200
    assert service.ask("GET", path, None, {"authorization": "Bearer wrong"}).status_code == 200


# Without tokens


def test_open_lets_in_as_the_default_caller(serve: Serve) -> None:
    with serve(HttpOptions(open_access=True)) as service:
        found = service.search("vineyard", None, limit=50)
        assert "harvest" in {hit["id"] for hit in found["hits"]}
        assert "diary" not in {hit["id"] for hit in found["hits"]}
        assert service.post("/v1/records", {"id": "new", "text": "x"}, None).status_code == 200
        assert service.get("/readyz", None).json()["models"]
    with serve(HttpOptions(open_access=True), privacy__open=True) as service:
        assert "diary" in {hit["id"] for hit in service.search("vineyard", None, limit=50)["hits"]}


def test_read_only_writes_for_nobody(serve: Serve) -> None:
    for is_open in (True, False):
        with serve(HttpOptions(open_access=is_open, read_only=True)) as service:
            error_of(service.post("/v1/records", {"id": "new", "text": "x"}, "owner"), 403, "forbidden")
            assert service.search("vineyard", "owner")["hits"]


# Names and pages


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8765", "LOCALHOST", "[::1]", "[::1]:1"])
def test_the_loopback_names_are_answered(service: Service, host: str) -> None:
    assert service.ask("GET", "/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "0.0.0.0", "localhost.", "xlocalhost"],
)
def test_another_name_is_refused(service: Service, host: str) -> None:
    for path in ("/healthz", "/v1/context?query=vineyard"):
        error_of(service.ask("GET", path, headers={"host": host}), 421, "wrong_host")


@pytest.mark.parametrize(
    "host", ["", "localhost@evil.example", "localhost:x", "localhost/evil", "localhost, evil.example", "a b"]
)
def test_what_is_no_name_is_refused(service: Service, host: str) -> None:
    error_of(service.ask("GET", "/healthz", headers={"host": host}), 400, "bad_request")


def test_names_that_are_allowed_are_answered(serve: Serve) -> None:
    with serve(HttpOptions(host_policy=HostPolicy(hosts=("Box.example", "other.example:99")))) as service:
        for host, status in (
            ("box.example", 200),
            ("box.example:443", 200),
            ("other.example:99", 200),
            ("other.example", 421),
            ("localhost", 200),
            ("evil.example", 421),
        ):
            assert service.ask("GET", "/healthz", headers={"host": host}).status_code == status
    with serve(HttpOptions(host_policy=HostPolicy(any_host=True))) as service:
        assert service.ask("GET", "/healthz", headers={"host": "any.example"}).status_code == 200


def test_pages_of_other_origins_are_refused(service: Service) -> None:
    own = {"host": "localhost:8765", "origin": "http://localhost:8765"}
    assert service.ask("GET", "/healthz", headers=own).status_code == 200
    for origin in ("https://evil.example", "null", "http://localhost", "http://localhost:1", "file://"):
        answer = service.ask("GET", "/healthz", headers={**own, "origin": origin})
        error_of(answer, 403, "forbidden")
        assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    refused = service.ask("OPTIONS", "/v1/search", None, preflight)
    assert refused.status_code == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


def test_pages_that_are_allowed_may_ask(serve: Serve) -> None:
    page = "https://page.example"
    with serve(HttpOptions(host_policy=HostPolicy(origins=(page,)))) as service:
        asked = {
            "origin": page,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type",
        }
        allowed = service.ask("OPTIONS", "/v1/search", None, asked)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == page
        answer = service.ask("POST", "/v1/search", headers={"origin": page}, json={"query": "x"})
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == page
        evil = service.ask(
            "POST", "/v1/search", headers={"origin": "https://evil.example"}, json={"query": "x"}
        )
        assert evil.status_code == 403
        assert "access-control-allow-origin" not in evil.headers


# What every answer carries


@pytest.mark.parametrize("sane", ["a", "7f3c-1:2.x_y", "A" * 128])
def test_a_sane_request_id_is_kept(service: Service, sane: str) -> None:
    assert service.ask("GET", "/healthz", headers={"x-request-id": sane}).headers["x-request-id"] == sane


@pytest.mark.parametrize("odd", ["", " ", "A" * 129, 'a"b', "a b", "../x", b"\xff", "é".encode()])
def test_another_request_id_is_replaced(service: Service, odd: str | bytes) -> None:
    made = service.ask("GET", "/healthz", headers={"x-request-id": odd}).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", made)


def test_every_answer_is_for_this_client_alone_and_what_it_says_it_is(service: Service) -> None:
    for answer in (service.get("/healthz"), service.get("/nothing"), service.get("/v1/context", query="x")):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
