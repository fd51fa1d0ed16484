"""Two services on one Postgres, each with its own cache of indexes, as on two machines."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sennit

PROGRAM = str(Path(sys.executable).with_name("sennit"))
START_SECONDS = 60.0
QUERIES = ("river valley", "bread", "東京", "strasse")
TEXTS = (
    "the river floods the valley",
    "bread rises by yeast",
    "東京の天気",
    "Straße und Grüße",
    "a quiet valley",
)


@contextlib.contextmanager
def serve(dsn: str, cache: Path, *options: str) -> Iterator[str]:
    """A running service without tokens; yields its address."""
    process = subprocess.Popen(
        [PROGRAM, "serve", "--open", "--port", "0", *options],
        env={**os.environ, "SENNIT_DB": dsn, "SENNIT_CACHE": str(cache), "SENNIT_PRIVACY_OPEN": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        assert process.stderr is not None
        seen = ""
        for line in process.stderr:
            seen += line
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                timer.cancel()
                threading.Thread(target=process.stderr.read, daemon=True).start()
                yield found[0]
                return
        pytest.fail(f"the service did not start: {seen}")
    finally:
        timer.cancel()
        process.terminate()
        process.wait(timeout=30)


def search(url: str, query: str) -> list[tuple[str, float]]:
    answer = httpx.post(f"{url}/v1/search", json={"query": query, "limit": 5}, timeout=30)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["degraded"] == []
    return [(hit["id"], hit["score"]) for hit in found["hits"]]


def test_two_services_see_each_others_writes_and_score_as_sqlite_does(dsn: str, tmp_path: Path) -> None:
    with (
        serve(dsn, tmp_path / "one") as one,
        serve(dsn, tmp_path / "two") as two,
        sennit.open(tmp_path / "sqlite", privacy__open=True) as local,
    ):
        for number, text in enumerate(TEXTS):
            record = {"id": f"r{number}", "text": text}
            writer, reader = (one, two) if number % 2 else (two, one)
            assert httpx.post(f"{writer}/v1/records", json=record, timeout=30).json()["added"] == 1
            local.add([sennit.Record.from_dict(record)])
            assert f"r{number}" in [name for name, _ in search(reader, text)]
        for query in QUERIES:
            expected = [(hit.id, hit.score) for hit in local.search(query, limit=5)]
            assert search(one, query) == search(two, query) == expected
