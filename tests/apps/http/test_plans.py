"""Plans of code and their introspection over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Service


@pytest.fixture
def coded(service: Service, project: Path) -> Service:
    """The service over a database that also contains code."""
    service.db.index(project, recipe="code")
    return service


def test_plan_has_entries_with_reasons_and_a_prompt(coded: Service) -> None:
    response = coded.post("/v1/plan", {"query": "fix auth.py", "max_tokens": 60}, "reader")
    assert response.status_code == 200, response.text
    plan = response.json()
    (entry,) = plan["entries"]
    assert (entry["qualified"], entry["reason"], entry["priority"], entry["position"]) == (
        "login",
        "anchor:explicit_file_mention",
        100,
        1,
    )
    assert plan["tokens"] == entry["tokens"] <= plan["max_tokens"] == 60
    assert plan["dropped"][0]["key"].endswith("auth.py::check")
    assert "def login(name):" in plan["prompt"]


def test_episode_can_be_inspected_and_replayed(coded: Service) -> None:
    for query in ("`login`", "what now?"):
        assert coded.post("/v1/plan", {"query": query, "episode": "task/1"}).status_code == 200
    seen = coded.get("/introspect/hydration/task/1").json()
    assert (seen["query"], seen["turn"], seen["turns"]) == ("what now?", 2, [1, 2])
    assert seen["episode_id"] == "task/1"
    names = ("entity_key", "reason", "priority", "token_count", "included_at", "content")
    assert set(names) <= seen["entities"][0].keys()
    assert [entity["included_at"] for entity in seen["entities"]] == list(range(1, len(seen["entities"]) + 1))
    assert {entity["content"].partition("(")[0] for entity in seen["entities"]} == {"def login", "def check"}
    assert "text" not in seen["entities"][0]
    assert (seen["dropped"], seen["warnings"]) == ([], [])
    assert "replay" not in seen
    first = coded.get("/introspect/hydration/task/1", turn=1, replay=True).json()
    assert first["query"] == "`login`"
    assert first["replay"] == {"added": [], "removed": [], "changed": []}


@pytest.mark.parametrize(
    ("path", "parameters", "status"),
    [
        ("/introspect/hydration/nothing", {}, 404),
        ("/introspect/hydration/task", {"turn": 9}, 404),
        ("/introspect/hydration/task", {"turn": 0}, 422),
    ],
)
def test_missing_episode_or_turn_is_not_found(
    coded: Service, path: str, parameters: dict[str, Any], status: int
) -> None:
    coded.post("/v1/plan", {"query": "`login`", "episode": "task"})
    assert coded.get(path, **parameters).status_code == status


def test_episode_of_another_tenant_is_not_found(coded: Service) -> None:
    coded.post("/v1/plan", {"query": "`login`", "episode": "task"})
    assert coded.get("/introspect/hydration/task", "other").status_code == 404
    assert coded.get("/introspect/hydration/task", "reader").status_code == 200


def test_token_without_write_access_cannot_store_an_episode(coded: Service) -> None:
    refused = coded.post("/v1/plan", {"query": "`login`", "episode": "task"}, "reader")
    assert refused.status_code == 403
    assert coded.get("/introspect/hydration/task").status_code == 404


@pytest.mark.parametrize(
    "body",
    [{}, {"query": "x", "max_tokens": 0}, {"query": "x", "episode": ""}, {"query": "x", "tenant": "other"}],
)
def test_invalid_plan_body_gets_422(coded: Service, body: dict[str, object]) -> None:
    assert coded.post("/v1/plan", body).status_code == 422
