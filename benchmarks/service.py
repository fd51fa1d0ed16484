"""How `sennit serve` bears a steady load, with a writer beside it.

    python -m benchmarks.service [--rate 200] [--seconds 60] [--size 10000] [--writes 10] [--workers 1]

A server over passages of this machine's own text is asked at a fixed rate, whatever it answers: six of ten requests are
searches, four ask for context. Beside them a writer adds ten records at a time. A request's time counts from when it was
due, not from when it was sent, so that a pause is paid for by all that wait; one that is never answered is an error.
Requests are made before the clock starts, and the first seconds, in which the server warms up, are not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import numpy as np

import sennit
from benchmarks import corpus as corpora
from sennit import OWNER, Record

CONNECTIONS: Final = 64
PER_WRITE: Final = 10
BATCH: Final = 1000
QUERIES: Final = 1000
SEARCHES: Final = 6
"""Of ten requests."""

PATIENCE: Final = 30.0
"""Seconds after the last was due that answers are waited for."""

UNANSWERED: Final = "unanswered"
GOOD: Final = "200"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request that is ready to be sent, and when it is due."""

    kind: str
    due: float
    content: bytes


@dataclass
class Tally:
    """What came of the requests of one kind: milliseconds of those that were answered well, the statuses of all."""

    times: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def errors(self) -> int:
        return self.statuses.total() - self.statuses[GOOD]

    def line(self, name: str) -> str:
        told = f"{name:<8} {self.statuses.total():>6} requests  {self.errors} errors"
        if self.errors:
            told += f" {dict(self.statuses)}"
        if not self.times:
            return told
        p50, p99 = np.percentile(self.times, [50, 99])
        return f"{told}  p50 {p50:.1f} ms  p99 {p99:.1f} ms  most {max(self.times):.1f} ms"


