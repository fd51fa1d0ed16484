"""Tools for a model without MCP: the forms of the interfaces, and the dispatcher of calls."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import sennit
from sennit.errors import InvalidInput, NotFound
from sennit.tools import FORMATS, TOOLS, ToolFormat, describe_tools
from sennit.tools.formats import input_schema

NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
PARAMETERS = {
    "type": "object",
    "properties": {
        "type": {"const": "object"},
        "properties": {"type": "object"},
        "required": {"type": "array", "items": {"type": "string"}},
        "additionalProperties": {"const": False},
    },
    "required": ["type", "properties"],
    # Neither interface takes a combination at the top of a schema.
    "not": {"anyOf": [{"required": [key]} for key in ("anyOf", "oneOf", "allOf", "enum", "not")]},
}
FUNCTION = {"name": NAME, "description": {"type": "string", "minLength": 1}, "parameters": PARAMETERS}


def closed(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


FORMS: dict[ToolFormat, dict[str, Any]] = {
    "openai": closed(type={"const": "function"}, function=closed(**FUNCTION)),
    "openai-responses": closed(type={"const": "function"}, **FUNCTION, strict={"const": False}),
    "anthropic": closed(name=NAME, description=FUNCTION["description"], input_schema=PARAMETERS),
    "json-schema": closed(
        name=NAME,
        title={"type": "string"},
        description={"type": "string"},
        writes={"type": "boolean"},
        input_schema=PARAMETERS,
        output_schema={"type": "object"},
    ),
}
"""What the documentation of each interface says about a tool."""


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sennit.Database]:
    with sennit.open(tmp_path / "db") as opened:
        opened.add(
            [
                {"id": "bread", "text": "Bake the bread in a closed pot.", "title": "Bread"},
                {"id": "safe", "text": "The bread money is in the safe.", "sensitivity": "private"},
            ]
        )
        yield opened


@pytest.mark.parametrize("form", FORMATS)
def test_every_tool_has_the_form_that_the_interface_documents(form: ToolFormat) -> None:
    described = describe_tools(TOOLS, form)
    assert len(described) == len(TOOLS)
    for tool in described:
        Draft202012Validator(FORMS[form]).validate(tool)
        json.dumps(tool)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_argument_has_one_name_and_a_description(tool: Any) -> None:
    schema = input_schema(tool)
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(tool.input_schema["properties"]) - set(tool.aliases)
    assert set(schema["required"]) <= set(schema["properties"])
    for name, argument in schema["properties"].items():
        assert argument["description"], name
        own = tool.input_schema["properties"][name]
        assert {key: argument[key] for key in own} == own, "the bounds are those of the one declaration"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Formats: openai"):
        describe_tools(TOOLS, "xml")  # type: ignore[arg-type]


def test_a_call_gives_text_for_the_model_and_values_for_a_program(db: sennit.Database) -> None:
    tools = sennit.Tools(db)
    result = tools.call("hybrid_search", {"query": "bread", "limit": 1})
    assert not result.is_error
    assert "Bake the bread" in result.text
    assert result.structured_content is not None
    assert result.structured_content["results"][0]["id"] == "bread"
    from_text = tools.call("hybrid_search", '{"query": "bread", "limit": 1}')
    awaited = asyncio.run(tools.acall("hybrid_search", {"query": "bread", "limit": 1}))
    for one in (result, from_text, awaited):
        assert one.structured_content is not None
        assert one.structured_content.pop("query_id")
    assert from_text == awaited == result


def test_the_caller_is_fixed(db: sennit.Database) -> None:
    private = {"query": "money in the safe", "filters": {"sensitivity": "private"}}
    everything = sennit.Tools(db, caller=sennit.OWNER).call("hybrid_search", private)
    assert everything.structured_content is not None
    assert [one["id"] for one in everything.structured_content["results"]] == ["safe"]
    stranger = sennit.Tools(db, caller=sennit.Caller()).call("hybrid_search", private)
    assert stranger.structured_content is not None
    assert stranger.structured_content["results"] == []
    refused = sennit.Tools(db).call("hybrid_search", {"query": "x", "caller": "owner"})
    assert refused.is_error
    assert "has no argument 'caller'" in refused.text


def test_what_a_call_remembers_has_its_source(db: sennit.Database) -> None:
    made = sennit.Tools(db, source="my-agent").call("remember", {"text": "The oven is hot at noon."})
    assert made.structured_content is not None
    record = db.get(made.structured_content["id"])
    assert record is not None
    assert record.metadata["source"] == "my-agent"


def test_read_only_offers_no_tool_that_writes(db: sennit.Database) -> None:
    tools = sennit.Tools(db, read_only=True)
    assert {"remember", "forget"}.isdisjoint(tools.names)
    assert [tool["name"] for tool in tools.describe("anthropic")] == list(tools.names)
    refused = tools.call("remember", {"text": "x"})
    assert refused.is_error
    assert "There is no tool 'remember' here." in refused.text


def test_tools_can_be_chosen(db: sennit.Database) -> None:
    tools = sennit.Tools(db, names=["ask", "hybrid_search"])
    assert tools.names == ("ask", "hybrid_search")
    assert tools.call("read_file", {"path": "x"}).is_error
    with pytest.raises(NotFound, match=r"There is no tool 'hybrid'. .*hybrid_search"):
        sennit.Tools(db, names=["hybrid"])


@pytest.mark.parametrize(
    ("name", "arguments", "advice"),
    [
        ("hybrid_serch", {}, r"Did you mean 'hybrid_search'\? Tools: hybrid_search, "),
        ("hybrid_search", {}, "needs the argument 'query': A question or a few words"),
        ("hybrid_search", {"query": 3}, "query: 3 is not of type 'string'"),
        ("hybrid_search", {"query": "x", "limit": 0}, "limit"),
        ("hybrid_search", {"query": "x", "recipe": "nothing"}, "nothing"),
        ("hybrid_search", {"query": "x", "filters": {"colour": "red"}}, "No record has the field 'colour'"),
        ("hybrid_search", {"query": "x", "top_k": 3}, "has no argument 'top_k'. It takes: query"),
        ("hybrid_search", "{'query': 'x'}", "not valid JSON"),
        ("hybrid_search", "[1]", "must be an object, not list"),
        ("read_file", {"path": "/etc/shadow"}, ""),
    ],
)
def test_a_wrong_call_tells_the_model_what_to_correct(
    db: sennit.Database, name: str, arguments: Any, advice: str
) -> None:
    result = sennit.Tools(db).call(name, arguments)
    assert result.is_error
    assert result.structured_content is None
    assert re.search(advice, result.text)


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"and": [value]}
    return value


@pytest.mark.parametrize("levels", [150, 900, 10_000])
@pytest.mark.parametrize(
    ("name", "argument"),
    [("hybrid_search", "query"), ("hybrid_search", "filters"), ("remember", "metadata"), ("ask", "editor")],
)
def test_arguments_nested_too_deeply_are_one_clear_error(
    db: sennit.Database, name: str, argument: str, levels: int
) -> None:
    given = {"query": "x"} if name != "remember" else {"text": "x"}
    result = sennit.Tools(db).call(name, {**given, argument: nested(levels)})
    assert result.is_error
    assert f"{argument}: it has lists and objects nested deeper than 200 levels" in result.text
    as_text = json.dumps(given)[:-1] + f', "{argument}": {"[" * levels}{"]" * levels}}}'
    result = sennit.Tools(db).call(name, as_text)
    assert result.is_error
    assert "nested" in result.text or "is not of type" in result.text
    assert "RecursionError" not in result.text


def test_arguments_that_contain_themselves_are_refused(db: sennit.Database) -> None:
    loop: list[Any] = []
    loop += [loop, loop]
    assert "nested deeper" in sennit.Tools(db).call("hybrid_search", {"query": loop}).text


def test_an_error_about_a_long_argument_still_says_what_is_wrong(db: sennit.Database) -> None:
    result = sennit.Tools(db).call("hybrid_search", {"query": ["a long list of words"] * 100})
    assert result.text.endswith("… is not of type 'string'")


@pytest.fixture(scope="module")
def empty() -> Iterator[sennit.Database]:
    with sennit.open(":memory:") as opened:
        yield opened


@given(name=st.text(), arguments=st.text() | st.dictionaries(st.text(), st.integers() | st.text()))
def test_no_call_raises(empty: sennit.Database, name: str, arguments: Any) -> None:
    tools = sennit.Tools(empty, read_only=True)
    for tool in (name, "hybrid_search", "explain_result"):
        assert isinstance(tools.call(tool, arguments).text, str)
