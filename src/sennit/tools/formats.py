"""Tools in the forms that the interfaces of language models take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from sennit.errors import InvalidInput
from sennit.tools.declarations import TOOLS, Tool
from sennit.tools.schemas import Schema

ToolFormat: TypeAlias = Literal["openai", "openai-responses", "anthropic", "json-schema"]

FORMATS: Final[tuple[ToolFormat, ...]] = get_args(ToolFormat)

_SEARCH_ARGUMENTS: Final[Mapping[str, Schema]] = next(
    tool.input_schema["properties"] for tool in TOOLS if tool.name == "hybrid_search"
)
"""The arguments that other tools refer to."""


def describe_tools(tools: Iterable[Tool], form: ToolFormat) -> list[dict[str, Any]]:
    """Return the declarations of tools for the `tools` of a request to a language model."""
    if form not in _DESCRIBE:
        raise InvalidInput(f"There is no format {form!r}. Formats: {', '.join(FORMATS)}")
    return [_DESCRIBE[form](tool) for tool in tools]


def input_schema(tool: Tool) -> Schema:
    """Return the input schema with one name and a description for every argument.

    Over MCP, the instructions of the server say that an argument without a description is as in hybrid_search. A model
    that gets a tool in another way may see neither.
    """
    properties: Mapping[str, Schema] = tool.input_schema["properties"]
    described = {
        # The bounds that a tool sets itself stay in force.
        name: schema if "description" in schema else {**_SEARCH_ARGUMENTS[name], **schema}
        for name, schema in properties.items()
        if name not in tool.aliases
    }
    return {**tool.input_schema, "properties": described}


def _for_chat_completions(tool: Tool) -> dict[str, Any]:
    return {"type": "function", "function": _function(tool)}


def _for_responses(tool: Tool) -> dict[str, Any]:
    # This interface is strict unless told otherwise, and strict tools have no optional arguments.
    return {"type": "function", **_function(tool), "strict": False}


def _function(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": input_schema(tool)}


def _for_messages(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": input_schema(tool)}


def _as_json_schema(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "writes": tool.writes,
        "input_schema": input_schema(tool),
        "output_schema": tool.output_schema,
    }


_DESCRIBE: Final[Mapping[str, Callable[[Tool], dict[str, Any]]]] = {
    "openai": _for_chat_completions,
    "openai-responses": _for_responses,
    "anthropic": _for_messages,
    "json-schema": _as_json_schema,
}
