"""Projects on the command line, over HTTP and over MCP."""

from __future__ import annotations

import json
from pathlib import Path

import mcp_types as types
import pytest
from click.testing import CliRunner
from mcp import Client
from pydantic import FileUrl
from starlette.testclient import TestClient

import sennit
from sennit.apps.cli.program import program
from sennit.apps.http.app import HttpOptions, make_app
from sennit.apps.mcp.server import LazyDatabase, make_server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with a database and two projects in it."""
    for name, text in (("shop", "The shop ships on Fridays."), ("bank", "The bank ships nothing.")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "notes.md").write_text(f"# Shipping\n\n{text}\n")
    with sennit.open(tmp_path / ".sennit") as db:
        db.index([tmp_path / "shop", tmp_path / "bank"])
    return tmp_path


def run(*arguments: str) -> tuple[str, str]:
    result = CliRunner().invoke(program, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def projects_of(*arguments: str) -> set[str]:
    return {hit["project"] for hit in json.loads(run("search", "who ships", "--json", *arguments)[0])["hits"]}


def test_a_command_is_limited_to_the_project_of_the_current_folder(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    assert projects_of() == {"shop", "bank"}
    assert projects_of("--project", "bank") == {"bank"}
    assert projects_of("--project", "shop") == {"shop"}
    monkeypatch.chdir(work / "shop")
    assert projects_of() == {"shop"}
    assert projects_of("--project", "all") == {"shop", "bank"}
    assert projects_of("--project", "../bank") == {"bank"}
    assert "In project shop" in run("search", "who ships")[1]
    assert "nothing" not in run("grep", "ships")[0]
    assert "nothing" in run("grep", "ships", "--project", "bank")[0]
    assert "nothing" in run("read", "notes.md", "--project", "bank")[0]
    assert "Fridays" in run("ask", "when does it ship")[0]


def test_the_status_names_projects(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    folders = json.loads(run("status", "--json")[0])["folders"]
    assert [(one["project"], one["revision"]) for one in folders] == [("bank", None), ("shop", None)]


def test_http_takes_the_project_of_a_request(work: Path) -> None:
    options = HttpOptions(open_access=True)
    with (
        sennit.open(work / ".sennit") as db,
        TestClient(make_app(db, options), base_url="http://127.0.0.1") as client,
    ):
        found = client.post("/v1/search", json={"query": "who ships", "project": "bank"}).json()
        assert found["project"] == "bank"
        assert {hit["project"] for hit in found["hits"]} == {"bank"}
        everywhere = client.post("/v1/search", json={"query": "who ships"}).json()
        assert {hit["project"] for hit in everywhere["hits"]} == {"bank", "shop"}
        answer = client.post("/v1/ask", json={"query": "what ships on Fridays?", "project": "shop"}).json()
        assert [one["project"] for one in answer["citations"]] == ["shop"]
        unknown = client.post("/v1/search", json={"query": "who ships", "project": "nowhere"})
        assert unknown.status_code == 404
        assert str(work) not in unknown.text


@pytest.mark.anyio
async def test_mcp_takes_the_project_of_the_call_of_the_roots_or_of_the_folder(work: Path) -> None:
    async def roots(context: object) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl((work / "shop").as_uri()))])

    async def found(client: Client, **arguments: str) -> set[str]:
        result = await client.call_tool("hybrid_search", {"query": "who ships", **arguments})
        assert result.structured_content is not None
        return {one["project"] for one in result.structured_content["results"]}

    def server(project: str | None = None, folder: Path | None = None) -> Client:
        opens = LazyDatabase(lambda: sennit.open(work / ".sennit"))
        return Client(make_server(opens, project=project, folder=None if folder is None else str(folder)))

    async with server() as client:
        assert await found(client) == {"shop", "bank"}
        assert await found(client, project="bank") == {"bank"}
    async with server(folder=work / "bank") as client:
        assert await found(client) == {"bank"}
        assert await found(client, project="all") == {"shop", "bank"}
    async with server(project="shop") as client:
        assert await found(client) == {"shop"}
    with_roots = Client(
        make_server(LazyDatabase(lambda: sennit.open(work / ".sennit")), folder=str(work / "bank")),
        list_roots_callback=roots,
        mode="legacy",
    )
    async with with_roots as client:
        assert await found(client) == {"shop"}


def test_list_context_and_introspect_take_a_project(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(work)
    assert "bank/" in run("list")[0]
    assert "bank/" not in run("list", "--project", "shop")[0]
    assert "bank/" not in run("list", "--files", "--project", "shop")[0]
    monkeypatch.chdir(work / "bank")
    assert "In project bank" in run("list")[1]
    block = run("context", "who ships", "--recipe", "default")[0]
    assert "nothing" in block
    assert "Fridays" not in block
    assert "Fridays" in run("context", "who ships", "--recipe", "default", "--project", "shop")[0]
    run("plan", "notes.md", "--episode", "e")
    assert "in bank" in run("introspect", "e")[0]
    assert json.loads(run("introspect", "e", "--project", "shop", "--json")[0])["entities"] == []


def test_http_lists_projects_and_limits_context_records_and_introspection(work: Path) -> None:
    with (
        sennit.open(work / ".sennit") as db,
        TestClient(make_app(db, HttpOptions(open_access=True)), base_url="http://127.0.0.1") as client,
    ):
        assert [one["name"] for one in client.get("/v1/projects").json()["projects"]] == ["bank", "shop"]
        asked = {"query": "who ships", "recipe": "default", "project": "shop"}
        texts = [one["text"] for one in client.get("/v1/context", params=asked).json()["results"]]
        assert texts
        assert not any("bank" in text for text in texts)
        records = client.get("/v1/records", params={"project": "bank"}).json()["records"]
        assert {one["metadata"]["folder"] for one in records} == {"bank"}
        counted = client.get("/v1/collections", params={"project": "bank"}).json()["collections"]
        assert sum(one["records"] for one in counted) == len(records)
        client.post("/v1/plan", json={"query": "notes.md", "episode": "e", "project": "bank"})
        found = client.get("/introspect/hydration/e").json()
        assert found["project"] == ["bank"]
        assert client.get("/introspect/hydration/e", params={"project": "nowhere"}).status_code == 404
