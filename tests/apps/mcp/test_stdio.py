"""The server as a process that a client starts and talks to over standard input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, stdio_client
from mcp_types import Implementation

import sennit

from .conftest import PROGRAM, SampleDatabase, structured_content_of, text_of
from .test_tools import CALLS

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "by-hand", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def calling(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


@contextmanager
def by_hand(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a server process without a client library."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def exchange(command: list[str], *messages: dict[str, Any] | str) -> tuple[list[Any], str]:
    """Send messages and close the input. Returns the lines of standard output as JSON, and standard error."""
    with by_hand(command) as process:
        lines = [message if isinstance(message, str) else json.dumps(message) for message in messages]
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line}\n" for line in lines))
        process.stdin.flush()
        answered = []
        wanted = {message["id"] for message in messages if isinstance(message, dict) and "id" in message}
        while wanted:
            answered.append(json.loads(process.stdout.readline()))
            wanted.discard(answered[-1].get("id"))
        rest, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return answered + [json.loads(line) for line in rest.splitlines()], said


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_real_client_lists_and_calls_every_tool(sample: SampleDatabase, mode: str) -> None:
    async with Client(sample.server_parameters(), mode=mode) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("sennit", sennit.__version__)
        assert client.instructions is not None
        assert "never an instruction" in client.instructions
        assert [tool.name for tool in (await client.list_tools()).tools] == list(CALLS)
        for name, given in CALLS.items():
            # The client checks the structured answer against the tool's schema.
            with structured_content_of(await client.call_tool(name, given)) as values:
                assert values


@pytest.mark.anyio
async def test_options_set_the_recipe_and_the_caller(sample: SampleDatabase) -> None:
    options = ("--recipe", "files", "--clearance", "private", "--scope", "me", "--read-only")
    async with Client(sample.server_parameters(*options)) as client:
        found = await client.call_tool("hybrid_search", {"query": "LOGIN_TIMEOUT"})
        secret = await client.call_tool("hybrid_search", {"query": "vineyard for sale", "recipe": "default"})
        names = [tool.name for tool in (await client.list_tools()).tools]
    with structured_content_of(found) as values:
        assert values["recipe"] == "files"
    assert "diary" in text_of(secret)
    assert "remember" not in names


@pytest.mark.anyio
async def test_clearance_option_overrides_open_privacy_settings(sample: SampleDatabase) -> None:
    ask = {"query": "vineyard for sale"}
    open_to_me = {"SENNIT_PRIVACY_OPEN": "true"}
    async with Client(sample.server_parameters(env=open_to_me)) as client:
        everything = await client.call_tool("hybrid_search", ask)
    async with Client(sample.server_parameters("--clearance", "normal", env=open_to_me)) as client:
        restricted = await client.call_tool("hybrid_search", ask)
    assert "diary" in text_of(everything)
    assert "diary" not in text_of(restricted)


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_memory_records_the_client_name(sample: SampleDatabase, mode: str) -> None:
    tester = Implementation(name="tester", version="1")
    async with Client(sample.server_parameters(), mode=mode, client_info=tester) as client:
        kept = await client.call_tool("remember", {"text": "x"})
    with structured_content_of(kept) as values, sennit.open(sample.db) as db:
        record = db.get(values["id"])
    assert record is not None
    assert record.metadata["source"] == "mcp:tester"
    assert record.metadata["remembered_by"] == "tester"


def test_standard_output_carries_only_the_protocol(sample: SampleDatabase) -> None:
    lines, _ = exchange(
        [PROGRAM, "mcp", "-vv", "--db", str(sample.db)],
        INITIALIZE,
        INITIALIZED,
        "this is not JSON",
        calling(1, "hybrid_search", CALLS["hybrid_search"]),
        calling(2, "read_file", {"path": "/etc/passwd"}),
        calling(3, "hybrid_search", {"query": "x", "limit": "many"}),
    )
    assert {line["jsonrpc"] for line in lines} == {"2.0"}
    assert {0, 1, 2, 3} <= {line.get("id") for line in lines}


def test_printed_text_does_not_reach_the_client(sample: SampleDatabase) -> None:
    code = (
        "import os, sys, sennit\n"
        "from sennit.apps.mcp.server import LazyDatabase, make_server\n"
        "from sennit.apps.mcp.transports import serve_stdio\n"
        "def opens():\n"
        "    print('printed')\n"
        "    os.write(1, b'written\\n')\n"
        "    os.system('echo from a child')\n"
        f"    return sennit.open({str(sample.db)!r})\n"
        "serve_stdio(make_server(LazyDatabase(opens)))\n"
    )
    lines, said = exchange(
        [sys.executable, "-c", code],
        INITIALIZE,
        INITIALIZED,
        calling(1, "hybrid_search", CALLS["hybrid_search"]),
    )
    assert [line.get("id") for line in lines] == [0, 1]
    assert lines[1]["result"]["isError"] is False
    for stray in ("printed", "written", "from a child"):
        assert stray in said


def test_heavy_modules_are_not_imported_before_the_first_call(sample: SampleDatabase) -> None:
    code = (
        "import sys\n"
        "from sennit.apps.cli.program import program\n"
        "from sennit.apps.mcp import transports\n"
        "transports.serve_stdio = lambda server: None\n"
        f"program.main(['mcp', '--db', {str(sample.db)!r}], standalone_mode=False)\n"
    )
    code = f"try:\n    exec({code!r})\nfinally:\n    import sys\n    print(sorted(sys.modules), file=sys.stderr)\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stderr.splitlines()[-1].strip("[]").replace("'", "").split(", "))
    assert "mcp.server.lowlevel.server" in loaded
    assert not loaded & {"numpy", "faiss", "tokenizers", "rich", "sennit.engine", "jsonschema"}


def test_missing_extra_is_reported_with_the_install_command(sample: SampleDatabase) -> None:
    code = (
        "import sys\n"
        "sys.modules['mcp'] = None\n"
        "from sennit.apps.cli.program import program\n"
        f"program.main(['mcp', '--db', {str(sample.db)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True)
    assert done.returncode == 5
    assert "pip install 'sennit[mcp]'" in done.stderr


def test_interrupt_stops_an_idle_server(sample: SampleDatabase) -> None:
    with by_hand([PROGRAM, "mcp", "--db", str(sample.db)]) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 0
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == -signal.SIGINT


def test_only_a_named_database_is_created(tmp_path: Path) -> None:
    remember = calling(1, "remember", {"text": "first"})
    command = [PROGRAM, "mcp", "--db", str(tmp_path / "new")]
    lines, _ = exchange(command, INITIALIZE, INITIALIZED, remember)
    assert lines[1]["result"]["isError"] is False
    env = {name: value for name, value in os.environ.items() if name != "SENNIT_DB"}
    for options in ([], ["--db", str(tmp_path / "other"), "--read-only"]):
        done = subprocess.run(
            [PROGRAM, "mcp", *options], cwd=tmp_path, env=env, input="", capture_output=True, text=True
        )
        assert done.returncode == 3
        assert "There is no sennit database" in done.stderr
        assert done.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--clearance", "cosmic"], "cosmic"),
        (["--recipe", "soup"], "There is no recipe 'soup'"),
    ],
)
def test_invalid_start_options_are_reported_by_every_call(
    sample: SampleDatabase, options: list[str], said: str
) -> None:
    command = [PROGRAM, "mcp", "--db", str(sample.db), *options]
    lines, _ = exchange(command, INITIALIZE, INITIALIZED, calling(1, "hybrid_search", {"query": "x"}))
    assert lines[1]["result"]["isError"] is True
    assert said in lines[1]["result"]["content"][0]["text"]


@pytest.mark.slow
@pytest.mark.anyio
async def test_ten_servers_on_one_database_serve_ten_clients_at_once(sample: SampleDatabase) -> None:
    everyone = range(10)
    started = anyio.Event()
    ready: list[int] = []
    found: dict[int, set[str]] = {}

    async def serve(number: int) -> None:
        with Path(os.devnull).open("w") as devnull:
            async with Client(stdio_client(sample.server_parameters(), errlog=devnull)) as client:
                ready.append(number)
                if len(ready) == len(everyone):
                    started.set()
                await started.wait()
                for turn in range(5):
                    text = f"Client {number} was here in turn {turn}."
                    with structured_content_of(await client.call_tool("remember", {"text": text})):
                        pass
                    for name, given in CALLS.items():
                        if name == "forget":  # only one of the clients could forget the record
                            continue
                        with structured_content_of(await client.call_tool(name, given)) as values:
                            assert values
                mine = await client.call_tool(
                    "memory_search", {"query": f"Client {number} was here", "limit": 50}
                )
                with structured_content_of(mine) as values:
                    found[number] = {memory["text"] for memory in values["memories"]}

    async with anyio.create_task_group() as tasks:
        for number in everyone:
            tasks.start_soon(serve, number)
    for number in everyone:
        assert {f"Client {number} was here in turn {turn}." for turn in range(5)} <= found[number]
    with sennit.open(sample.db) as db:
        assert len([record for record in db if "was here" in record.text]) == 50
