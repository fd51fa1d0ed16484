"""Real servers, and a user's folder in which the command line and the HTTP service work with them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from scripts.servers.chroma import ChromaProcess
from scripts.servers.common import ServerUnavailable
from scripts.servers.falkordb import FalkorProcess
from scripts.servers.postgres import PostgresServer
from scripts.servers.process import ServerT, running
from scripts.servers.qdrant import QdrantCluster

from embedding.server import ModelServer, Request, Response, as_json

PROGRAM = str(Path(sys.executable).with_name("sennit"))
TIMEOUT_SECONDS = 240.0
"""How long a server may take to come back on a busy machine before the test fails."""

DEADLINE_SECONDS = 120
"""How long a search may take. A server that is down refuses connections at once, so no search waits for this long."""


def _started(make: Callable[[], ServerT], leave_out: Callable[[str], NoReturn]) -> Iterator[ServerT]:
    try:
        with running(make()) as server:
            yield server
    except ServerUnavailable as error:
        leave_out(str(error))


@pytest.fixture(scope="session")
def postgres(leave_out: Callable[[str], NoReturn]) -> Iterator[PostgresServer]:
    yield from _started(PostgresServer, leave_out)


@pytest.fixture(scope="session")
def qdrant(leave_out: Callable[[str], NoReturn]) -> Iterator[QdrantCluster]:
    yield from _started(QdrantCluster, leave_out)


@pytest.fixture(scope="session")
def falkordb(leave_out: Callable[[str], NoReturn]) -> Iterator[FalkorProcess]:
    yield from _started(FalkorProcess, leave_out)


@pytest.fixture(scope="session")
def chroma(leave_out: Callable[[str], NoReturn]) -> Iterator[ChromaProcess]:
    yield from _started(ChromaProcess, leave_out)


@pytest.fixture
def dsn(postgres: PostgresServer, request: pytest.FixtureRequest) -> Iterator[str]:
    """The connection string of a new database."""
    import psycopg

    name = f"journey_{abs(hash(request.node.nodeid))}"
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield postgres.dsn(name)
    with psycopg.connect(postgres.dsn(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class RankedModel(ModelServer):
    """A model on loopback whose vectors are ever further from that of any other text, in the order of a list."""

    def __init__(self, nearest_first: Sequence[str]) -> None:
        self._places = {text: place for place, text in enumerate(nearest_first)}
        super().__init__()

    def respond(self, request: Request) -> Response:
        vectors = []
        for text in request.texts:
            vector = [0.0] * (len(self._places) + 1)
            place = self._places.get(text)
            vector[0] = 1.0 if place is None else 1.0 - 0.1 * place
            if place is not None:
                vector[place + 1] = 1.0 - vector[0] + 0.01
            vectors.append(vector)
        return as_json({"model": request.body["model"], "embeddings": vectors})


class User:
    """Somebody with a new folder, a sennit.toml of their own, and the command line."""

    def __init__(self, folder: Path, target: str = ".sennit") -> None:
        self.folder = folder
        self.target = target
        folder.mkdir(exist_ok=True)

    def configure(self, text: str) -> None:
        """Write a sennit.toml, in which nothing but a server that is down makes an answer incomplete."""
        patience = f"[search]\ndeadline = {DEADLINE_SECONDS}\n"
        (self.folder / "sennit.toml").write_text(textwrap.dedent(text) + patience)
        self.run("config", "trust", ".")

    def try_to(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run a command, whatever comes of it."""
        done = subprocess.run(
            [PROGRAM, *arguments, "--db", self.target],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            **more,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def run(self, *arguments: str, **more: Any) -> str:
        done = self.try_to(*arguments, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def json(self, *arguments: str, **more: Any) -> Any:
        return json.loads(self.run(*arguments, "--json", **more))

    @contextlib.contextmanager
    def serving(self) -> Iterator[Service]:
        """The HTTP service of this folder's database, with a token that may do everything."""
        token = self.json("tokens", "add", "assistant", "--everything", "--write")["token"]
        command = [PROGRAM, "serve", "--port", "0", "--json", "--db", self.target]
        log = (self.folder / "serve.log").open("w")
        with (
            log,
            subprocess.Popen(
                command, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True
            ) as process,
        ):
            try:
                assert process.stdout is not None
                first = process.stdout.readline()
                assert first, (self.folder / "serve.log").read_text()
                headers = {"Authorization": f"Bearer {token}"}
                url, timeout = json.loads(first)["url"], 2 * DEADLINE_SECONDS
                with httpx.Client(base_url=url, headers=headers, timeout=timeout) as client:
                    yield Service(client)
            finally:
                process.terminate()
                # Shown with a test that fails.
                print((self.folder / "serve.log").read_text())


class Service:
    """A running service."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def post(self, path: str, body: Any) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def search(self, query: str, **more: Any) -> Any:
        return self.post("/v1/search", {"query": query, **more})

    def degraded(self, query: str, **more: Any) -> dict[str, str]:
        """The sources that a search lacks, and why."""
        return {one["source"]: one["reason"] for one in self.search(query, **more)["degraded"]}

    def ids(self) -> set[str]:
        """The ids of all records."""
        answer = self.client.get("/v1/records", params={"limit": 1000})
        assert answer.status_code == 200, answer.text
        return {one["id"] for one in answer.json()["records"]}

    def is_complete(self) -> bool:
        """Whether every record has its vector, and each index on a server every change.

        Vectors are first: one that is computed late is a new change, so an index may have every change before it.
        """
        before = self._ready()
        if before["vectors"] != "complete" or any(one["state"] == "building" for one in before["models"]):
            return False
        return not any(self._ready()["behind"].values())

    def _ready(self) -> Any:
        answer = self.client.get("/readyz")
        assert answer.status_code == 200, answer.text
        return answer.json()


def wait_until(holds: Callable[[], object], what: str) -> None:
    """Wait until a condition holds. Fails after a timeout."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not holds():
        assert time.monotonic() < end, f"timed out waiting for {what}"
        time.sleep(0.1)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """A user with nothing but an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "cache"))
    return User(tmp_path / "folder")
