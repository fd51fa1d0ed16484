"""A program written from the specification alone, without a look at the code: every interface, by its stated names."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

import sennit
from sennit.client import load_memory_context, load_memory_context_sync

PROGRAM = str(Path(sys.executable).with_name("sennit"))

NOW = datetime.now(UTC)


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat()


def sennit_cli(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([PROGRAM, *arguments], cwd=cwd, capture_output=True, text=True)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run_json(*arguments: str, cwd: Path) -> Any:
    done = sennit_cli(*arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MAIL = sennit.Record(
    id="art_mail",
    collection="artifacts",
    title="Harbour lease",
    text="The lease of the harbour office ends in March. " * 12,
    metadata={"artifact_type": "email", "source_system": "gmail", "source_url": "https://mail.example/1"},
)
CHUNKS = [
    sennit.Record(
        id=f"art_mail#{number}",
        collection="artifact_chunks",
        title="Harbour lease",
        text=text,
        parent="art_mail",
        position=number,
        metadata={
            "artifact_type": "email",
            "source_system": "gmail",
            "source_url": "https://mail.example/1",
            "artifact_id": "art_mail",
            "chunk_index": number,
        },
    )
    for number, text in enumerate(
        (
            "The lease of the harbour office ends in March, and the landlord wants an answer by Friday. " * 4,
            "Parking is included.",
            "The deposit is two rents.",
        )
    )
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the program works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SENNIT_DB", raising=False)
    return tmp_path


# Python (section 7)


def test_the_python_interface_of_the_specification(folder: Path) -> None:
    db = sennit.open("notes.sennit")
    db.add(
        [
            sennit.Record(
                id="m1",
                collection="memory",
                text="We picked March for the trip",
                metadata={"artifact_type": "note"},
            )
        ]
    )
    db.add_facts(
        [
            sennit.Fact(
                subject="Rajesh",
                relation="planning",
                object="Goa trip",
                text="planning vacation to Goa in March",
            )
        ]
    )
    (folder / "docs").mkdir()
    (folder / "docs" / "retries.md").write_text("# Retries\n\n## Summary\n\nA failed task is retried.\n")
    report = db.index("docs/", recipe="docs")
    assert report
    found = db.search(
        "when did we pick March?",
        recipe="memory",
        limit=5,
        filters={"artifact_type": "note"},
        caller=sennit.Caller(clearance="normal", scopes={"me"}),
        explain=True,
    )
    hit = found[0]
    assert (hit.id, hit.text, hit.collection) == ("m1", "We picked March for the trip", "memory")
    assert hit.title == ""
    assert hit.score > 0
    assert 0 <= hit.relevance <= 1
    assert hit.citation == "m1"
    assert hit.metadata["artifact_type"] == "note"
    assert found.fits in (True, False)
    assert found.degraded == ()
    assert found.trace is not None
    assert db.why("when did we pick March?", "m1", recipe="memory").kept
    plan = db.plan("fix the login bug in auth.go", episode="e1", max_tokens=4000, max_entities=10)
    assert plan.tokens <= 4000
    assert db.remove(["m1"]) == 1
    db.close()


def test_the_asynchronous_interface_of_the_specification(folder: Path) -> None:
    async def use() -> list[str]:
        async with sennit.aopen("notes.sennit") as db:
            await db.add([sennit.Record(id="m1", text="We picked March for the trip")])
            return [hit.id for hit in await db.search("March trip")]

    assert asyncio.run(use()) == ["m1"]


# Command line (section 7)

COMMANDS = (
    "index search why context ask grep read plan introspect remember facts serve mcp tui eval status list models "
    "doctor config export import demo"
).split()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_the_specification_exists(command: str, folder: Path) -> None:
    done = sennit_cli(command, "--help", cwd=folder)
    assert done.returncode == 0
    assert "--json" in done.stdout


def test_a_person_types_the_commands_of_the_specification_in_a_row(folder: Path) -> None:
    (folder / "guide").mkdir()
    (folder / "guide" / "backups.md").write_text(
        "# Backups\n\n## Summary\n\nA backup runs every night at two.\n\n## Restore\n\nRun `restore --latest`.\n"
    )
    (folder / "app.py").write_text(
        'def restore_backup(name):\n    """Restore a backup."""\n    return load_snapshot(name)\n\n\n'
        "def load_snapshot(name):\n    return open(name).read()\n"
    )
    report = run_json("index", ".", cwd=folder)
    assert report
    first = run_json("search", "when does the backup run", cwd=folder)["hits"][0]
    assert "guide/backups.md" in first["citation"]
    assert run_json("why", "when does the backup run", first["id"], cwd=folder)["kept"]
    answer = run_json("ask", "when does the backup run?", cwd=folder)
    assert "every night at two" in answer["text"]
    assert "[1]" in answer["text"]
    plan = run_json("plan", "fix restore_backup in app.py", cwd=folder)
    assert "app.py" in json.dumps(plan)
    assert "restore --latest" in json.dumps(run_json("grep", "restore --latest", cwd=folder))
    assert "every night" in sennit_cli("read", "guide/backups.md", cwd=folder).stdout
    assert run_json("remember", "Ana restores the backups on Fridays.", cwd=folder)
    assert "Ana" in sennit_cli("context", "who restores the backups?", cwd=folder).stdout
    assert run_json("status", cwd=folder)
    assert run_json("list", cwd=folder)
    assert run_json("doctor", cwd=folder)
    assert (
        sennit_cli("search", "zebra crossing quantum", "--min-relevance", "0.9", cwd=folder).returncode == 0
    )
    wrong = sennit_cli("search", "backup", "--recipe", "dcos", cwd=folder)
    assert wrong.returncode != 0
    assert "docs" in wrong.stderr


def test_missing_and_forbidden_files_have_their_codes(folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("one\ntwo\n")
    run_json("index", "notes", cwd=folder)
    missing = sennit_cli("read", "notes/b.md", cwd=folder)
    assert "[ERROR: NOT_FOUND]" in missing.stdout + missing.stderr
    outside = sennit_cli("read", "/etc/passwd", cwd=folder)
    assert "[ERROR: ACCESS_DENIED]" in outside.stdout + outside.stderr
    assert "notes" in outside.stdout + outside.stderr


# HTTP (section 7)


@pytest.fixture
def service(folder: Path) -> Iterator[tuple[str, str]]:
    """A running service: its address and a token."""
    with sennit.open(".sennit") as db:
        db.add([MAIL, *CHUNKS])
    token = run_json("tokens", "add", "assistant", "--everything", "--write", cwd=folder)["token"]
    process = subprocess.Popen(
        [PROGRAM, "serve", "--port", "0", "--json"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], token
    finally:
        process.terminate()
        process.wait()


def test_the_http_interface_of_the_specification(service: tuple[str, str]) -> None:
    url, token = service
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 200
        assert "sennit_" in client.get("/metrics").text
        assert client.get("/openapi.json").status_code == 200
        assert httpx.post(f"{url}/v1/search", json={"query": "x"}).status_code == 401
        record = {"id": "m1", "collection": "memory", "text": "We picked March for the trip"}
        assert client.post("/v1/records", json=record).json()["added"] == 1
        found = client.post("/v1/search", json={"query": "when did we pick March?", "explain": True}).json()
        assert found["hits"][0]["id"] == "m1"
        assert 0 <= found["hits"][0]["relevance"] <= 1
        assert found["degraded"] == []
        fact = {
            "subject": "Rajesh",
            "relation": "planning",
            "object": "Priya",
            "text": "planning vacation to Goa",
        }
        assert client.post("/v1/facts", json=fact).json()["added"] == 1
        context = client.get("/v1/context", params={"query": "What does Rajesh plan?"}).json()
        result = context["results"][0]
        assert {
            "text",
            "source_session",
            "timestamp",
            "relevance_score",
            "entities",
            "speaker",
        } <= result.keys()
        assert len(context["results"]) <= 5
        assert client.get("/v1/why", params={"query": "March", "id": "m1"}).json()["kept"]
        plan = client.post("/v1/plan", json={"query": "fix auth.go", "episode": "e1"}).json()
        assert plan
        seen = client.get("/introspect/hydration/e1").json()
        assert (seen["episode_id"], seen["query"]) == ("e1", "fix auth.go")
        assert seen["entities"] == []
        assert client.delete("/v1/records/m1").status_code in (200, 204)
        assert client.get("/v1/why", params={"query": "March", "id": "m1"}).status_code == 404
    block = asyncio.run(load_memory_context(context_engine_url=url, token=token, query="Rajesh", limit=3))
    assert block == load_memory_context_sync(context_engine_url=url, token=token, query="Rajesh", limit=3)
    assert "Rajesh -> Priya: planning vacation to Goa" in block
    assert block.startswith("<memory>")


# MCP (section 7, and the text form of section 2)

TOOLS = {
    "hybrid_search", "memory_search", "grep_search", "vector_search", "read_file", "remember", "plan_context",
    "explain_result",
}  # fmt: skip


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def with_client(folder: Path, use: Any) -> None:
    async def run() -> None:
        server = StdioServerParameters(command=PROGRAM, args=["mcp"], cwd=folder, env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            await use(client)

    anyio.run(run)


def test_the_tools_of_the_specification_answer_in_the_stated_forms(folder: Path) -> None:
    with sennit.open(".sennit") as db:
        db.add([MAIL, *CHUNKS])

    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() >= TOOLS
        assert all(tool.output_schema for tool in tools.values())
        assert tools["hybrid_search"].input_schema["required"] == ["query"]
        hints = tools["hybrid_search"].annotations
        assert hints is not None
        assert hints.read_only_hint
        arguments = {"query": "lease of the harbour office"}
        found = await client.call_tool("hybrid_search", arguments)
        assert found.structured_content is not None
        score = found.structured_content["results"][0]["score"]
        assert score < 0.07, "four lists at most, of which each adds a sixtieth at most"
        assert text_of(found) == (
            "Found 1 results (searched: artifact_chunks, artifacts):\n"
            "\n"
            f"[1] RRF score: {score:.3f} (from: artifact_chunks)\n"
            "Type: chunk | ID: art_mail#0\n"
            "Title: Harbour lease\n"
            "Source: gmail | Sensitivity: normal\n"
            f'Snippet: "{CHUNKS[0].text[:200]}…"\n'
            "Evidence: https://mail.example/1\n"
        )
        same = await client.call_tool("hybrid_search", {"semantic_query": "lease of the harbour office"})
        assert text_of(same) == text_of(found)
        others = {"exact_keywords": ["deposit"], "limit": 3, "include_memory": True, "expand_neighbors": True}
        assert not (await client.call_tool("hybrid_search", {**arguments, **others})).is_error
        nothing = await client.call_tool("hybrid_search", {"query": "x", "filters": {"artifact_type": "fax"}})
        assert text_of(nothing) == "No results found."
        failed = await client.call_tool("hybrid_search", {"query": "x", "recipe": "soup"})
        assert failed.is_error
        assert text_of(failed).startswith("Search failed: ")
        kept = await client.call_tool("remember", {"text": "Ana signs the lease."})
        assert not kept.is_error
        assert "Ana signs" in text_of(await client.call_tool("memory_search", {"query": "who signs?"}))
        why = await client.call_tool("explain_result", {**arguments, "id": "art_mail"})
        assert "dedupe" in text_of(why)
        assert "would need" not in text_of(why)

    with_client(folder, use)


def test_tools_search_by_meaning_alone_with_the_score_of_a_single_rank(folder: Path) -> None:
    (folder / "sennit.toml").write_text('[artifacts]\nsources = ["vector"]\n')
    with sennit.open(".sennit") as db:
        db.add([sennit.Record(id="note", collection="artifacts", text="The lease ends in March.")])

    async def use(client: Client) -> None:
        assert text_of(await client.call_tool("hybrid_search", {"query": "when does the lease end?"})) == (
            "Found 1 results (searched: artifact_chunks, artifacts):\n"
            "\n"
            "[1] RRF score: 0.017 (from: artifacts)\n"
            "Type: artifact | ID: note\n"
            'Snippet: "The lease ends in March."\n'
        )

    with_client(folder, use)


def test_the_tools_read_what_searches_cite_and_plan_over_an_indexed_folder(folder: Path) -> None:
    (folder / "guide").mkdir()
    (folder / "guide" / "backups.md").write_text(
        "# Backups\n\n## Summary\n\nA backup runs every night at two.\n\n## Restore\n\nRun `restore --latest`.\n"
    )
    (folder / "app.py").write_text("def restore_backup(name):\n    return open(name).read()\n")
    run_json("index", ".", cwd=folder)

    async def use(client: Client) -> None:
        question = {"query": "how do I restore a backup?", "recipe": "docs"}
        assert text_of(await client.call_tool("hybrid_search", {**question, "limit": 2})) == (
            "Found 2 results (searched: docs):\n"
            "\n"
            "[1] Page: Backups\n"
            "URL: /guide/backups\n"
            "Summary: guide/backups.md:1-5\n"
            "   | # Backups\n"
            "   | \n"
            "   | ## Summary\n"
            "   | \n"
            "   | A backup runs every night at two.\n"
            "Section: Backups > Restore (guide/backups.md:7-9)\n"
            "   | ## Restore\n"
            "   | \n"
            "   | Run `restore --latest`.\n"
        )
        read = await client.call_tool("read_file", {"path": "guide/backups.md:9"})
        assert text_of(read) == "Run `restore --latest`.\n"
        missing = await client.call_tool("read_file", {"path": "guide/none.md"})
        assert text_of(missing).startswith("[ERROR: NOT_FOUND] ")
        outside = await client.call_tool("read_file", {"path": "../none.md"})
        assert text_of(outside).startswith("[ERROR: ACCESS_DENIED] ")
        grepped = await client.call_tool("grep_search", {"query": "restore --latest"})
        assert "guide/backups.md:1-9" in text_of(grepped)
        near = await client.call_tool("vector_search", {"query": "A backup runs every night"})
        assert "A backup runs every night at two." in text_of(near)
        plan = await client.call_tool("plan_context", {"query": "fix restore_backup in app.py"})
        assert "def restore_backup(name):" in text_of(plan)

    with_client(folder, use)
