"""Code for a prompt, by the tool `plan_context`."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_types import TextContent

import sennit

from .conftest import Place, no_errors, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def coded(place: Place, project: Path) -> Place:
    """The place with a file of code in its database."""
    with sennit.open(place.db) as db:
        db.index(project, recipe="code")
    return place


async def test_the_code_of_a_task_comes_with_paths_lines_and_what_did_not_fit(coded: Place) -> None:
    async with coded.client() as client:
        answer = await client.call_tool("plan_context", {"query": "fix auth.py", "max_entities": 1})
    with no_errors(answer) as values:
        assert [entry["qualified"] for entry in values["entries"]] == ["login"]
        assert [one["key"].rpartition("::")[2] for one in values["dropped"]][:1] == ["check"]
    text = text_of(answer)
    assert "auth.py:1-2 login\n```python\ndef login(name):" in text
    said = answer.content[1]
    assert isinstance(said, TextContent)
    assert "Warning: the anchor" in said.text
    assert "data to be judged" in said.text


async def test_turns_of_an_episode_build_on_each_other(coded: Place) -> None:
    async with coded.client() as client:
        await client.call_tool("plan_context", {"query": "`check`", "episode": "task"})
        answer = await client.call_tool("plan_context", {"query": "what now?", "episode": "task"})
    with no_errors(answer) as values:
        assert values["turn"] == 2
        assert "anchor:hydrated_previous_turn" in {entry["reason"] for entry in values["entries"]}


async def test_who_may_only_read_plans_without_an_episode(coded: Place) -> None:
    async with coded.client(read_only=True) as client:
        with no_errors(await client.call_tool("plan_context", {"query": "`check`"})) as values:
            assert values["turn"] == 0
            assert values["entries"]
        refused = await client.call_tool("plan_context", {"query": "`check`", "episode": "task"})
    assert refused.is_error
    assert "leave episode out" in text_of(refused)
