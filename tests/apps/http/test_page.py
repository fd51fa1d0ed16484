"""The files of the page, its headers, signing in by code, and acting for another caller."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from apps.http.conftest import Service, StartService, assert_error
from sennit.apps.http import assets
from sennit.apps.http.app import HttpOptions
from sennit.apps.http.assets import ASSETS
from sennit.apps.http.auth import SignIn
from sennit.privacy import Caller

WEB = Path(assets.__file__).parents[1] / "web"
MAX_PAGE_BYTES = 250_000


def test_page_is_small_and_names_no_other_host() -> None:
    assert sum(len(asset.compressed) for asset in ASSETS.values()) < MAX_PAGE_BYTES
    for file in WEB.iterdir():
        text = file.read_text()
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)[\w.-]+", text), file.name
        assert "innerHTML" not in text, file.name
        if file.suffix == ".html":
            assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=", text), file.name


@pytest.mark.parametrize("path", sorted(ASSETS))
def test_files_come_with_a_strict_policy(service: Service, path: str) -> None:
    response = service.request("GET", path, None, {"accept-encoding": "gzip"})
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert response.headers["referrer-policy"] == "no-referrer"
    assert response.headers["content-encoding"] == "gzip"
    assert response.content == ASSETS[path].body
    plain = service.request("GET", path, None, {"accept-encoding": "identity"})
    assert plain.content == ASSETS[path].body
    assert "content-encoding" not in plain.headers


def test_one_time_code_works_once_and_only_to_sign_in(serve: StartService) -> None:
    sign_in = SignIn(Caller(everything=True, name="owner"))
    with serve(HttpOptions(sign_in=sign_in)) as service:
        code = {"authorization": f"Bearer {sign_in.code}"}
        assert_error(service.request("GET", "/v1/caller", None, code), 401, "unauthorized")
        token = service.request("POST", "/v1/sign-in", None, code).json()["token"]
        assert_error(service.request("POST", "/v1/sign-in", None, code), 401, "unauthorized")
        session = {"authorization": f"Bearer {token}"}
        caller = service.request("GET", "/v1/caller", None, session).json()
        assert caller["everything"]
        assert caller["write"]
        assert_error(service.request("POST", "/v1/sign-in", "owner"), 403, "forbidden")
    with serve(HttpOptions(sign_in=SignIn(Caller()), read_only=True)) as service:
        assert_error(service.request("GET", "/v1/caller", None, session), 401, "unauthorized")


def acting(value: object) -> dict[str, str]:
    return {"x-sennit-as": quote(json.dumps(value))}


def test_only_the_owner_acts_for_others_of_the_tenant(service: Service) -> None:
    body = {"query": "vineyard secretly", "limit": 50, "explain": True}

    def search(who: str, value: object) -> str:
        response = service.request("POST", "/v1/search", who, acting(value), json=body)
        assert response.status_code == 200, response.text
        return response.text

    assert "secretly for sale" in search("owner", {"clearance": "private", "scopes": ["me"]})
    for value in ({"token": "reader"}, {"clearance": "private"}, {"scopes": ["me"]}, {}):
        assert "secretly for sale" not in search("owner", value)
    for who in ("reader", "writer", "other"):
        refused = service.request("POST", "/v1/search", who, acting({"clearance": "private"}), json=body)
        assert_error(refused, 403, "forbidden")
    for name in ("other", "missing"):
        refused = service.request("POST", "/v1/search", "owner", acting({"token": name}), json=body)
        assert_error(refused, 404, "not_found")


def test_acting_for_another_never_writes(service: Service) -> None:
    response = service.request(
        "POST", "/v1/records", "owner", acting({"token": "writer"}), json={"id": "new", "text": "x"}
    )
    assert_error(response, 403, "forbidden")


@pytest.mark.parametrize(
    "value",
    ["x", "[]", '{"token": 1}', '{"everything": true}', '{"scopes": "me"}', '{"scopes": [""]}', "%ff"],
)
def test_malformed_acting_header_is_refused(service: Service, value: str) -> None:
    response = service.request("GET", "/v1/caller", "owner", {"x-sennit-as": value})
    assert_error(response, 422, "invalid_request")


def test_unknown_clearance_is_refused(service: Service) -> None:
    response = service.request("GET", "/v1/caller", "owner", acting({"clearance": "cosmic"}))
    assert_error(response, 422, "invalid_request")


def test_nobody_acts_for_others_where_a_rule_decides(serve: StartService) -> None:
    with serve(rule=lambda caller: None) as service:
        assert service.get("/v1/caller", "owner").json()["callers"] == []
        response = service.request("GET", "/v1/caller", "owner", acting({"token": "reader"}))
        assert_error(response, 403, "forbidden")


def test_caller_lists_only_tokens_of_its_tenant(service: Service) -> None:
    assert {one["token"] for one in service.get("/v1/caller", "owner").json()["callers"]} == {
        "owner",
        "reader",
        "writer",
    }
    assert service.get("/v1/caller", "reader").json()["callers"] == []


def test_fields_and_values_of_what_the_caller_may_see(service: Service) -> None:
    assert "artifact_type" in service.get("/v1/fields", "reader").json()["fields"]
    assert service.get("/v1/fields", "reader", prefix="artifact").json()["fields"] == ["artifact_type"]
    values = service.get("/v1/fields", "reader", name="scope").json()["values"]
    assert [one["name"] for one in values] == ["public"]
    assert "me" in {one["name"] for one in service.get("/v1/fields", "owner", name="scope").json()["values"]}
    assert_error(service.get("/v1/fields", "reader", name="a and b"), 422, "invalid_request")


def test_recipes_are_listed_with_their_settings(service: Service) -> None:
    listed = service.get("/v1/recipes", "reader").json()
    assert listed["default"] == "default"
    by_name = {one["name"]: one for one in listed["recipes"]}
    assert by_name["rrf"]["fusion"] == {"method": "rrf", "k": 60.0, "first_rank": 1.0, "weighting": "score"}


def test_why_finds_a_record_by_its_text_and_what_admits_it(service: Service) -> None:
    found = service.post(
        "/v1/why", {"query": "vineyard harvest", "reference": "secretly for sale", "limit": 1}, "owner"
    ).json()
    assert found["record"]["id"] == "diary"
    assert not found["why"]["kept"]
    limit = next(change for change in found["changes"] if change["kind"] == "limit")
    again = service.search("vineyard harvest", "owner", limit=limit["after"])
    assert "diary" in [hit["id"] for hit in again["hits"]]
    for reference in ("diary", "secretly for sale"):
        hidden = service.post("/v1/why", {"query": "vineyard", "reference": reference}, "reader")
        assert_error(hidden, 404, "not_found")
        assert "sale" not in hidden.text.replace(reference, "")


def test_trial_changes_the_recipe_and_refuses_nonsense(service: Service) -> None:
    body = {"query": "vineyard", "recipe": "rrf", "limit": 3}
    changed = service.post("/v1/trial", {**body, "fusion": {"method": "rrf", "k": 1.0}}, "reader").json()
    assert changed["trace"]["recipe"]["fusion"]["k"] == 1.0
    assert "secretly" not in json.dumps(changed)
    for fusion in (
        {"method": "nonsense"},
        {"method": "rrf", "k": -1},
        {"method": "weighted", "weights": {"x": 1}},
    ):
        assert_error(service.post("/v1/trial", {**body, "fusion": fusion}, "reader"), 422, "invalid_request")
    assert_error(
        service.post("/v1/trial", {**body, "stages": [{"stage": "x"}]}, "reader"), 422, "invalid_request"
    )


def test_judged_queries_are_measured_for_the_caller_alone(service: Service) -> None:
    found = service.search("vineyard", "reader")
    judged = {"query_id": found["query_id"], "action_name": "judge", "object_id": "harvest", "grade": 3}
    assert service.post("/v1/feedback", judged, "reader").status_code == 200
    measured = service.post("/v1/trial/judged", {"recipe": "keyword"}, "reader").json()
    assert [one["query"] for one in measured["queries"]] == ["vineyard"]
    assert measured["before"] == measured["after"] == 1.0
    assert service.post("/v1/trial/judged", {"recipe": "keyword"}, "writer").json()["queries"] == []


def test_two_recipes_are_measured_on_the_same_judged_queries(service: Service) -> None:
    found = service.search("vineyard", "reader")
    grade = {"query_id": found["query_id"], "action_name": "judge", "object_id": "harvest", "grade": 3}
    service.post("/v1/feedback", {**grade, "application": "page"}, "reader")

    def measure(**body: str) -> Any:
        return service.post("/v1/trial/judged", body, "reader").json()

    both = measure(recipe="keyword", compare_with="memory")
    assert both["before"] == measure(recipe="keyword")["after"] == 1.0
    assert both["after"] == measure(recipe="memory")["before"] == 0.0
    assert both["queries"][0]["first_changes"]
    unknown = service.post("/v1/trial/judged", {"recipe": "keyword", "compare_with": "nothing"}, "reader")
    assert_error(unknown, 404, "not_found")


def test_state_counts_the_last_hour_and_the_report_is_for_the_owner(service: Service) -> None:
    service.search("vineyard", "reader")
    hour = service.get("/v1/state", "reader").json()["hour"]
    assert len(hour) == 60
    assert sum(minute["searches"] for minute in hour) == 1
    asked = service.get("/v1/state", "reader").json()["sources"]
    assert {one["name"]: (one["searches"], one["failed"]) for one in asked} == {
        "keyword": (1, 0),
        "vector": (1, 0),
        "links": (1, 0),
    }
    assert all(0 < one["p50"] <= one["p95"] for one in asked)
    assert set(next(minute["sources"] for minute in hour if minute["searches"])) == {
        one["name"] for one in asked
    }
    assert_error(service.get("/v1/report", "reader"), 403, "forbidden")
    report = service.get("/v1/report", "owner")
    assert report.json()["records"] >= 4
    for secret in ("vineyard", "harvest", str(service.db.path)):
        assert secret not in report.text


def test_why_tells_who_acts_for_another_what_that_caller_lacks(service: Service) -> None:
    found = service.request(
        "POST",
        "/v1/why",
        "owner",
        acting({"token": "reader"}),
        json={"query": "vineyard secretly", "reference": "diary"},
    ).json()
    assert found["why"]["stage"] == "caller"
    assert found["changes"][0]["kind"] == "caller"
    assert found["changes"][0]["after"] == "private"


def test_smallest_limit_is_found_where_more_candidates_push_a_record_back(serve: StartService) -> None:
    with serve() as service:
        records = [{"id": f"n{n}", "text": "vineyard " * (n % 5 + 1) + f"row {n}"} for n in range(60)]
        service.post("/v1/records", records)
        order = [hit["id"] for hit in service.search("vineyard", limit=30)["hits"]]
        found = service.post("/v1/why", {"query": "vineyard", "reference": order[12], "limit": 10}).json()
        limit = next(change for change in found["changes"] if change["kind"] == "limit")
        smaller = service.search("vineyard", limit=limit["after"] - 1)["hits"]
        assert order[12] not in [hit["id"] for hit in smaller]
        assert service.search("vineyard", limit=limit["after"])["hits"][limit["rank"] - 1]["id"] == order[12]
