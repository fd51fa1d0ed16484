"""`sennit serve` under a steady load of searches and writes.

    python -m benchmarks.service [--rate 200] [--seconds 60] [--size 10000] [--writes 10] [--workers 1]

The load is open-loop: requests are due at a fixed rate, independent of the responses. Six of ten are searches, four ask
for context. A writer adds ten records at a time. The time of a request counts from when it was due and not from when it
was sent, so that a pause of the server counts for every request that waits. A request without a response is an error.
The requests are built before the clock starts. The first seconds, in which the server warms up, are not counted.
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

CONNECTION_COUNT: Final = 64
RECORDS_PER_WRITE: Final = 10
WRITE_BATCH_SIZE: Final = 1000
QUERY_COUNT: Final = 1000
SEARCHES_PER_TEN: Final = 6
"""The number of searches among ten requests. The others ask for context."""

DRAIN_SECONDS: Final = 30.0
"""How long to wait for responses after the last request was due."""

UNANSWERED: Final = "unanswered"
OK_STATUS: Final = "200"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """A request as bytes, and when it is due."""

    kind: str
    due: float
    content: bytes


@dataclass
class RequestStats:
    """The requests of one kind: milliseconds of the successful ones, statuses of all."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def errors(self) -> int:
        return self.statuses.total() - self.statuses[OK_STATUS]

    def format(self, name: str) -> str:
        text = f"{name:<8} {self.statuses.total():>6} requests  {self.errors} errors"
        if self.errors:
            text += f" {dict(self.statuses)}"
        if not self.milliseconds:
            return text
        p50, p99 = np.percentile(self.milliseconds, [50, 99])
        return f"{text}  p50 {p50:.1f} ms  p99 {p99:.1f} ms  max {max(self.milliseconds):.1f} ms"


