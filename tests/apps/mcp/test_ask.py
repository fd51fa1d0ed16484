"""Answers in words, by the tool `ask`."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from llm.server import ChatServer, Response

from ..conftest import document
from .conftest import Place, no_errors, text_of

pytestmark = pytest.mark.anyio

QUESTION = {"query": "what is a lease?"}


@pytest.fixture
def documented(place: Place, tmp_path: Path) -> Place:
    document(place.db, tmp_path / "docs")
    return place


def note_of(result: CallToolResult) -> str:
    """The second block of an answer: what is to be known of the first."""
    block = result.content[1]
    assert isinstance(block, TextContent)
    return block.text


async def test_without_a_model_the_pages_answer_with_citations(documented: Place) -> None:
    async with documented.client() as client:
        answer = await client.call_tool("ask", QUESTION)
    with no_errors(answer) as values:
        assert values["model"] is None
        assert values["citations"][0]["place"].endswith("leases.md:1-5")
    assert text_of(answer) == values["text"] == "A lease is a loan of a job to a worker. [1]"
    assert note_of(answer).startswith("[1] Leases > Overview — ")
    assert "data to be judged" in note_of(answer)


async def test_a_real_client_gets_what_the_model_wrote_checked(documented: Place, chat: ChatServer) -> None:
    chat.says = "It is a loan [1], and\u202e art [44]."
    async with Client(documented.server_parameters(env=chat.environment())) as client:
        answer = await client.call_tool("ask", {**QUESTION, "editor": "lease()", "limit": 2})
    with no_errors(answer) as values:
        assert (values["text"], values["model"]) == ("It is a loan [1], and art.", "openai/small")
    assert "Written by openai/small" in note_of(answer)
    assert "lease()" in str(chat.requests[0].body)


async def test_a_model_that_fails_is_named_and_the_pages_answer(documented: Place, chat: ChatServer) -> None:
    chat.script = [Response(500)]
    async with Client(documented.server_parameters(env=chat.environment())) as client:
        answer = await client.call_tool("ask", QUESTION)
    with no_errors(answer) as values:
        assert [one["source"] for one in values["degraded"]] == ["answer"]
        assert "A lease is a loan" in values["text"]
    assert "Missing from this answer: answer: " in note_of(answer)


async def test_what_the_caller_may_not_see_is_in_no_prompt_and_no_answer(
    documented: Place, chat: ChatServer
) -> None:
    for options, sees in (((), False), (("--clearance", "private"), True)):
        async with Client(documented.server_parameters(*options, env=chat.environment())) as client:
            await client.call_tool("ask", {"query": "lease of the vault"})
        assert ("eleven" in str(chat.requests[-1].body)) is sees


async def test_what_makes_no_sense_is_told(documented: Place) -> None:
    async with documented.client() as client:
        for given, said in (
            ({}, "ask needs the argument 'query'"),
            ({"query": "x", "recipe": "soup"}, "There is no recipe 'soup'"),
            ({"query": "x", "limit": 51}, "limit"),
            ({"query": "x", "clearance": "private"}, "no argument 'clearance'"),
        ):
            answer = await client.call_tool("ask", given)
            assert answer.is_error
            assert said in text_of(answer)
