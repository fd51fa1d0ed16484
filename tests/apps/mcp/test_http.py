"""Streamable HTTP: real clients, host and origin checks, and tokens."""

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

from .conftest import PROGRAM, SampleDatabase, structured_content_of, text_of
from .test_stdio import INITIALIZE
from .test_tools import CALLS

HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@contextmanager
def serving(sample: SampleDatabase, *options: str) -> Iterator[str]:
    """Run a server process. Yields its URL."""
    command = [PROGRAM, "mcp", "--http", "--port", "0", "--json", "--db", str(sample.db), *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=sample.files
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
def url(shared_sample: SampleDatabase) -> Iterator[str]:
    with serving(
        shared_sample, "--allowed-host", "box.example", "--allowed-origin", "https://page.example"
    ) as url:
        yield url


def greeted(url: str, **headers: str) -> httpx.Response:
    """The response to an initialize request with these headers."""
    return httpx.post(url, json=INITIALIZE, headers={**HEADERS, **headers}, timeout=60)


@asynccontextmanager
async def with_token(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    http = httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60)
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        yield client


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_real_client_lists_and_calls_every_tool(sample: SampleDatabase, mode: str) -> None:
    with serving(sample) as url:
        async with Client(url, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(CALLS)
            for name, given in CALLS.items():
                with structured_content_of(await client.call_tool(name, given)) as values:
                    assert values
            refused = await client.call_tool("read_file", {"path": "../x"})
            assert text_of(refused).startswith("[ERROR: ACCESS_DENIED]")


def test_loopback_hosts_are_accepted(url: str) -> None:
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
def test_other_hosts_get_421(url: str, host: str) -> None:
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
def test_other_origins_get_403(url: str, origin: str) -> None:
    assert greeted(url, origin=origin).status_code == 403


def test_discovery_checks_host_and_origin_too(url: str) -> None:
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}
    modern = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
    for wrong, status in (({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403)):
        refused = httpx.post(url, json=discover, headers={**modern, **wrong})
        assert refused.status_code == status
        assert "sennit" not in refused.text


def test_allowed_hosts_and_origins_are_accepted(url: str) -> None:
    for host in ("box.example", "box.example:443"):
        assert greeted(url, host=host).status_code == 200
    assert greeted(url, host="box.example.evil").status_code == 421
    assert greeted(url, origin="https://page.example").status_code == 200


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_token_determines_visible_records(sample: SampleDatabase, mode: str) -> None:
    with sennit.open(sample.db) as db:
        tokens = {
            level: db.admin.tokens.issue(level, Caller(clearance=level, name=level), write=True)
            for level in LEVELS
        }
    ask = {"query": "vineyard for sale"}
    with serving(sample) as url:
        for level, token in tokens.items():
            async with with_token(url, token, mode) as client:
                found = await client.call_tool("hybrid_search", ask)
                kept = await client.call_tool("remember", {"text": f"by {level}", "sensitivity": level})
            assert ("diary" in text_of(found)) is (level == "private")
            with structured_content_of(kept) as values, sennit.open(sample.db, privacy__open=True) as db:
                record = db.get(values["id"])
                assert record is not None
                assert record.metadata["remembered_by"] == level
        async with Client(url, mode=mode) as client:
            assert "diary" not in text_of(await client.call_tool("hybrid_search", ask))


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_token_without_write_access_does_not_get_remember(sample: SampleDatabase, mode: str) -> None:
    with sennit.open(sample.db) as db:
        token = db.admin.tokens.issue("reader", Caller())
    with serving(sample) as url:
        async with with_token(url, token, mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [
                name for name in CALLS if name not in ("remember", "forget", "feedback")
            ]
            with pytest.raises(MCPError, match="There is no tool 'remember' here"):
                await client.call_tool("remember", {"text": "x"})


@pytest.mark.anyio
async def test_require_token_rejects_requests_without_a_valid_token(sample: SampleDatabase) -> None:
    with sennit.open(sample.db) as db:
        token = db.admin.tokens.issue("ana", Caller())
        with serving(sample, "--require-token") as url:
            for shown in ("", "Bearer", "Bearer sennit_guess", f"Basic {token}", token, f"Bearer {token}x"):
                refused = greeted(url, **({"authorization": shown} if shown else {}))
                assert refused.status_code == 401
                assert refused.headers["www-authenticate"] == "Bearer"
            assert greeted(url, authorization=f"Bearer {token}").status_code == 200
            assert greeted(url, authorization=f"bearer {token}", host="evil.example").status_code == 421
            db.admin.tokens.revoke("ana")
            assert greeted(url, authorization=f"Bearer {token}").status_code == 401


def test_unknown_token_is_rejected_even_if_none_is_required(url: str) -> None:
    assert greeted(url, authorization="Bearer sennit_guess").status_code == 401


def test_public_host_requires_a_token(sample: SampleDatabase) -> None:
    with serving(sample, "--host", "0.0.0.0") as url:
        assert greeted(url.replace("0.0.0.0", "127.0.0.1")).status_code == 401


def test_port_in_use_is_a_clear_error(sample: SampleDatabase, url: str) -> None:
    port = str(httpx.URL(url).port)
    done = subprocess.run(
        [PROGRAM, "mcp", "--http", "--port", port, "--db", str(sample.db)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert f"Cannot listen on 127.0.0.1 port {port}" in done.stderr


def test_http_options_require_http(sample: SampleDatabase) -> None:
    done = subprocess.run(
        [PROGRAM, "mcp", "--allowed-host", "x", "--db", str(sample.db)],
        input="",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "--http" in done.stderr


def test_default_port_differs_from_the_http_service() -> None:
    ports = [
        next(option.default for option in command.params if option.name == "port") for command in (mcp, serve)
    ]
    assert ports == [8766, 8765]
