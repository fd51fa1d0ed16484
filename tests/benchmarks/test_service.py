"""A small run of the load generator against a real service."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.service import Load, apply_load, build, run_service

import sennit
from benchmarks import service

QUERIES = ["grapes of the vineyard", "when is the trip", "the harvest"]


def test_every_request_is_counted_by_its_status(tmp_path: Path) -> None:
    path = tmp_path / "db"
    token = build(path, [f"passage {number} about the harvest" for number in range(50)])
    load = Load(rate=40, seconds=1.0, writes_per_second=4, warmup_seconds=0.5)
    with run_service(path, "--workers", "2") as (url, server):
        result = asyncio.run(apply_load(url, token, QUERIES, load))
        refused = asyncio.run(apply_load(url, "sennit_wrong", QUERIES, load))
    assert server.returncode == 0
    assert result.errors == 0
    counts = {kind: stats.statuses.total() for kind, stats in result.stats_by_kind.items()}
    assert counts == {"search": 24, "context": 16, "write": 4}
    assert all(len(stats.milliseconds) == counts[kind] for kind, stats in result.stats_by_kind.items())
    assert refused.errors == 44
    assert {status for stats in refused.stats_by_kind.values() for status in stats.statuses} == {"401"}
    with sennit.open(path) as db:
        # The records of the warm-up, which are not counted, and of the measurement.
        assert len(db) == 50 + 20 + 40


def test_request_without_a_response_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "DRAIN_SECONDS", 0.2)
    monkeypatch.setattr(service, "CONNECTION_COUNT", 3)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    async def run() -> service.LoadResult:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            load = Load(rate=20, seconds=0.5, writes_per_second=4, warmup_seconds=0.0)
            return await apply_load(f"http://{host}:{port}", "sennit_any", QUERIES, load)

    result = asyncio.run(run())
    assert result.errors == 12
    statuses = sum((stats.statuses for stats in result.stats_by_kind.values()), Counter())
    # Three requests and one write get a connection, which the server closes. None is left for the others.
    assert statuses["unanswered"] == 8
