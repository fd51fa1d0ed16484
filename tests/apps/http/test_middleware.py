"""Authentication, host and origin checks, and the headers of every response."""

from __future__ import annotations

import re

import pytest

from sennit.apps.http.app import HttpOptions
from sennit.apps.http.auth import PUBLIC_PATHS
from sennit.apps.http.hosts import HostPolicy

from .conftest import Service, StartService, assert_error

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
def test_request_without_a_valid_token_gets_401(service: Service, method: str, path: str) -> None:
    tokens = service.sample.tokens
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
        refused = service.request(method, path, None, shown, content=b"{")
        assert_error(refused, 401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
    twice = [("authorization", f"Bearer {tokens['writer']}"), ("authorization", f"Bearer {tokens['reader']}")]
    assert_error(service.client.request(method, path, headers=twice), 401, "unauthorized")
    assert service.db.get("harvest") is not None


def test_bearer_scheme_is_case_insensitive(service: Service) -> None:
    token = service.sample.tokens["reader"]
    for shown in (f"bearer {token}", f"BEARER  {token} "):
        response = service.request("GET", "/v1/context?query=x", None, {"authorization": shown})
        assert response.status_code == 200


def test_revoked_token_is_rejected_at_once(service: Service) -> None:
    assert service.get("/v1/context", "reader", query="x").status_code == 200
    service.db.admin.tokens.revoke("reader")
    assert_error(service.get("/v1/context", "reader", query="x"), 401, "unauthorized")
    assert service.get("/v1/context", "writer", query="x").status_code == 200


def test_token_determines_visible_records(service: Service) -> None:
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
        response = service.post("/v1/search", {"query": "vineyard", "explain": True, "limit": 50}, who)
        assert ("secretly" in response.text or "diary" in response.text) is (who == "owner")
        assert ("only-theirs" in response.text) is (who == "other")


def test_only_the_token_identifies_the_caller(service: Service) -> None:
    for name in ("x-caller", "x-tenant", "x-forwarded-user", "x-clearance"):
        assert (
            service.request(
                "POST", "/v1/search", "reader", {name: "owner"}, json={"query": "secretly"}
            ).text.count("secretly for sale")
            == 0
        )
    assert (
        "secretly for" not in service.get("/v1/context", "reader", query="secretly", clearance="private").text
    )


@pytest.mark.parametrize("path", sorted(PUBLIC_PATHS))
def test_public_routes_need_no_token(service: Service, path: str) -> None:
    for who in (None, "reader"):
        assert service.get(path, who).status_code == 200
    assert service.request("GET", path, None, {"authorization": "Bearer wrong"}).status_code == 200


# Open access


def test_open_access_uses_the_default_caller(serve: StartService) -> None:
    with serve(HttpOptions(open_access=True)) as service:
        found = service.search("vineyard", None, limit=50)
        assert "harvest" in {hit["id"] for hit in found["hits"]}
        assert "diary" not in {hit["id"] for hit in found["hits"]}
        assert service.post("/v1/records", {"id": "new", "text": "x"}, None).status_code == 200
        assert service.get("/readyz", None).json()["models"]
    with serve(HttpOptions(open_access=True), privacy__open=True) as service:
        assert "diary" in {hit["id"] for hit in service.search("vineyard", None, limit=50)["hits"]}


def test_read_only_service_rejects_all_writes(serve: StartService) -> None:
    for is_open in (True, False):
        with serve(HttpOptions(open_access=is_open, read_only=True)) as service:
            assert_error(service.post("/v1/records", {"id": "new", "text": "x"}, "owner"), 403, "forbidden")
            assert service.search("vineyard", "owner")["hits"]


# Hosts and origins


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8765", "LOCALHOST", "[::1]", "[::1]:1"])
def test_loopback_hosts_are_accepted(service: Service, host: str) -> None:
    assert service.request("GET", "/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "0.0.0.0", "localhost.", "xlocalhost"],
)
def test_other_hosts_get_421(service: Service, host: str) -> None:
    for path in ("/healthz", "/v1/context?query=vineyard"):
        assert_error(service.request("GET", path, headers={"host": host}), 421, "wrong_host")


@pytest.mark.parametrize(
    "host", ["", "localhost@evil.example", "localhost:x", "localhost/evil", "localhost, evil.example", "a b"]
)
def test_malformed_host_gets_400(service: Service, host: str) -> None:
    assert_error(service.request("GET", "/healthz", headers={"host": host}), 400, "bad_request")


def test_allowed_hosts_are_accepted(serve: StartService) -> None:
    with serve(HttpOptions(host_policy=HostPolicy(hosts=("Box.example", "other.example:99")))) as service:
        for host, status in (
            ("box.example", 200),
            ("box.example:443", 200),
            ("other.example:99", 200),
            ("other.example", 421),
            ("localhost", 200),
            ("evil.example", 421),
        ):
            assert service.request("GET", "/healthz", headers={"host": host}).status_code == status
    with serve(HttpOptions(host_policy=HostPolicy(any_host=True))) as service:
        assert service.request("GET", "/healthz", headers={"host": "any.example"}).status_code == 200


def test_other_origins_get_403(service: Service) -> None:
    own = {"host": "localhost:8765", "origin": "http://localhost:8765"}
    assert service.request("GET", "/healthz", headers=own).status_code == 200
    for origin in ("https://evil.example", "null", "http://localhost", "http://localhost:1", "file://"):
        response = service.request("GET", "/healthz", headers={**own, "origin": origin})
        assert_error(response, 403, "forbidden")
        assert not [name for name in response.headers if name.startswith("access-control")]
    preflight = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    refused = service.request("OPTIONS", "/v1/search", None, preflight)
    assert refused.status_code == 403
    assert not [name for name in refused.headers if name.startswith("access-control")]


def test_allowed_origin_gets_cors_headers(serve: StartService) -> None:
    page = "https://page.example"
    with serve(HttpOptions(host_policy=HostPolicy(origins=(page,)))) as service:
        asked = {
            "origin": page,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type",
        }
        allowed = service.request("OPTIONS", "/v1/search", None, asked)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == page
        response = service.request("POST", "/v1/search", headers={"origin": page}, json={"query": "x"})
        assert response.status_code == 200
        assert response.headers["access-control-allow-origin"] == page
        evil = service.request(
            "POST", "/v1/search", headers={"origin": "https://evil.example"}, json={"query": "x"}
        )
        assert evil.status_code == 403
        assert "access-control-allow-origin" not in evil.headers


# Response headers


@pytest.mark.parametrize("sane", ["a", "7f3c-1:2.x_y", "A" * 128])
def test_well_formed_request_id_is_used(service: Service, sane: str) -> None:
    assert service.request("GET", "/healthz", headers={"x-request-id": sane}).headers["x-request-id"] == sane


@pytest.mark.parametrize("odd", ["", " ", "A" * 129, 'a"b', "a b", "../x", b"\xff", "é".encode()])
def test_malformed_request_id_is_replaced(service: Service, odd: str | bytes) -> None:
    made = service.request("GET", "/healthz", headers={"x-request-id": odd}).headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{32}", made)


def test_every_response_has_security_headers(service: Service) -> None:
    for response in (service.get("/healthz"), service.get("/nothing"), service.get("/v1/context", query="x")):
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "server" not in response.headers
