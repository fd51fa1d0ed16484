"""Streamable HTTP: a real client is served, and whoever comes by another name or from another page is not."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

import sennit
from sennit.apps.cli.mcp import mcp
from sennit.apps.cli.serve import serve
from sennit.privacy import LEVELS, Caller

from .conftest import PROGRAM, Place, no_errors, text_of
from .test_stdio import INITIALIZE
from .test_tools import CALLS

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@contextmanager
def serving(place: Place, *options: str) -> Iterator[str]:
    """The address of a server process."""
    command = [PROGRAM, "mcp", "--http", "--port", "0", "--json", "--db", str(place.db), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place.files
    ) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
            process.send_signal(signal.SIGINT)
            rest, said = process.communicate(timeout=60)
            assert rest == ""
            assert "Traceback" not in said
            assert process.returncode in (0, 130), said
        finally:
            process.kill()


@pytest.fixture(scope="module")
def url(shared_place: Place) -> Iterator[str]:
    with serving(
        shared_place, "--allowed-host", "box.example", "--allowed-origin", "https://page.example"
    ) as url:
        yield url


def greeted(url: str, **headers: str) -> httpx.Response:
    """The answer to the first message of a client with these headers."""
    return httpx.post(url, json=INITIALIZE, headers={**HEADERS, **headers}, timeout=60)


@asynccontextmanager
async def with_token(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    http = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60)
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_real_client_lists_and_calls_every_tool(place: Place, mode: str) -> None:
    with serving(place) as url:
        async with Client(url, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(CALLS)
            for name, given in CALLS.items():
                with no_errors(await client.call_tool(name, given)) as values:
                    assert values
            refused = await client.call_tool("read_file", {"path": "../x"})
            assert text_of(refused).startswith("[ERROR: ACCESS_DENIED]")


def test_the_loopback_names_are_answered(url: str) -> None:
    port = httpx.URL(url).port
    for name in ("127.0.0.1", "localhost", "[::1]"):
        assert greeted(url, host=f"{name}:{port}").status_code == 200
        assert greeted(url, origin=f"http://{name}:{port}").status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1:1",
        "127.0.0.1.evil.example",
        "localhost",
        "localhost@evil.example",
        "0.0.0.0",
    ],
)
def test_another_name_is_refused(url: str, host: str) -> None:
    assert greeted(url, host=host).status_code == 421


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://localhost",
        "http://localhost:1",
        "https://127.0.0.1",
        "file://",
    ],
)
def test_another_page_is_refused(url: str, origin: str) -> None:
    assert greeted(url, origin=origin).status_code == 403


def test_the_modern_way_in_has_the_same_door(url: str) -> None:
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}
    modern = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
    for wrong, status in (({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403)):
        refused = httpx.post(url, json=discover, headers={**modern, **wrong})
        assert refused.status_code == status
        assert "sennit" not in refused.text


def test_names_and_pages_that_are_allowed_are_answered(url: str) -> None:
    for host in ("box.example", "box.example:443"):
        assert greeted(url, host=host).status_code == 200
    assert greeted(url, host="box.example.evil").status_code == 421
    assert greeted(url, origin="https://page.example").status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_token_decides_what_its_caller_sees(place: Place, mode: str) -> None:
    with sennit.open(place.db) as db:
        tokens = {
            level: db.tokens.issue(level, Caller(clearance=level, name=level), write=True) for level in LEVELS
        }
    ask = {"query": "vineyard for sale"}
    with serving(place) as url:
        for level, token in tokens.items():
            async with with_token(url, token, mode) as client:
                found = await client.call_tool("hybrid_search", ask)
                kept = await client.call_tool("remember", {"text": f"by {level}", "sensitivity": level})
            assert ("diary" in text_of(found)) is (level == "private")
            with no_errors(kept) as values, sennit.open(place.db, privacy__open=True) as db:
                record = db.get(values["id"])
                assert record is not None
                assert record.metadata["remembered_by"] == level
        async with Client(url, mode=mode) as client:
            assert "diary" not in text_of(await client.call_tool("hybrid_search", ask))


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_token_that_may_not_write_is_offered_nothing_that_does(place: Place, mode: str) -> None:
    with sennit.open(place.db) as db:
        token = db.tokens.issue("reader", Caller())
    with serving(place) as url:
        async with with_token(url, token, mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                name for name in CALLS if name != "remember"
            ]
            with pytest.raises(MCPError, match="There is no tool 'remember' here"):
                await client.call_tool("remember", {"text": "x"})


@pytest.mark.anyio
async def test_only_a_token_of_the_database_is_let_in_where_one_is_needed(place: Place) -> None:
    with sennit.open(place.db) as db:
        token = db.tokens.issue("ana", Caller())
        with serving(place, "--require-token") as url:
            for shown in ("", "Bearer", "Bearer sennit_guess", f"Basic {token}", token, f"Bearer {token}x"):
                refused = greeted(url, **({"authorization": shown} if shown else {}))
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == "Bearer"
            assert greeted(url, authorization=f"Bearer {token}").status_code == 200
            assert greeted(url, authorization=f"bearer {token}", host="evil.example").status_code == 421
            db.tokens.revoke("ana")
            assert greeted(url, authorization=f"Bearer {token}").status_code == 401


def test_a_wrong_token_is_refused_where_none_is_needed(url: str) -> None:
    assert greeted(url, authorization="Bearer sennit_guess").status_code == 401


def test_other_machines_are_let_in_only_with_a_token(place: Place) -> None:
    with serving(place, "--host", "0.0.0.0") as url:
        assert greeted(url.replace("0.0.0.0", "127.0.0.1")).status_code == 401


def test_a_port_that_is_taken_is_one_clear_error(place: Place, url: str) -> None:
    port = str(httpx.URL(url).port)
    done = subprocess.run(
        [PROGRAM, "mcp", "--http", "--port", port, "--db", str(place.db)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr


def test_options_of_http_need_http(place: Place) -> None:
    done = subprocess.run(
        [PROGRAM, "mcp", "--allowed-host", "x", "--db", str(place.db)],
        input="",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "--http" in done.stderr


def test_its_port_is_not_that_of_the_http_service() -> None:
    ports = [
        next(option.default for option in command.params if option.name == "port") for command in (mcp, serve)
    ]
    assert ports == [8766, 8765]
