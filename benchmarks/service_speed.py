"""What the HTTP service costs beside the search itself, and how many requests per second it answers.

    python -m benchmarks.service_speed [--size 10000] [--searches 2000] [--seconds 10] [--workers 2] [--connections 8]

First the same searches one after another, in turn in this process and over one connection to a service with one worker.
Then a closed loop: each connection sends its next search when the last one is answered, for a number of seconds, to a
service with several workers. Nothing is written meanwhile. The load generator runs on the same cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import numpy as np

import sennit
from benchmarks import corpus as corpora
from benchmarks.service import (
    OK_STATUS,
    QUERY_COUNT,
    Connection,
    build,
    cpu_seconds,
    post_request,
    request_headers,
    run_service,
)

WARMUP_SEARCHES: Final = 200


def compare_with_search(path: Path, token: str, queries: Sequence[str], count: int) -> tuple[float, float]:
    """The median milliseconds of a search in this process and over HTTP, measured in turn."""
    in_process: list[float] = []
    over_http: list[float] = []
    with sennit.open(path) as db, run_service(path) as (url, _):
        client = HTTPConnection(urlsplit(url).netloc)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for number in range(count + WARMUP_SEARCHES):
            query = queries[number % len(queries)]
            started = time.perf_counter()
            db.search(query)
            searched = time.perf_counter()
            client.request("POST", "/v1/search", json.dumps({"query": query}), headers)
            response = client.getresponse()
            response.read()
            answered = time.perf_counter()
            assert response.status == 200, response.status
            if number >= WARMUP_SEARCHES:
                in_process.append((searched - started) * 1000)
                over_http.append((answered - searched) * 1000)
        client.close()
    return float(np.median(in_process)), float(np.median(over_http))


class ClosedLoop:
    """Connections that each send the next request when the last one is answered."""

    def __init__(self, requests: Sequence[bytes], end: float) -> None:
        self.statuses: Counter[str] = Counter()
        self.milliseconds: list[float] = []
        self._requests = requests
        self._end = end
        self._sent = 0
        self._open = 0
        self._finished = asyncio.get_running_loop().create_future()

    async def run(self, address: tuple[str, int], connections: int) -> None:
        """Send until the end, and wait for the responses."""
        loop = asyncio.get_running_loop()
        self._open = connections
        opened = [(await loop.create_connection(Connection, *address))[1] for _ in range(connections)]
        for connection in opened:
            self._send(connection)
        await self._finished
        for connection in opened:
            connection.close()

    def _send(self, connection: Connection) -> None:
        started = time.perf_counter()
        if started >= self._end or not connection.open:
            self._open -= 1
            if not self._open:
                self._finished.set_result(None)
            return
        content = self._requests[self._sent % len(self._requests)]
        self._sent += 1

        def on_response(status: str) -> None:
            self.statuses[status] += 1
            self.milliseconds.append((time.perf_counter() - started) * 1000)
            self._send(connection)

        connection.send(content, on_response)


async def run_closed_loop(
    url: str, token: str, queries: Sequence[str], seconds: float, connections: int
) -> ClosedLoop:
    """Searches for some seconds, as many as the service answers."""
    parts = urlsplit(url)
    headers = request_headers(url, token)
    requests = [post_request("/v1/search", headers, {"query": query}) for query in queries]
    loop = ClosedLoop(requests, time.perf_counter() + seconds)
    await loop.run((parts.hostname or "", parts.port or 80), connections)
    return loop


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--size", type=int, default=10_000, help="passages in the database")
    parser.add_argument("--searches", type=int, default=2000, help="sequential searches")
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of the closed loop")
    parser.add_argument("--workers", type=int, default=2, help="worker processes in the closed loop")
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    corpus = corpora.load_corpus(options.size, QUERY_COUNT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "db"
        token = build(path, corpus.texts)
        search, request = compare_with_search(path, token, corpus.queries, options.searches)
        print(f"sequential: search {search:.2f} ms, over HTTP {request:.2f} ms, ratio {request / search:.2f}")
        with run_service(path, "--workers", str(options.workers)) as (url, server):
            arguments = (url, token, corpus.queries)
            asyncio.run(run_closed_loop(*arguments, options.seconds / 4, options.connections))
            server_cpu, own_cpu = cpu_seconds(server.pid), time.process_time()
            started = time.perf_counter()
            loop = asyncio.run(run_closed_loop(*arguments, options.seconds, options.connections))
            duration = time.perf_counter() - started
            server_cpu, own_cpu = cpu_seconds(server.pid) - server_cpu, time.process_time() - own_cpu
    total = loop.statuses.total()
    print(
        f"closed loop: {total / duration:,.0f} requests/s, {options.workers} worker(s), "
        f"{options.connections} connections, p50 {np.median(loop.milliseconds):.1f} ms, "
        f"{server_cpu / total * 1000:.2f} ms of server CPU and {own_cpu / total * 1000:.2f} ms of client CPU per request"
    )
    failed = total - loop.statuses[OK_STATUS]
    if failed:
        print(f"{failed} requests failed: {dict(loop.statuses)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
