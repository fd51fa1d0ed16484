"""A sample database with records of several sensitivities and two tenants, its tokens, and the service over it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
from starlette.testclient import TestClient

import sennit
from sennit import Caller, Database, Fact, Record
from sennit.apps.http.app import HttpOptions, make_app

PROGRAM = str(Path(sys.executable).with_name("sennit"))
BASE_URL = "http://127.0.0.1"
TIMEOUT_SECONDS = 60.0

RECORDS = [
    Record(
        id="harvest",
        text="Report of the harvest: the vineyard gave more grapes than last year.",
        title="Harvest report",
        collection="artifacts",
        kind="report",
        url="https://example.org/harvest",
        metadata={"artifact_type": "report"},
    ),
    Record(id="diary", text="The vineyard is secretly for sale.", sensitivity="private", scope="me"),
    Record(
        id="said/1",
        text="I told Priya we can do March for vacation",
        collection="history",
        parent="s1",
        position=0,
        timestamp=datetime(2026, 3, 3, 18, tzinfo=UTC),
        metadata={"session": "s1", "speaker": "Rajesh", "entities": ["Priya"]},
    ),
    Record(id="harvest", text="The vineyard of the other company.", tenant="other"),
    Record(id="only-theirs", text="A vineyard that only the others know.", tenant="other"),
]

FACT = Fact(
    subject="Rajesh",
    relation="planning",
    object="Priya",
    text="planning vacation to Goa in March",
    weight=2.0,
)

CALLERS = {
    "reader": (Caller(name="reader"), False),
    "writer": (Caller(name="writer"), True),
    "owner": (Caller(everything=True, name="owner"), True),
    "other": (Caller(tenant="other", name="other"), True),
}


@dataclass(frozen=True)
class SampleDatabase:
    """The path of a database, and its tokens by name."""

    path: Path
    tokens: dict[str, str]

    def auth_header(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[name]}"}


def make_sample(folder: Path) -> SampleDatabase:
    path = folder / "notes.sennit"
    with sennit.open(path) as db:
        db.add(RECORDS)
        db.add_facts([FACT])
        tokens = {
            name: db.admin.tokens.issue(name, caller, write=write)
            for name, (caller, write) in CALLERS.items()
        }
    return SampleDatabase(path, tokens)


@pytest.fixture
def sample(tmp_path: Path) -> SampleDatabase:
    return make_sample(tmp_path)


class HttpResponse(Protocol):
    """The part of a response that the tests use, common to all clients."""

    @property
    def status_code(self) -> int: ...
    @property
    def text(self) -> str: ...
    @property
    def content(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def json(self) -> Any: ...


@dataclass
class Service:
    """The service in this process, and its database."""

    client: TestClient
    sample: SampleDatabase
    db: Database

    def request(
        self, method: str, path: str, who: str | None = "writer", headers: Any = None, **more: Any
    ) -> HttpResponse:
        shown = {} if who is None else self.sample.auth_header(who)
        return self.client.request(method, path, headers={**shown, **(headers or {})}, **more)

    def get(self, path: str, who: str | None = "writer", **parameters: Any) -> HttpResponse:
        return self.request("GET", path, who, params=parameters or None)

    def delete(self, path: str, who: str | None = "writer") -> HttpResponse:
        return self.request("DELETE", path, who)

    def post(self, path: str, body: Any, who: str | None = "writer") -> HttpResponse:
        return self.request("POST", path, who, json=body)

    def search(self, query: str, who: str | None = "writer", **more: Any) -> Any:
        response = self.post("/v1/search", {"query": query, **more}, who)
        assert response.status_code == 200, response.text
        return response.json()


StartService = Callable[..., AbstractContextManager[Service]]


@pytest.fixture
def serve(sample: SampleDatabase) -> StartService:
    """Starts the service with given options. Further arguments go to the database."""

    @contextlib.contextmanager
    def serving(options: HttpOptions | None = None, **settings: Any) -> Iterator[Service]:
        with (
            sennit.open(sample.path, **settings) as db,
            TestClient(make_app(db, options), base_url=BASE_URL, raise_server_exceptions=False) as client,
        ):
            yield Service(client, sample, db)

    return serving


@pytest.fixture
def service(serve: StartService) -> Iterator[Service]:
    with serve() as service:
        yield service


def assert_error(response: HttpResponse, status: int, code: str) -> str:
    """Check the error format, and return the message."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "request_id"}
    assert body["error"]["code"] == code
    assert body["error"]["request_id"] == response.headers["x-request-id"]
    message: str = body["error"]["message"]
    assert "Traceback" not in message
    return message


@dataclass
class RunningServer:
    """The service as a process."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """The log so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_SECONDS)


@contextlib.contextmanager
def run_server(
    sample: SampleDatabase, *options: str, env: dict[str, str] | None = None
) -> Iterator[RunningServer]:
    """Run `sennit serve` on a free port."""
    command = [PROGRAM, "serve", "--port", "0", "--json", "--db", str(sample.path), *options]
    number, name = tempfile.mkstemp(dir=sample.path.parent, suffix=".log")
    log = Path(name)
    with (
        os.fdopen(number, "w") as errors,
        subprocess.Popen(
            command,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=sample.path.parent,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first, log.read_text()
            yield RunningServer(json.loads(first)["url"], process, log)
        finally:
            process.kill()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds. Fails after a timeout."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not holds():
        assert time.monotonic() < end, f"timed out waiting for {what}"
        time.sleep(0.01)
