"""How often a search and a write wait for the server, counted on the wire."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from scripts.servers.postgres import PostgresServer

import sennit
from sennit import Record
from sennit.settings import load_settings

pytestmark = pytest.mark.servers

QUERY, SYNC = b"Q", b"S"
"""The messages of a client after which it may wait for an answer; everything else goes with the next of them."""


class CountingProxy:
    """Forwards connections to a server, and notes what a client sends that the server answers at once."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.noted: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for source, target, read in ((client, server, self._note), (server, client, None)):
                    threading.Thread(target=self._forward, args=(source, target, read), daemon=True).start()

    def _forward(
        self, source: socket.socket, target: socket.socket, note: Callable[[bytearray], None] | None
    ) -> None:
        waiting = bytearray()
        first = True
        with suppress(OSError):
            while data := source.recv(65536):
                if note is not None:
                    waiting += data
                    if first:
                        # The first message has a length and no type.
                        del waiting[: int.from_bytes(waiting[:4], "big")]
                        first = False
                    note(waiting)
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _note(self, waiting: bytearray) -> None:
        while len(waiting) >= 5 and len(waiting) > (size := int.from_bytes(waiting[1:5], "big")):
            kind, body = bytes(waiting[:1]), bytes(waiting[5 : size + 1])
            if kind == QUERY:
                self.noted.append(body.rstrip(b"\0").decode().strip())
            elif kind == SYNC:
                self.noted.append("sync")
            del waiting[: size + 1]

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def proxy(server: PostgresServer) -> Iterator[CountingProxy]:
    with closing(CountingProxy(server.port)) as running:
        yield running


@pytest.fixture
def db(
    proxy: CountingProxy, server: PostgresServer, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[sennit.Database]:
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path))
    # SSL and GSS would be asked for first, in messages of another form.
    address = f"{dsn.replace(f':{server.port}/', f':{proxy.port}/')}?sslmode=disable&gssencmode=disable"
    # Without a thread in the background, whose reads would be counted too.
    settings = load_settings(overrides={"privacy.open": True})
    with sennit.Database(address, settings, background=False) as opened:
        opened.add([Record(id=f"r{number}", text=f"harbour number {number}") for number in range(40)])
        for _ in range(3):
            assert opened.search("harbour")
        yield opened


def waits(proxy: CountingProxy, work: Callable[[], object]) -> list[str]:
    """What was sent during some work that waits for an answer. Nobody waits for the end of a read."""
    proxy.noted.clear()
    work()
    return [sent for sent in list(proxy.noted) if sent != "COMMIT"]


def test_a_search_waits_once_while_nobody_writes(db: sennit.Database, proxy: CountingProxy) -> None:
    assert waits(proxy, lambda: db.search("harbour number 7")) == ["sync"]
    assert waits(proxy, lambda: db.search("harbour number 9", recipe="keyword")) == ["sync"]


def test_a_search_sees_the_write_that_it_did_not_expect(
    db: sennit.Database, proxy: CountingProxy, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "other"))
    with sennit.open(dsn, privacy__open=True) as other:
        for number in range(3):
            other.add([Record(id=f"new{number}", text=f"lighthouse {number}")])
            assert f"new{number}" in [hit.id for hit in db.search("lighthouse", limit=10)]
            other.remove([f"new{number}"])
            assert not db.search("lighthouse", recipe="keyword").hits
            for _ in range(2):
                db.search("harbour")
    assert waits(proxy, lambda: db.search("harbour number 7")) == ["sync"]


def test_adding_a_record_waits_three_times(db: sennit.Database, proxy: CountingProxy) -> None:
    """What the models lack, the lock of the counter with the stored version, and everything else with the commit."""
    db.add([Record(id="warm", text="a first text")])
    assert waits(proxy, lambda: db.add([Record(id="new", text="another text")])) == ["sync"] * 3
    replaced = waits(proxy, lambda: db.add([Record(id="new", text="a changed text")]))
    assert replaced == ["sync"] * 4  # the old version too: its names are deleted


def test_replacing_many_records_waits_no_longer_than_one(db: sennit.Database, proxy: CountingProxy) -> None:
    many = [Record(id=f"r{number}", text=f"lighthouse number {number}") for number in range(15)]
    assert waits(proxy, lambda: db.add(many)) == ["sync"] * 4
    assert len(db.search("lighthouse", recipe="keyword", limit=20)) == 15


def test_a_write_sees_what_was_committed_while_it_waited_for_the_lock(
    db: sennit.Database, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "other"))
    waiting = threading.Thread(target=lambda: db.add([Record(id="both", text="the second version")]))
    with sennit.open(dsn, privacy__open=True) as other:
        with other.store.transaction() as transaction:
            assert not transaction.get(["both"])
            waiting.start()
            wait_for_lock(dsn)
            transaction.write([Record(id="both", text="the first version")])
        waiting.join()
        assert [record.text for record in other.records(limit=100).records if record.id == "both"] == [
            "the second version"
        ]


def wait_for_lock(dsn: str) -> None:
    """Return when a statement of another connection waits for a lock."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
            time.sleep(0.01)
