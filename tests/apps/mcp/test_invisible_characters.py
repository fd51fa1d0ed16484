"""No character that a person does not see reaches a model through a tool: not in text, not in JSON, not in errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

import sennit
from context.invisible import BIDI, DEFAULT_IGNORABLE, INVISIBLE
from llm.server import ChatServer
from sennit.tools.declarations import TOOLS

from .conftest import SampleDatabase

pytestmark = pytest.mark.anyio

FORBIDDEN = {*DEFAULT_IGNORABLE, *INVISIBLE, *BIDI}
LINES = [
    "".join(f"{character}x" for character in DEFAULT_IGNORABLE[at : at + 80])
    for at in range(0, len(DEFAULT_IGNORABLE), 80)
]
HIDDEN = "\n".join(LINES)
"""Every default-ignorable code point, each before a letter."""

SHORT = "".join(f"{character}x" for character in (*DEFAULT_IGNORABLE[:60], "\U000e0041", "\U000e0100"))
"""As many as an id or a name can hold."""

RECORD_ID = f"hidden{SHORT}"

CALLS: dict[str, dict[str, Any]] = {
    "hybrid_search": {
        "query": "needle",
        "recipe": "artifacts",
        "expand_neighbors": True,
        "include_memory": True,
    },
    "memory_search": {"query": "needle"},
    "grep_search": {"query": "needle"},
    "vector_search": {"query": "needle in the hay"},
    "read_file": {"path": "hidden.md"},
    "remember": {"text": f"needle {HIDDEN}", "title": HIDDEN},
    "forget": {"ids": [RECORD_ID]},
    "feedback": {"action": "use", "ids": [RECORD_ID]},
    "list_records": {},
    "explain_result": {"query": f"needle {SHORT}", "id": RECORD_ID, "recipe": "artifacts"},
    "plan_context": {"query": "fix needle() in hidden.py", "max_tokens": 500_000},
    "ask": {"query": f"needle {SHORT}", "recipe": "artifacts"},
}
"""A call of each tool whose answer holds hidden characters if nothing removes them."""

FAILING_CALLS: dict[str, dict[str, Any]] = {
    "hybrid_search": {"query": "x", "recipe": SHORT},
    "memory_search": {"query": "x", SHORT: 1},
    "grep_search": {"query": f"({SHORT}", "regex": True},
    "vector_search": {"query": "x", "filters": {SHORT: {SHORT: 1}}},
    "read_file": {"path": f"{SHORT}.md"},
    "remember": {"text": "x", "sensitivity": SHORT},
    "forget": {"ids": [SHORT]},
    "feedback": {"action": "use", "ids": [SHORT]},
    "list_records": {"filters": {SHORT: {SHORT: 1}}},
    "explain_result": {"query": "x", "id": SHORT},
    "plan_context": {"query": "x", "max_tokens": SHORT},
    "ask": {"query": "x", "recipe": SHORT},
}
"""A call of each tool that fails with an error about hidden characters."""


@pytest.fixture
def hidden_place(sample: SampleDatabase) -> SampleDatabase:
    """A sample whose records, files and code hold every default-ignorable code point."""
    (sample.files / "hidden.md").write_text(f"needle\n{HIDDEN}\n")
    comments = "".join(f"    # {line}\n" for line in LINES)
    (sample.files / "hidden.py").write_text(f"def needle():\n{comments}    return 1\n")
    metadata = {"source_system": HIDDEN, SHORT: HIDDEN}
    with sennit.open(sample.db) as db:
        db.index(sample.files)
        db.index(sample.files / "hidden.py", recipe="code")
        db.add(
            [
                sennit.Record(
                    id=RECORD_ID,
                    collection="artifact_chunks",
                    text=f"The needle is in the hay. {HIDDEN}",
                    title=HIDDEN,
                    kind="note",
                    url=f"https://example.org/{SHORT}",
                    parent="whole",
                    position=1,
                    metadata=metadata,
                ),
                sennit.Record(
                    id="neighbour",
                    collection="artifact_chunks",
                    text=HIDDEN,
                    parent="whole",
                    position=2,
                    metadata=metadata,
                ),
                sennit.Record(
                    id="memory", collection="memory", text=f"needle {HIDDEN}", kind=SHORT, title=HIDDEN
                ),
            ]
        )
    return sample


def strings_in(value: object) -> Iterator[str]:
    """Every string in a JSON value, the names of fields too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from strings_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)


def all_text(result: CallToolResult) -> str:
    blocks = [block.text for block in result.content if isinstance(block, TextContent)]
    assert len(blocks) == len(result.content)
    return "\n".join([*blocks, *strings_in(result.structured_content)])


def test_there_is_a_call_for_every_tool() -> None:
    names = [tool.name for tool in TOOLS]
    assert list(CALLS) == names
    assert list(FAILING_CALLS) == names


@pytest.mark.parametrize("name", CALLS)
async def test_no_invisible_character_is_in_the_answer_of_a_tool(
    hidden_place: SampleDatabase, name: str
) -> None:
    # The threshold lets vector_search find a text that is mostly single letters.
    async with hidden_place.client(files__vector_score_threshold=4.0) as client:
        await client.call_tool("hybrid_search", CALLS["hybrid_search"])  # feedback is about a search
        result = await client.call_tool(name, CALLS[name])
    assert not result.is_error, result.content
    text = all_text(result)
    assert not FORBIDDEN & set(text)
    if name not in ("remember", "forget", "feedback"):  # their answers have no text of the caller
        assert "xxx" in text, "the letters between the hidden characters are missing"


@pytest.mark.parametrize("name", FAILING_CALLS)
async def test_no_invisible_character_is_in_the_error_of_a_tool(
    hidden_place: SampleDatabase, name: str
) -> None:
    async with hidden_place.client() as client:
        result = await client.call_tool(name, FAILING_CALLS[name])
    assert result.is_error
    assert not FORBIDDEN & set(all_text(result))


async def test_no_invisible_character_is_in_what_ask_sends_to_a_language_model(
    hidden_place: SampleDatabase, chat: ChatServer
) -> None:
    async with hidden_place.client(read_only=False, **chat.settings()) as client:
        result = await client.call_tool("ask", {**CALLS["ask"], "editor": f"needle() {HIDDEN}"})
    assert not FORBIDDEN & set(all_text(result))
    (request,) = chat.requests
    sent = "\n".join(strings_in(request.body))
    assert not FORBIDDEN & set(sent)
    assert "The needle is in the hay." in sent
    assert "needle()" in sent


async def test_removing_invisible_characters_makes_no_citation(
    hidden_place: SampleDatabase, chat: ChatServer
) -> None:
    chat.says = "The needle is there [1], and so is the thread [\u200b44] [4\u200d4]."
    async with hidden_place.client(read_only=False, **chat.settings()) as client:
        result = await client.call_tool("ask", {"query": "needle", "recipe": "artifacts"})
    assert result.structured_content is not None
    assert result.structured_content["text"] == "The needle is there [1], and so is the thread."
