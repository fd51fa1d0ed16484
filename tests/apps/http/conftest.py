"""A database with records of several sensitivities and two tenants, tokens for it, and the service over it."""

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
BASE = "http://127.0.0.1"
WAIT = 60.0

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
class Place:
    """A database and the tokens for it."""

    path: Path
    tokens: dict[str, str]

    def header(self, name: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[name]}"}


def make_place(folder: Path) -> Place:
    path = folder / "notes.sennit"
    with sennit.open(path) as db:
        db.add(RECORDS)
        db.add_facts([FACT])
        tokens = {
            name: db.tokens.issue(name, caller, write=write) for name, (caller, write) in CALLERS.items()
        }
    return Place(path, tokens)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


class Answer(Protocol):
    """What is looked at of an answer, whichever client got it."""

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
    """The service in this process, and the database under it."""

    client: TestClient
    place: Place
    db: Database

    def ask(
        self, method: str, path: str, who: str | None = "writer", headers: Any = None, **more: Any
    ) -> Answer:
        shown = {} if who is None else self.place.header(who)
        return self.client.request(method, path, headers={**shown, **(headers or {})}, **more)

    def get(self, path: str, who: str | None = "writer", **parameters: Any) -> Answer:
        return self.ask("GET", path, who, params=parameters)

    def post(self, path: str, body: Any, who: str | None = "writer") -> Answer:
        return self.ask("POST", path, who, json=body)

    def search(self, query: str, who: str | None = "writer", **more: Any) -> Any:
        answer = self.post("/v1/search", {"query": query, **more}, who)
        assert answer.status_code == 200, answer.text
        return answer.json()


Serve = Callable[..., AbstractContextManager[Service]]


@pytest.fixture
def serve(place: Place) -> Serve:
    """The service with options of one's own; further arguments are the database's."""

    @contextlib.contextmanager
    def serving(options: HttpOptions | None = None, **settings: Any) -> Iterator[Service]:
        with (
            sennit.open(place.path, **settings) as db,
            TestClient(make_app(db, options), base_url=BASE, raise_server_exceptions=False) as client,
        ):
            yield Service(client, place, db)

    return serving


@pytest.fixture
def service(serve: Serve) -> Iterator[Service]:
    with serve() as service:
        yield service


def error_of(answer: Answer, status: int, code: str) -> str:
    """The message of an error, which has the one form that errors have."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "request_id"}
    assert body["error"]["code"] == code
    assert body["error"]["request_id"] == answer.headers["x-request-id"]
    message: str = body["error"]["message"]
    assert "Traceback" not in message
    return message


@dataclass
class Running:
    """The service as a process of its own."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def lines(self) -> list[dict[str, Any]]:
        """What it has logged so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT)


@contextlib.contextmanager
def running(place: Place, *options: str, env: dict[str, str] | None = None) -> Iterator[Running]:
    """`sennit serve` on a free port."""
    command = [PROGRAM, "serve", "--port", "0", "--json", "--db", str(place.path), *options]
    number, name = tempfile.mkstemp(dir=place.path.parent, suffix=".log")
    log = Path(name)
    with (
        os.fdopen(number, "w") as errors,
        subprocess.Popen(
            command,
            env={**os.environ, **(env or {})},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=place.path.parent,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first, log.read_text()
            yield Running(json.loads(first)["url"], process, log)
        finally:
            process.kill()


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.01)
