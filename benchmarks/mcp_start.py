"""The start-up time of the MCP server: `python -m benchmarks.mcp_start`.

Measures the wall time and the CPU time until the handshake and until the result of a first search. The baseline is a
server that only imports the SDK.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import sennit

START_COUNT = 10
HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SEARCH = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "hybrid_search", "arguments": {"query": "harvest"}},
}
SDK_ONLY_SERVER = (
    "import anyio\n"
    "from mcp.server import Server\n"
    "from mcp.server.stdio import stdio_server\n"
    "async def run():\n"
    "    server = Server('bare')\n"
    "    async with stdio_server() as (read, write):\n"
    "        await server.run(read, write, server.create_initialization_options())\n"
    "anyio.run(run)\n"
)


class Start(NamedTuple):
    """Seconds of wall time and of CPU time."""

    wall: float
    cpu: float


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notes.sennit"
        with sennit.open(path) as db:
            db.add([sennit.Record(id="a", text="The harvest was good.")])
        sennit_command = [str(Path(sys.executable).with_name("sennit")), "mcp", "--db", str(path)]
        sdk_command = [sys.executable, "-c", SDK_ONLY_SERVER]
        starts: dict[str, list[Start]] = {"the SDK alone": [], "sennit mcp": [], "first search": []}
        for _ in range(START_COUNT):
            starts["the SDK alone"].append(measure_start(sdk_command)[0])
            handshake, search = measure_start(sennit_command, SEARCH)
            starts["sennit mcp"].append(handshake)
            starts["first search"].append(search)
    for name, seconds in starts.items():
        wall = sorted(start.wall for start in seconds)
        cpu = statistics.median(start.cpu for start in seconds)
        print(f"{name:14} best {wall[0]:.2f} s, median {statistics.median(wall):.2f} s, CPU {cpu:.2f} s")


def measure_start(command: list[str], *requests: dict[str, Any]) -> list[Start]:
    """Start a process and measure when it answers the handshake and each request."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    out = []
    for message in (HANDSHAKE, *requests):
        process.stdin.write(f"{json.dumps(message)}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == message["id"]
        out.append(Start(time.perf_counter() - started, cpu_seconds(process.pid)))
        if message is HANDSHAKE:
            process.stdin.write(f"{json.dumps(INITIALIZED)}\n")
    process.stdin.close()
    process.wait()
    return out


def cpu_seconds(pid: int) -> float:
    """The CPU seconds of a process so far. NaN without /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
