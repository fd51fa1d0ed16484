"""How soon an MCP server answers: `python -m benchmarks.mcp_start`.

For each start: seconds until the handshake is answered and until a first search is, on the clock and in processor
time, beside the same for a server that does nothing but import the SDK it is built on.
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

STARTS = 10
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
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SEARCH = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "hybrid_search", "arguments": {"query": "harvest"}},
}
BARE = (
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
    """Seconds: on the clock, and of the processor."""

    clock: float
    processor: float


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notes.sennit"
        with sennit.open(path) as db:
            db.add([sennit.Record(id="a", text="The harvest was good.")])
        ours = [str(Path(sys.executable).with_name("sennit")), "mcp", "--db", str(path)]
        bare = [sys.executable, "-c", BARE]
        starts: dict[str, list[Start]] = {"the SDK alone": [], "sennit mcp": [], "first search": []}
        for _ in range(STARTS):
            starts["the SDK alone"].append(started(bare)[0])
            handshake, search = started(ours, SEARCH)
            starts["sennit mcp"].append(handshake)
            starts["first search"].append(search)
    for name, seconds in starts.items():
        clock = sorted(start.clock for start in seconds)
        processor = statistics.median(start.processor for start in seconds)
        print(
            f"{name:14} best {clock[0]:.2f} s, median {statistics.median(clock):.2f} s, "
            f"processor {processor:.2f} s"
        )


def started(command: list[str], *further: dict[str, Any]) -> list[Start]:
    """When each message is answered, in a new process."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdin is not None
    assert process.stdout is not None
    out = []
    for message in (HANDSHAKE, *further):
        process.stdin.write(f"{json.dumps(message)}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == message["id"]
        out.append(Start(time.perf_counter() - began, processor_of(process.pid)))
        if message is HANDSHAKE:
            process.stdin.write(f"{json.dumps(READY)}\n")
    process.stdin.close()
    process.wait()
    return out


def processor_of(pid: int) -> float:
    """Processor seconds of a process so far; nan where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
