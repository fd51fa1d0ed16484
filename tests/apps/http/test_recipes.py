"""Saving a tuned recipe over HTTP, thresholds of trials, episodes, and the numbers of the operator."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from urllib.parse import quote

import pytest

from apps.http.conftest import Service, StartService, assert_error
from sennit.apps.http.app import HttpOptions
from sennit.apps.http.auth import SignIn
from sennit.privacy import Caller
from sennit.settings import SettingsFile

TUNED = {"name": "tuned", "recipe": "rrf", "fusion": {"method": "rrf", "k": 20.0}}


def test_anybody_sees_the_table_and_only_an_administrator_saves_it(
    serve: StartService, tmp_path: Path
) -> None:
    file = tmp_path / "sennit.toml"
    with serve(HttpOptions(recipe_file=SettingsFile(file))) as service:
        shown = service.post("/v1/recipes", TUNED, "reader").json()
        assert not shown["saved"]
        assert shown["file"] is None
        table = tomllib.loads(shown["toml"])["recipes"]["tuned"]
        assert table["base"] == "rrf"
        assert table["fusion"]["k"] == 20.0
        for who in ("reader", "writer", "other"):
            assert_error(service.post("/v1/recipes", TUNED | {"write": True}, who), 403, "forbidden")
            assert not service.get("/v1/caller", who).json()["saves_recipes"]
        acting = {"x-sennit-as": quote(json.dumps({"token": "owner"}))}
        refused = service.request("POST", "/v1/recipes", "owner", acting, json=TUNED | {"write": True})
        assert_error(refused, 403, "forbidden")
        assert not file.exists()
        assert service.get("/v1/caller", "owner").json()["saves_recipes"]
        assert service.post("/v1/recipes", TUNED, "owner").json()["file"] == str(file)
        saved = service.post("/v1/recipes", TUNED | {"write": True}, "owner").json()
        assert saved["saved"]
        assert file.read_text() == saved["toml"] == shown["toml"]
        found = service.search("vineyard", "reader", recipe="tuned", explain=True)
        assert found["trace"]["recipe"]["fusion"]["k"] == 20.0
        assert "tuned" in [one["name"] for one in service.get("/v1/recipes", "reader").json()["recipes"]]
        again = service.post("/v1/recipes", TUNED | {"write": True}, "owner")
        assert_error(again, 422, "invalid_request")


@pytest.mark.parametrize(
    "options", [HttpOptions(), HttpOptions(read_only=True, recipe_file=SettingsFile(Path("x")))]
)
def test_service_that_was_not_started_for_it_saves_nothing(serve: StartService, options: HttpOptions) -> None:
    with serve(options) as service:
        refused = service.post("/v1/recipes", TUNED | {"write": True}, "owner")
        assert "sennit open" in assert_error(refused, 403, "forbidden")


def test_user_of_the_page_saves_recipes_and_judges(serve: StartService, tmp_path: Path) -> None:
    sign_in = SignIn(Caller())
    file = tmp_path / "sennit.toml"
    with serve(HttpOptions(sign_in=sign_in, recipe_file=SettingsFile(file))) as service:
        code = {"authorization": f"Bearer {sign_in.code}"}
        token = service.request("POST", "/v1/sign-in", None, code).json()["token"]
        session = {"authorization": f"Bearer {token}"}
        body = TUNED | {"name": "</script>", "write": True}
        assert service.request("POST", "/v1/recipes", None, session, json=body).json()["saved"]
        assert "</script>" in tomllib.loads(file.read_text())["recipes"]
        found = service.request("POST", "/v1/search", None, session, json={"query": "vineyard"}).json()
        judged = {
            "query_id": found["query_id"],
            "action_name": "judge",
            "object_id": found["hits"][0]["id"],
            "grade": 3,
        }
        assert service.request("POST", "/v1/feedback", None, session, json=judged).status_code == 200


def test_thresholds_of_a_trial_cut_what_a_source_finds(service: Service) -> None:
    body = {"query": "vineyard vacation", "recipe": "rrf", "limit": 10}
    found = service.post("/v1/trial", body, "reader").json()
    scores = [
        one["score"]
        for candidate in found["trace"]["candidates"]
        for one in candidate["sources"]
        if one["source"] == "vector" and one["rank"]
    ]
    highest = max(scores)
    cut = service.post(
        "/v1/trial", body | {"thresholds": {"vector": {"min_score": highest}}}, "reader"
    ).json()
    vector = next(one for one in cut["trace"]["sources"] if one["name"] == "vector")
    assert vector["found"] == 1
    relevant = service.post("/v1/trial", body | {"min_relevance": 0.999}, "reader").json()
    assert relevant["hits"] == []
    unknown = service.post("/v1/trial", body | {"thresholds": {"graph": {"min_score": 1}}}, "reader")
    assert "Its sources: keyword, vector" in assert_error(unknown, 422, "invalid_request")
    saved = service.post(
        "/v1/recipes",
        {"name": "t", "recipe": "rrf", "thresholds": {"vector": {"min_score": 0.5}}, "min_relevance": 0.3},
        "reader",
    ).json()
    table = tomllib.loads(saved["toml"])["recipes"]["t"]
    assert table["min_relevance"] == 0.3
    assert table["sources"][1]["min_score"] == 0.5


def test_episodes_are_listed_for_those_who_see_the_same(service: Service) -> None:
    plan = {"query": "what does the secret file say", "episode": "e/1"}
    assert service.post("/v1/plan", plan, "owner").status_code == 200
    assert (
        service.post("/v1/plan", plan | {"episode": "e2", "query": "vineyard"}, "writer").status_code == 200
    )
    assert service.post("/v1/plan", plan | {"episode": "e2", "query": "harvest"}, "writer").status_code == 200
    all_of_them = service.get("/v1/episodes", "owner").json()["episodes"]
    assert [one["episode_id"] for one in all_of_them] == ["e2", "e/1"]
    assert [turn["query"] for turn in all_of_them[0]["turns"]] == ["vineyard", "harvest"]
    for who in ("reader", "writer"):
        listed = service.get("/v1/episodes", who)
        assert [one["episode_id"] for one in listed.json()["episodes"]] == ["e2"]
        assert "secret" not in listed.text
    assert service.get("/v1/episodes", "other").json()["episodes"] == []


def test_backlog_is_for_the_operator(service: Service) -> None:
    assert service.get("/v1/state", "owner").json()["status"]["behind"] == {}
    assert service.get("/v1/state", "reader").json()["status"]["pending_vectors"] == 0
