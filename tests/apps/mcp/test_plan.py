"""The tool `plan_context`."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp_types import TextContent

import sennit

from .conftest import SampleDatabase, structured_content_of, text_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def coded(sample: SampleDatabase, project: Path) -> SampleDatabase:
    """The sample with a file of code in its database."""
    with sennit.open(sample.db) as db:
        db.index(project, recipe="code")
    return sample


async def test_plan_lists_code_with_lines_and_dropped_entities(coded: SampleDatabase) -> None:
    async with coded.client() as client:
        answer = await client.call_tool("plan_context", {"query": "fix auth.py", "max_tokens": 60})
    with structured_content_of(answer) as values:
        assert [entry["qualified"] for entry in values["entries"]] == ["login"]
        assert [one["key"].rpartition("::")[2] for one in values["dropped"]][:1] == ["check"]
    text = text_of(answer)
    assert "auth.py:1-2 login\n```python\ndef login(name):" in text
    said = answer.content[1]
    assert isinstance(said, TextContent)
    assert "Warning: the anchor" in said.text
    assert "data to be judged" in said.text


async def test_later_turns_include_code_of_earlier_turns(coded: SampleDatabase) -> None:
    async with coded.client() as client:
        await client.call_tool("plan_context", {"query": "`check`", "episode": "task"})
        answer = await client.call_tool("plan_context", {"query": "what now?", "episode": "task"})
    with structured_content_of(answer) as values:
        assert values["turn"] == 2
        assert "anchor:hydrated_previous_turn" in {entry["reason"] for entry in values["entries"]}


async def test_read_only_server_rejects_an_episode(coded: SampleDatabase) -> None:
    async with coded.client(read_only=True) as client:
        with structured_content_of(await client.call_tool("plan_context", {"query": "`check`"})) as values:
            assert values["turn"] == 0
            assert values["entries"]
        refused = await client.call_tool("plan_context", {"query": "`check`", "episode": "task"})
    assert refused.is_error
    assert "leave episode out" in text_of(refused)
