"""A small run of the load generator against a real service: what it counts is what happened."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.service import Load, bear, build, serving

import sennit
from benchmarks import service

QUERIES = ["grapes of the vineyard", "when is the trip", "the harvest"]


def test_every_request_is_counted_by_what_came_of_it(tmp_path: Path) -> None:
    path = tmp_path / "db"
    token = build(path, [f"passage {number} about the harvest" for number in range(50)])
    load = Load(rate=40, seconds=1.0, writes=4, warm=0.5)
    with serving(path, "--workers", "2") as (url, server):
        outcome = asyncio.run(bear(url, token, QUERIES, load))
        refused = asyncio.run(bear(url, "sennit_wrong", QUERIES, load))
    assert server.returncode == 0
    assert outcome.errors == 0
    counts = {kind: tally.statuses.total() for kind, tally in outcome.tallies.items()}
    assert counts == {"search": 24, "context": 16, "write": 4}
    assert all(len(tally.times) == counts[kind] for kind, tally in outcome.tallies.items())
    assert refused.errors == 44
    assert {status for tally in refused.tallies.values() for status in tally.statuses} == {"401"}
    with sennit.open(path) as db:
        # Those of the first half second, which are not counted, and of the second.
        assert len(db) == 50 + 20 + 40


def test_what_is_never_answered_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PATIENCE", 0.2)
    monkeypatch.setattr(service, "CONNECTIONS", 3)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    async def asked() -> service.Outcome:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            load = Load(rate=20, seconds=0.5, writes=4, warm=0.0)
            return await bear(f"http://{host}:{port}", "sennit_any", QUERIES, load)

    outcome = asyncio.run(asked())
    assert outcome.errors == 12
    statuses = sum((tally.statuses for tally in outcome.tallies.values()), Counter())
    # A connection each for three requests and a write; there is none for the rest.
    assert statuses["unanswered"] == 8
