"""The tools that a language model calls: declared once, for MCP and for every other way to offer tools."""

from sennit.tools.declarations import TOOLS, Tool
from sennit.tools.formats import FORMATS, ToolFormat, describe_tools
from sennit.tools.runner import ToolResult, run_tool
from sennit.tools.toolset import INSTRUCTIONS, Tools

__all__ = [
    "FORMATS",
    "INSTRUCTIONS",
    "TOOLS",
    "Tool",
    "ToolFormat",
    "ToolResult",
    "Tools",
    "describe_tools",
    "run_tool",
]