class Connection(asyncio.Protocol):
    """A connection that stays open and carries one request at a time. Of an answer it reads status and length."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._read = b""
        self._done: Callable[[str], None] | None = None

    @property
    def open(self) -> bool:
        return self._transport is not None

    def send(self, content: bytes, done: Callable[[str], None]) -> None:
        assert self._transport is not None
        self._done = done
        self._transport.write(content)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end(type(exc).__name__ if exc else "closed")

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        if end and len(body) >= int(head.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0]):
            self._read = b""
            self._end(head[9:12].decode())

    def _end(self, status: str) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(status)


class Lane:
    """Requests in the order in which they are due, each on the first connection that is free."""

    def __init__(self, place: tuple[str, int], tallies: dict[str, Tally]) -> None:
        self._place = place
        self._tallies = tallies
        self._free: deque[Connection] = deque()
        self._all: list[Connection] = []
        self._waiting: deque[Request] = deque()
        self._under_way: set[Request] = set()
        self.last = 0.0
        """When the last answer came."""

    async def connect(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(count):
            _, connection = await loop.create_connection(Connection, *self._place)
            self._free.append(connection)
            self._all.append(connection)

    async def run(self, requests: Sequence[Request]) -> None:
        """Send each when it is due, and wait for the answers."""
        for request in requests:
            await asyncio.sleep(request.due - time.perf_counter())
            self._waiting.append(request)
            self._go_on()
        end = time.perf_counter() + PATIENCE
        while (self._waiting or self._under_way) and time.perf_counter() < end:
            await asyncio.sleep(0.01)
        for request in (*self._waiting, *self._under_way):
            self._tallies[request.kind].statuses[UNANSWERED] += 1
        for connection in self._all:
            connection.close()

    def _go_on(self) -> None:
        while self._waiting and self._free:
            connection = self._free.popleft()
            if not connection.open:
                continue
            request = self._waiting.popleft()
            self._under_way.add(request)
            connection.send(request.content, partial(self._came, request, connection))

    def _came(self, request: Request, connection: Connection, status: str) -> None:
        now = time.perf_counter()
        if request not in self._under_way:
            return
        self._under_way.discard(request)
        self.last = max(self.last, now)
        tally = self._tallies[request.kind]
        tally.statuses[status] += 1
        if status == GOOD:
            tally.times.append((now - request.due) * 1000)
        if connection.open:
            self._free.append(connection)
        self._go_on()


@dataclass(frozen=True, kw_only=True)
class Load:
    """What is asked of a service, and for how long."""

    rate: float = 200.0
    seconds: float = 60.0
    writes: float = 10.0
    """Per second, of ten records each."""
    warm: float = 5.0
    """Seconds of the same load that are not counted."""

    def asked(self, queries: Sequence[str], head: str, began: float, seconds: float) -> list[Request]:
        """The searches and questions for context of some time."""
        out = []
        for number in range(int(self.rate * seconds)):
            query = queries[number % len(queries)]
            due = began + number / self.rate
            if number % 10 < SEARCHES:
                out.append(Request("search", due, _posted("/v1/search", head, {"query": query})))
            else:
                content = f"GET /v1/context?query={quote(query)} HTTP/1.1\r\n{head}\r\n".encode()
                out.append(Request("context", due, content))
        return out

    def written(
        self, queries: Sequence[str], head: str, began: float, seconds: float, name: str
    ) -> list[Request]:
        """The writes of some time."""
        out = []
        for number in range(int(self.writes * seconds)):
            records = [
                {"id": f"{name}-{number}-{at}", "text": queries[(number + at) % len(queries)]}
                for at in range(PER_WRITE)
            ]
            due = began + number / self.writes
            out.append(Request("write", due, _posted("/v1/records", head, records)))
        return out


@dataclass
class Outcome:
    """What came of a load."""

    tallies: dict[str, Tally]
    reached: float
    """Requests other than writes that were answered well, per second until the last answer."""
    generator_share: float
    """Of a core, for asking."""

    @property
    def errors(self) -> int:
        return sum(tally.errors for tally in self.tallies.values())


def _posted(path: str, head: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    return f"POST {path} HTTP/1.1\r\n{head}{kind}\r\n".encode() + content


async def bear(
    url: str, token: str, queries: Sequence[str], load: Load, warmed: Callable[[], None] = lambda: None
) -> Outcome:
    """Put a load on a service; `warmed` is called where the counted part begins."""
    await _phase(url, token, queries, load, load.warm, "warm")
    warmed()
    return await _phase(url, token, queries, load, load.seconds, "load")


async def _phase(
    url: str, token: str, queries: Sequence[str], load: Load, seconds: float, name: str
) -> Outcome:
    parts = urlsplit(url)
    place = (parts.hostname or "", parts.port or 80)
    head = f"Host: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
    tallies = {kind: Tally() for kind in ("search", "context", "write")}
    asking, writing = Lane(place, tallies), Lane(place, tallies)
    await asking.connect(CONNECTIONS)
    await writing.connect(1)
    # Made for a clock that starts at 0, because making them takes a while.
    asked = load.asked(queries, head, 0.0, seconds)
    written = load.written(queries, head, 0.0, seconds, name)
    worked = time.process_time()
    began = time.perf_counter()
    await asyncio.gather(
        asking.run([Request(one.kind, began + one.due, one.content) for one in asked]),
        writing.run([Request(one.kind, began + one.due, one.content) for one in written]),
    )
    took = max(asking.last - began, seconds)
    good = sum(len(tallies[kind].times) for kind in ("search", "context"))
    share = (time.process_time() - worked) / took if took else 0.0
    return Outcome(tallies, good / took if took else 0.0, share)


@contextlib.contextmanager
def serving(path: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`sennit serve` over a database: its address, and its process."""
    program = str(Path(sys.executable).with_name("sennit"))
    command = [program, "serve", "--db", str(path), "--port", "0", "--json", "--quiet", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["url"], server
        finally:
            server.terminate()


def cpu_seconds(process: int) -> float:
    """What a process and those that it started have worked so far; Linux tells."""
    folder = Path("/proc") / str(process)
    values = (folder / "stat").read_text().rpartition(")")[2].split()
    own = (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
    children = (folder / "task" / str(process) / "children").read_text().split()
    return own + sum(cpu_seconds(int(child)) for child in children)


def build(path: Path, texts: Sequence[str]) -> str:
    """A database of passages, and a token for it."""
    with sennit.open(path) as db:
        for at in range(0, len(texts), BATCH):
            db.add([Record(id=f"p{n}", text=text) for n, text in enumerate(texts[at : at + BATCH], at)])
        db.optimise()
        return db.permits.issue("load", OWNER, write=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rate", type=float, default=Load.rate, help="requests per second")
    parser.add_argument("--seconds", type=float, default=Load.seconds)
    parser.add_argument("--warm", type=float, default=Load.warm, help="seconds before, not counted")
    parser.add_argument("--size", type=int, default=10_000, help="passages in the database")
    parser.add_argument(
        "--writes", type=float, default=Load.writes, help=f"per second, of {PER_WRITE} records each"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes of the service")
    given = parser.parse_args()
    load = Load(rate=given.rate, seconds=given.seconds, writes=given.writes, warm=given.warm)
    corpus = corpora.load(given.size, QUERIES)
    worked = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        token = build(path, corpus.texts)
        with serving(path, "--workers", str(given.workers)) as (url, server):

            def warmed() -> None:
                nonlocal worked
                worked = cpu_seconds(server.pid)

            outcome = asyncio.run(bear(url, token, corpus.queries, load, warmed))
            worked = cpu_seconds(server.pid) - worked
    asked = sum(tally.statuses.total() for tally in outcome.tallies.values())
    writes = len(outcome.tallies["write"].times)
    print(
        f"{load.rate:g} requests/s for {load.seconds:g} s over {len(corpus.texts):,} passages, "
        f"{given.workers} worker(s), {load.writes * PER_WRITE:g} records/s written beside"
    )
    print(
        f"reached {outcome.reached:.1f} requests/s, {writes * PER_WRITE:,} records written, "
        f"{worked / max(asked, 1) * 1000:.1f} ms of the server's CPU per request, "
        f"{outcome.generator_share:.0%} of a core for asking"
    )
    for name, tally in outcome.tallies.items():
        print(tally.line(name))
    return 0 if server.returncode == 0 and not outcome.errors else 1


if __name__ == "__main__":
    sys.exit(main())
