"""How `weft serve` bears a steady load, with a writer beside it.

    python -m benchmarks.service [--rate 200] [--seconds 60] [--size 10000] [--writes 10]

A server process over passages of this machine's own text is asked by this process at a fixed rate, whatever it answers:
six of ten requests are searches, four ask for context. Beside them a writer adds ten records at a time. A request's time
counts from when it was due, not from when a connection was free for it, so that a pause is paid for by all that wait.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import numpy as np

import weft
from benchmarks import corpus as corpora
from weft import OWNER, Record

CONNECTIONS: Final = 32
PER_WRITE: Final = 10
BATCH: Final = 1000
QUERIES: Final = 1000


@dataclass
class Tally:
    """What came of the requests of one kind: milliseconds of those that were answered, and the statuses of all."""

    times: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    def line(self, name: str) -> str:
        errors = sum(count for status, count in self.statuses.items() if status != "200")
        if not self.times:
            return f"{name:<8} none answered, {errors} errors"
        p50, p99 = np.percentile(self.times, [50, 99])
        return (
            f"{name:<8} {sum(self.statuses.values()):>6} requests  {errors} errors  "
            f"p50 {p50:.1f} ms  p99 {p99:.1f} ms  most {max(self.times):.1f} ms"
        )


class Connection:
    """One connection that stays open."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._place = (parts.hostname or "", parts.port or 80)
        self._head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: object = None) -> tuple[str, bytes]:
        """The status and the body of the answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        kind = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{kind}\r\n".encode() + content)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length: ")[2].split("\r\n", 1)[0])
        return head.split(" ", 2)[1], await reader.readexactly(length)

    def drop(self) -> None:
        """Begin anew with the next request."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Load:
    """Requests at their times."""

    def __init__(self, url: str, token: str, queries: list[str]) -> None:
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self._free.put_nowait(Connection(url, token))
        self._writer = Connection(url, token)
        self._queries = queries
        self.tallies = {name: Tally() for name in ("search", "context", "write")}
        self.cpu_seconds = 0.0

    async def run(self, rate: float, seconds: float, writes: float) -> None:
        before = await self._cpu_seconds()
        began = time.perf_counter()
        asking = []
        writing = asyncio.create_task(self._write(began, seconds, writes))
        for number in range(int(rate * seconds)):
            due = began + number / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            asking.append(asyncio.create_task(self._ask(number, due)))
        await asyncio.gather(writing, *asking)
        self.cpu_seconds = await self._cpu_seconds() - before

    async def _cpu_seconds(self) -> float:
        """What the server has worked so far, by its own figures."""
        _, page = await self._writer.ask("GET", "/metrics")
        return float(page.partition(b"\nprocess_cpu_seconds_total ")[2].split(b"\n", 1)[0])

    async def _ask(self, number: int, due: float) -> None:
        query = self._queries[number % len(self._queries)]
        connection = await self._free.get()
        if number % 10 < 6:
            await self._timed(connection, "search", due, "POST", "/v1/search", {"query": query})
        else:
            await self._timed(connection, "context", due, "GET", f"/v1/context?query={quote(query)}")
        self._free.put_nowait(connection)

    async def _write(self, began: float, seconds: float, writes: float) -> None:
        for number in range(int(writes * seconds)):
            due = began + number / writes
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            records = [
                {"id": f"load-{number}-{at}", "text": self._queries[(number + at) % len(self._queries)]}
                for at in range(PER_WRITE)
            ]
            await self._timed(self._writer, "write", due, "POST", "/v1/records", records)

    async def _timed(
        self, connection: Connection, kind: str, due: float, method: str, path: str, body: object = None
    ) -> None:
        tally = self.tallies[kind]
        try:
            status, _ = await connection.ask(method, path, body)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            connection.drop()
            tally.statuses[type(error).__name__] += 1
            return
        tally.statuses[status] += 1
        if status == "200":
            tally.times.append((time.perf_counter() - due) * 1000)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rate", type=float, default=200.0, help="requests per second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--size", type=int, default=10_000, help="passages in the database")
    parser.add_argument("--writes", type=float, default=10.0, help=f"per second, of {PER_WRITE} records each")
    given = parser.parse_args()
    corpus = corpora.load(given.size, QUERIES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        with weft.open(path) as db:
            for at in range(0, len(corpus.texts), BATCH):
                texts = enumerate(corpus.texts[at : at + BATCH], at)
                db.add([Record(id=f"p{number}", text=text) for number, text in texts])
            db.optimise()
            token = db.permits.issue("load", OWNER, write=True)
        program = str(Path(sys.executable).with_name("weft"))
        command = [program, "serve", "--db", str(path), "--port", "0", "--json", "--quiet"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                load = Load(json.loads(server.stdout.readline())["url"], token, corpus.queries)
                asyncio.run(load.run(given.rate, given.seconds, given.writes))
            finally:
                server.terminate()
    print(
        f"{given.rate:g} requests/s for {given.seconds:g} s over {len(corpus.texts):,} passages, "
        f"{given.writes * PER_WRITE:g} records/s written beside"
    )
    asked = sum(sum(tally.statuses.values()) for tally in load.tallies.values())
    print(f"the server worked {load.cpu_seconds / max(asked, 1) * 1000:.1f} ms of CPU time per request")
    for name, tally in load.tallies.items():
        print(tally.line(name), dict(tally.statuses))
    return (
        0 if server.returncode == 0 and all(set(t.statuses) <= {"200"} for t in load.tallies.values()) else 1
    )


if __name__ == "__main__":
    sys.exit(main())