class Connection(asyncio.Protocol):
    """A keep-alive connection with one request at a time. It reads only the status and the length of a response."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = b""
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
        self._finish(type(exc).__name__ if exc else "closed")

    def data_received(self, data: bytes) -> None:
        self._received += data
        headers, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) >= int(headers.lower().partition(b"content-length: ")[2].split(b"\r\n", 1)[0]):
            self._received = b""
            self._finish(headers[9:12].decode())

    def _finish(self, status: str) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(status)


class RequestQueue:
    """Sends requests in the order in which they are due, each on the next free connection."""

    def __init__(self, address: tuple[str, int], stats_by_kind: dict[str, RequestStats]) -> None:
        self._address = address
        self._tallies = stats_by_kind
        self._free: deque[Connection] = deque()
        self._all: list[Connection] = []
        self._waiting: deque[Request] = deque()
        self._in_flight: set[Request] = set()
        self.last_response = 0.0
        """When the last response arrived."""

    async def connect(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(count):
            _, connection = await loop.create_connection(Connection, *self._address)
            self._free.append(connection)
            self._all.append(connection)

    async def run(self, requests: Sequence[Request]) -> None:
        """Send each request when it is due, and wait for the responses."""
        for request in requests:
            await asyncio.sleep(request.due - time.perf_counter())
            self._waiting.append(request)
            self._send_next()
        end = time.perf_counter() + DRAIN_SECONDS
        while (self._waiting or self._in_flight) and time.perf_counter() < end:
            await asyncio.sleep(0.01)
        for request in (*self._waiting, *self._in_flight):
            self._tallies[request.kind].statuses[UNANSWERED] += 1
        for connection in self._all:
            connection.close()

    def _send_next(self) -> None:
        while self._waiting and self._free:
            connection = self._free.popleft()
            if not connection.open:
                continue
            request = self._waiting.popleft()
            self._in_flight.add(request)
            connection.send(request.content, partial(self._on_response, request, connection))

    def _on_response(self, request: Request, connection: Connection, status: str) -> None:
        now = time.perf_counter()
        if request not in self._in_flight:
            return
        self._in_flight.discard(request)
        self.last_response = max(self.last_response, now)
        stats = self._tallies[request.kind]
        stats.statuses[status] += 1
        if status == OK_STATUS:
            stats.milliseconds.append((now - request.due) * 1000)
        if connection.open:
            self._free.append(connection)
        self._send_next()


@dataclass(frozen=True, kw_only=True)
class Load:
    """The load on a service."""

    rate: float = 200.0
    """Requests per second, without the writes."""
    seconds: float = 60.0
    writes_per_second: float = 10.0
    """Each of ten records."""
    warmup_seconds: float = 5.0
    """The same load before the measurement, which is not counted."""

    def read_requests(
        self, queries: Sequence[str], headers: str, started: float, seconds: float
    ) -> list[Request]:
        """The searches and context requests of a period."""
        out = []
        for number in range(int(self.rate * seconds)):
            query = queries[number % len(queries)]
            due = started + number / self.rate
            if number % 10 < SEARCHES_PER_TEN:
                out.append(Request("search", due, post_request("/v1/search", headers, {"query": query})))
            else:
                content = f"GET /v1/context?query={quote(query)} HTTP/1.1\r\n{headers}\r\n".encode()
                out.append(Request("context", due, content))
        return out

    def write_requests(
        self, queries: Sequence[str], headers: str, started: float, seconds: float, name: str
    ) -> list[Request]:
        """The writes of a period."""
        out = []
        for number in range(int(self.writes_per_second * seconds)):
            records = [
                {"id": f"{name}-{number}-{at}", "text": queries[(number + at) % len(queries)]}
                for at in range(RECORDS_PER_WRITE)
            ]
            due = started + number / self.writes_per_second
            out.append(Request("write", due, post_request("/v1/records", headers, records)))
        return out


@dataclass
class LoadResult:
    """The result of a load."""

    stats_by_kind: dict[str, RequestStats]
    achieved_rate: float
    """Successful requests per second until the last response, without writes."""
    generator_cpu_share: float
    """The CPU time of the load generator, as a fraction of one core."""

    @property
    def errors(self) -> int:
        return sum(stats.errors for stats in self.stats_by_kind.values())


def request_headers(url: str, token: str) -> str:
    """The headers that every request has."""
    return f"Host: {urlsplit(url).netloc}\r\nAuthorization: Bearer {token}\r\n"


def post_request(path: str, headers: str, body: object) -> bytes:
    """A request with a JSON body."""
    content = json.dumps(body).encode()
    kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    return f"POST {path} HTTP/1.1\r\n{headers}{kind}\r\n".encode() + content


async def apply_load(
    url: str, token: str, queries: Sequence[str], load: Load, on_warm: Callable[[], None] = lambda: None
) -> LoadResult:
    """Apply a load to a service. `on_warm` is called after the warm-up."""
    await _run_phase(url, token, queries, load, load.warmup_seconds, "warm")
    on_warm()
    return await _run_phase(url, token, queries, load, load.seconds, "load")


async def _run_phase(
    url: str, token: str, queries: Sequence[str], load: Load, seconds: float, name: str
) -> LoadResult:
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or 80)
    headers = request_headers(url, token)
    stats_by_kind = {kind: RequestStats() for kind in ("search", "context", "write")}
    readers, writer = RequestQueue(address, stats_by_kind), RequestQueue(address, stats_by_kind)
    await readers.connect(CONNECTION_COUNT)
    await writer.connect(1)
    # Built with times relative to 0 and shifted later, because building them takes a while.
    reads = load.read_requests(queries, headers, 0.0, seconds)
    writes = load.write_requests(queries, headers, 0.0, seconds, name)
    cpu = time.process_time()
    started = time.perf_counter()
    await asyncio.gather(
        readers.run([Request(read.kind, started + read.due, read.content) for read in reads]),
        writer.run([Request(write.kind, started + write.due, write.content) for write in writes]),
    )
    duration = max(readers.last_response - started, seconds)
    successful = sum(len(stats_by_kind[kind].milliseconds) for kind in ("search", "context"))
    cpu_share = (time.process_time() - cpu) / duration if duration else 0.0
    return LoadResult(stats_by_kind, successful / duration if duration else 0.0, cpu_share)


@contextlib.contextmanager
def run_service(path: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `sennit serve` over a database. Yields its URL and its process."""
    program = str(Path(sys.executable).with_name("sennit"))
    command = [program, "serve", "--db", str(path), "--port", "0", "--json", "--quiet", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["url"], server
        finally:
            server.terminate()


def cpu_seconds(process: int) -> float:
    """The CPU seconds of a process and its children so far. Linux only."""
    folder = Path("/proc") / str(process)
    values = (folder / "stat").read_text().rpartition(")")[2].split()
    own = (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
    children = (folder / "task" / str(process) / "children").read_text().split()
    return own + sum(cpu_seconds(int(child)) for child in children)


def build(path: Path, texts: Sequence[str]) -> str:
    """Build a database of passages. Returns a token for it."""
    with sennit.open(path) as db:
        for at in range(0, len(texts), WRITE_BATCH_SIZE):
            db.add(
                [
                    Record(id=f"p{n}", text=text)
                    for n, text in enumerate(texts[at : at + WRITE_BATCH_SIZE], at)
                ]
            )
        db.admin.optimise()
        return db.admin.tokens.issue("load", OWNER, write=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rate", type=float, default=Load.rate, help="requests per second")
    parser.add_argument("--seconds", type=float, default=Load.seconds)
    parser.add_argument(
        "--warmup", type=float, default=Load.warmup_seconds, help="seconds of load before the measurement"
    )
    parser.add_argument("--size", type=int, default=10_000, help="passages in the database")
    parser.add_argument(
        "--writes",
        type=float,
        default=Load.writes_per_second,
        help=f"writes per second, of {RECORDS_PER_WRITE} records each",
    )
    parser.add_argument("--workers", type=int, default=1, help="worker processes of the service")
    options = parser.parse_args()
    load = Load(
        rate=options.rate,
        seconds=options.seconds,
        writes_per_second=options.writes,
        warmup_seconds=options.warmup,
    )
    corpus = corpora.load_corpus(options.size, QUERY_COUNT)
    server_cpu = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        token = build(path, corpus.texts)
        with run_service(path, "--workers", str(options.workers)) as (url, server):

            def on_warm() -> None:
                nonlocal server_cpu
                server_cpu = cpu_seconds(server.pid)

            result = asyncio.run(apply_load(url, token, corpus.queries, load, on_warm))
            server_cpu = cpu_seconds(server.pid) - server_cpu
    requests = sum(stats.statuses.total() for stats in result.stats_by_kind.values())
    writes = len(result.stats_by_kind["write"].milliseconds)
    print(
        f"{load.rate:g} requests/s for {load.seconds:g} s over {len(corpus.texts):,} passages, "
        f"{options.workers} worker(s), {load.writes_per_second * RECORDS_PER_WRITE:g} records/s written"
    )
    print(
        f"achieved {result.achieved_rate:.1f} requests/s, {writes * RECORDS_PER_WRITE:,} records written, "
        f"{server_cpu / max(requests, 1) * 1000:.1f} ms of server CPU per request, "
        f"{result.generator_cpu_share:.0%} of a core for the load generator"
    )
    for name, stats in result.stats_by_kind.items():
        print(stats.format(name))
    return 0 if server.returncode == 0 and not result.errors else 1


if __name__ == "__main__":
    sys.exit(main())
