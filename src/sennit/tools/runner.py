"""Runs one call of a tool: checks its arguments, and turns every error into a text for the model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sennit.context.sanitize import sanitize, sanitize_json
from sennit.errors import SennitError
from sennit.tools.declarations import Tool
from sennit.tools.handlers import ToolCall
from sennit.tools.schemas import validate_arguments

_log: Final = logging.getLogger("sennit.tools")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call of a tool gives back. It is cleaned of invisible and control characters."""

    blocks: tuple[str, ...]
    """The text for the model: the result, then remarks about it."""
    structured_content: dict[str, Any] | None = None
    """The same as JSON values, for a program; None after an error."""
    is_error: bool = False
    """Whether the text says why the call failed."""

    @property
    def text(self) -> str:
        """The whole text for the model."""
        return "\n\n".join(self.blocks)


def run_tool(
    tool: Tool, given: Mapping[str, Any] | None, make_call: Callable[[dict[str, Any]], ToolCall]
) -> ToolResult:
    """Run a tool. `make_call` gets the checked arguments; any exception becomes a result with an error."""
    try:
        arguments = validate_arguments(tool.name, tool.input_schema, given, tool.aliases)
        response = tool.run(make_call(arguments))
        content = sanitize_json(response.structured_content)
        assert isinstance(content, dict)
    except SennitError as error:
        return error_result(f"{tool.failure_prefix}{error}")
    except Exception as error:  # noqa: BLE001 - the model gets an answer, the log gets the details
        _log.exception("%s failed", tool.name)
        return error_result(
            f"{tool.failure_prefix}{tool.name} failed inside sennit ({type(error).__name__}); the log says where."
        )
    return ToolResult(tuple(map(sanitize, response.text_blocks)), content)


def error_result(message: str) -> ToolResult:
    """Return the result of a call that failed."""
    return ToolResult((sanitize(message),), is_error=True)
