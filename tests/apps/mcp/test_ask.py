"""Generated answers, by the tool `ask`."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client

from llm.server import ChatServer, Response

from ..conftest import document
from .conftest import SampleDatabase, note_of, structured_content_of, text_of

pytestmark = pytest.mark.anyio

QUESTION = {"query": "what is a lease?"}


@pytest.fixture
def documented(sample: SampleDatabase, tmp_path: Path) -> SampleDatabase:
    document(sample.db, tmp_path / "docs")
    return sample


async def test_without_a_model_the_answer_consists_of_found_sentences(documented: SampleDatabase) -> None:
    async with documented.client() as client:
        answer = await client.call_tool("ask", QUESTION)
    with structured_content_of(answer) as values:
        assert values["model"] is None
        assert values["citations"][0]["location"].endswith("leases.md:1-5")
    assert text_of(answer) == values["text"] == "A lease is a loan of a job to a worker. [1]"
    assert note_of(answer).startswith("[1] Leases > Overview — ")
    assert "data to be judged" in note_of(answer)


async def test_model_answer_is_sanitized_and_its_citations_checked(
    documented: SampleDatabase, chat: ChatServer
) -> None:
    chat.says = "It is a loan [1], and\u202e art [44]."
    async with Client(documented.server_parameters(env=chat.environment())) as client:
        answer = await client.call_tool("ask", {**QUESTION, "editor": "lease()", "limit": 2})
    with structured_content_of(answer) as values:
        assert (values["text"], values["model"]) == ("It is a loan [1], and art.", "openai/small")
    assert "Written by openai/small" in note_of(answer)
    assert "lease()" in str(chat.requests[0].body)


async def test_failed_model_is_reported_and_found_sentences_answer(
    documented: SampleDatabase, chat: ChatServer
) -> None:
    chat.script = [Response(500)]
    # The server starts in the folder of another project.
    async with Client(documented.server_parameters(env=chat.environment())) as client:
        answer = await client.call_tool("ask", {**QUESTION, "project": "all"})
    with structured_content_of(answer) as values:
        assert [one["source"] for one in values["degraded"]] == ["answer"]
        assert "A lease is a loan" in values["text"]
    assert "Missing from this answer: answer: " in note_of(answer)


async def test_hidden_records_are_in_no_prompt(documented: SampleDatabase, chat: ChatServer) -> None:
    for options, sees in (((), False), (("--clearance", "private"), True)):
        async with Client(documented.server_parameters(*options, env=chat.environment())) as client:
            await client.call_tool("ask", {"query": "lease of the vault"})
        assert ("eleven" in str(chat.requests[-1].body)) is sees


async def test_invalid_arguments_get_a_clear_error(documented: SampleDatabase) -> None:
    async with documented.client() as client:
        for given, said in (
            ({}, "ask needs the argument 'query'"),
            ({"query": "x", "recipe": "soup"}, "There is no recipe 'soup'"),
            ({"query": "x", "limit": 1001}, "limit"),
            ({"query": "x", "clearance": "private"}, "no argument 'clearance'"),
        ):
            answer = await client.call_tool("ask", given)
            assert answer.is_error
            assert said in text_of(answer)
