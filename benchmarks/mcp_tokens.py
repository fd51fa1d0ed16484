"""Tokens that the MCP server costs a model: `python -m benchmarks.mcp_tokens`.

Counts the list of tools, and the text of ten common calls over the project's own design notes and ranking code, with
the tokenizer of plans (o200k_base with the extra `tokens`). `--json` prints the figures as JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp_types import CallToolResult, TextContent

import sennit
from sennit.apps.mcp.server import LazyDatabase, make_server
from sennit.hydration.tokenizer import load_tokenizer

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs/design", "src/sennit/ranking")
QUERY = "why is the cosine compared with a background?"
MEMORIES = (
    "Ana prefers short answers with code.",
    "The release is planned for the first week of March, after the audit of the storage layer.",
    "The team decided to keep the static model as the default, because it needs no download.",
)

CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("hybrid_search", {"query": QUERY}),
    ("hybrid_search", {"query": QUERY, "recipe": "docs"}),
    ("hybrid_search", {"query": QUERY, "exact_keywords": ["Background"]}),
    ("vector_search", {"query": QUERY}),
    ("memory_search", {"query": "when is the release?"}),
    ("grep_search", {"query": "Background"}),
    ("read_file", {"path": "calibration.py", "first_line": 1, "last_line": 60}),
    ("list_records", {}),
    ("plan_context", {"query": "change Background in calibration.py"}),
    ("ask", {"query": QUERY}),
)
"""The ten commonest calls: search in its three forms, meaning, memory, exact text, a file, what is there, code, an
answer."""


def text_of(result: CallToolResult) -> str:
    """All blocks of text: what a model reads."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def measure(folder: Path) -> dict[str, int]:
    """The tokens of the list of tools, and of each call."""
    count = load_tokenizer().count
    with sennit.open(folder / "db") as db:
        for name in FOLDERS:
            db.index(ROOT / name)
        for text in MEMORIES:
            db.remember(text)
        db.wait()
    tokens: dict[str, int] = {}
    async with Client(make_server(LazyDatabase(lambda: sennit.open(folder / "db")))) as client:
        tools = (await client.list_tools()).tools
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        tokens["tools/list"] = count(json.dumps(listed, ensure_ascii=False, separators=(",", ":")))
        without_output = [{key: tool[key] for key in tool if key != "outputSchema"} for tool in listed]
        tokens["tools/list, without output schemas"] = count(
            json.dumps(without_output, ensure_ascii=False, separators=(",", ":"))
        )
        for name, arguments in CALLS:
            result = await client.call_tool(name, arguments)
            if result.is_error:
                raise SystemExit(f"{name} failed: {text_of(result)}")
            shown = ", ".join(key for key in arguments if key not in ("query", "path", "last_line"))
            tokens[f"{name} {shown}".rstrip()] = count(text_of(result))
    return tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory() as folder:
        tokens = anyio.run(measure, Path(folder))
    if as_json:
        print(json.dumps(tokens, indent=2))
        return
    print(f"Tokens by {load_tokenizer().name}")
    for name, number in tokens.items():
        print(f"{number:7,}  {name}")


if __name__ == "__main__":
    main()
