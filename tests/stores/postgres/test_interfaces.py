"""Every interface on a database whose records are on a Postgres server."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from textual.pilot import Pilot

import sennit
from apps.mcp.conftest import text_of
from apps.tui.harness import get_text, run_app, type_text, wait_for_results
from sennit.apps.tui.app import SennitApp

from .test_services import serve

PROGRAM = str(Path(sys.executable).with_name("sennit"))


@pytest.fixture
def folder(tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with indexed files; SENNIT_DB names the database."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENNIT_DB", dsn)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ferry.md").write_text("# Ferry\n\nThe ferry leaves at noon from the harbour.\n")
    with sennit.open(dsn) as db:
        db.index("notes")
    return tmp_path


def test_the_tools_search_read_and_remember(folder: Path) -> None:
    async def call() -> None:
        server = StdioServerParameters(command=PROGRAM, args=["mcp"], env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            found = await client.call_tool("hybrid_search", {"query": "when does the ferry leave?"})
            assert "noon" in text_of(found)
            read = await client.call_tool("read_file", {"path": str(folder / "notes" / "ferry.md")})
            assert "harbour" in text_of(read)
            kept = await client.call_tool("remember", {"text": "Ana takes the ferry on Fridays."})
            assert not kept.is_error, text_of(kept)
            memory = await client.call_tool("memory_search", {"query": "Ana ferry"})
            assert "Fridays" in text_of(memory)

    anyio.run(call)


def test_the_terminal_interface_searches(folder: Path, dsn: str) -> None:
    async def use(pilot: Pilot[None]) -> None:
        await type_text(pilot, "ferry harbour")
        await wait_for_results(pilot)
        assert "ferry.md" in get_text(pilot)
        assert "leaves at noon" in get_text(pilot)

    with sennit.open(dsn) as db:
        run_app(SennitApp(db, recipe="default"), use, size=(120, 40))


def test_several_workers_answer_from_one_server(folder: Path, dsn: str) -> None:
    with serve(dsn, folder / "cache", "--workers", "2") as url:
        for number in range(8):
            record = {"id": f"r{number}", "text": f"turnstile {number}"}
            assert httpx.post(f"{url}/v1/records", json=record, timeout=30).json()["added"] == 1
            body = {"query": f"turnstile {number}", "recipe": "keyword"}
            answer = httpx.post(f"{url}/v1/search", json=body, timeout=30).json()
            assert answer["hits"][0]["id"] == f"r{number}", json.dumps(answer)
