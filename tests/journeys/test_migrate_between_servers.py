"""`sennit migrate` as a user runs it: a folder to Postgres, to Qdrant, and back with Chroma, killed in the middle of each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import chromadb
import psycopg
import pytest
from qdrant_client import QdrantClient
from scripts.servers.chroma import ChromaProcess
from scripts.servers.qdrant import QdrantCluster

from journeys.conftest import DEADLINE_SECONDS, PROGRAM, User, wait_until
from journeys.relay import Relay, relay

pytestmark = pytest.mark.servers

COUNT = 3000
LINES = [
    {
        "id": f"note-{n}",
        "text": f"the river {n % 97} rose by {n} metres",
        "metadata": {"year": 1900 + n % 100},
    }
    for n in range(COUNT)
]
POSTGRES_BYTES, QDRANT_BYTES, CHROMA_BYTES = 1_500_000, 10_000_000, 3_000_000
"""What a relay passes on: more than a batch of 1,000 records, and about half of what is sent in all."""


def kill_in_the_middle(user: User, relay: Relay, *arguments: str) -> None:
    """Start a command, and kill it when the relay before its server has stopped it."""
    with subprocess.Popen(
        [PROGRAM, *arguments, "--db", user.target],
        cwd=user.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until(lambda: relay.has_stopped.is_set() or process.poll() is not None, "the relay to stop it")
        assert process.poll() is None, "it ended before it could be killed"
        process.kill()


def bind_qdrant(user: User, url: str) -> None:
    user.configure(
        f"""
        [roles]
        keyword = "qdrant"
        vector = "qdrant"
        [qdrant]
        urls = ["{url}"]
        timeout_seconds = {DEADLINE_SECONDS}
        """
    )


def bind_chroma(user: User, url: str) -> None:
    user.configure(
        f"""
        [roles]
        vector = "chroma"
        [chroma]
        url = "{url}"
        timeout_seconds = {DEADLINE_SECONDS}
        """
    )


def test_a_database_moves_between_servers_and_back_although_each_step_is_killed(
    user: User, dsn: str, qdrant: QdrantCluster, chroma: ChromaProcess, tmp_path: Path
) -> None:
    user.run("import", input="".join(json.dumps(line) + "\n" for line in LINES))
    expected = user.run("export")

    # The records to Postgres.
    with relay(dsn, POSTGRES_BYTES) as stopping:
        kill_in_the_middle(user, stopping, "migrate", stopping.url)
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM sennit.records").fetchone() == (True,)
        assert connection.execute(f"SELECT count(*) < {COUNT} FROM sennit.vectors").fetchone() == (True,)
    unfinished = User(user.folder, dsn).try_to("status")
    assert (unfinished.returncode, "not complete" in unfinished.stderr) == (4, True)
    report = user.json("migrate", dsn)
    copied = {one["table"]: one for one in report["tables"]}
    assert copied["records"]["rows"] == report["records"] == COUNT
    assert copied["records"]["copied"] < COUNT, "it went on where it was killed"
    assert all(one["checksum"] for one in copied.values())
    user.target = dsn
    assert user.run("export") == expected

    # The indexes to Qdrant.
    client = QdrantClient(url=qdrant.urls[0], check_compatibility=False, timeout=DEADLINE_SECONDS)
    known = {one.name for one in client.get_collections().collections}

    def points() -> int:
        new = [one.name for one in client.get_collections().collections if one.name not in known]
        return sum(client.count(name).count for name in new)

    with relay(qdrant.urls[0], QDRANT_BYTES) as stopping:
        bind_qdrant(user, stopping.url)
        kill_in_the_middle(user, stopping, "migrate")
    assert 1000 <= points() < COUNT
    bind_qdrant(user, qdrant.urls[0])
    user.run("migrate")
    assert points() == COUNT + 1, "every record once, and the marker"
    assert not any(user.json("status")["behind"].values())
    found = user.json("search", "river 42 metres", "--limit", "3")
    assert (len(found["hits"]), found["degraded"]) == (3, [])

    # Back to a folder, with the vectors on Chroma.
    collections = chromadb.HttpClient(host="127.0.0.1", port=chroma.port)
    before = {one.name for one in collections.list_collections()}

    def documents() -> int:
        return sum(one.count() for one in collections.list_collections() if one.name not in before)

    back = str(tmp_path / "back.sennit")
    with relay(chroma.url, CHROMA_BYTES) as stopping:
        bind_chroma(user, stopping.url)
        kill_in_the_middle(user, stopping, "migrate", back)
    assert 1000 <= documents() < COUNT
    bind_chroma(user, chroma.url)
    report = user.json("migrate", back)
    verified = {one["table"]: one["checksum"] for one in report["tables"]}
    assert verified["records"] == copied["records"]["checksum"]
    assert documents() == COUNT
    user.target = back
    assert user.run("export") == expected
    assert not any(user.json("status")["behind"].values())
    found = user.json("search", "river 42 metres", "--limit", "3")
    assert (len(found["hits"]), found["degraded"]) == (3, [])
