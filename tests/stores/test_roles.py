"""`[roles]`: which server a role is bound to, through settings alone."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sennit
from sennit.errors import MissingExtra, SettingsError
from sennit.filters import EVERYTHING
from sennit.settings import load_settings
from sennit.stores import open as opening_module
from sennit.stores.buffered_index import IndexFeeder, for_every_model
from sennit.stores.contract import IndexOf, KeywordQuery
from sennit.stores.open import Opening

from .dict_server import DictKeywordServer, DictServers, DictVectorServer

NOTES = [sennit.Record(id=f"n{n}", text=f"the river rose by {n} metres") for n in range(5)]


class FakeQdrant(DictServers):
    """The two indexes of one database, bound as a server is."""

    def __init__(self, opening: Opening) -> None:
        super().__init__()
        self.opening = opening
        self.is_closed = False

    def keyword(self) -> IndexOf[KeywordQuery]:
        return for_every_model(DictKeywordServer(self), DictKeywordServer.capabilities)

    def vector(self) -> IndexOf[NDArray[np.float32]]:
        index = DictVectorServer(self)
        return IndexOf(self, index.capabilities, lambda model: None if model is None else index)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[FakeQdrant]:
    servers: list[FakeQdrant] = []

    def make(opening: Opening) -> FakeQdrant:
        servers.append(FakeQdrant(opening))
        return servers[-1]

    monkeypatch.setitem(opening_module.SERVERS, "qdrant", make)
    return servers


def test_two_roles_on_one_server_share_its_connection(tmp_path: Path, opened: list[FakeQdrant]) -> None:
    with sennit.open(tmp_path / "db", roles__keyword="qdrant", roles__vector="qdrant") as db:
        db.add(NOTES)
        db.admin.flush()
        assert len(db.search("river", limit=3)) == 3
        assert db.status().roles == {
            "records": "sqlite",
            "keyword": "qdrant",
            "vector": "qdrant",
            "graph": "local",
        }
        (server,) = opened
        assert server.round_trips == [["dict keyword", "dict vector"]]
        assert not server.is_closed
    assert server.is_closed


def test_one_role_on_a_server_and_the_other_here(tmp_path: Path, opened: list[FakeQdrant]) -> None:
    with sennit.open(tmp_path / "db", roles__vector="qdrant") as db:
        db.add(NOTES)
        db.admin.flush()
        assert len(db.search("river", limit=3)) == 3
        assert opened[0].round_trips == [["dict vector"]]


def test_doctor_status_and_traces_tell_of_the_servers(tmp_path: Path, opened: list[FakeQdrant]) -> None:
    with sennit.open(tmp_path / "db", roles__keyword="qdrant", roles__vector="qdrant") as db:
        db.add(NOTES)
        assert set(db.status().behind) == {"keyword", "vector"}
        assert db.status(caller=sennit.Caller()).behind == {}
        db.admin.flush()
        assert db.admin.behind() == {"keyword": 0, "vector": 0}
        trace = db.search("river", explain=True).trace
        assert trace is not None
        assert "'server': 'qdrant'" in str(trace.state["indexes"])
        with opened[0].outage():
            db.add([sennit.Record(id="late", text="river")])
            found = {finding.check: finding for finding in db.admin.check(quick=True)}
            assert found["servers"].level == "problem"
            assert found["vector index"].message.endswith("applies them")


def test_the_name_on_a_server_stays_and_a_copy_has_another(tmp_path: Path, opened: list[FakeQdrant]) -> None:
    for folder in ("db", "db", "copy"):
        if folder == "copy":
            shutil.copytree(tmp_path / "db", tmp_path / "copy")
        with sennit.open(tmp_path / folder, roles__vector="qdrant"):
            pass
    first, again, copy = (server.opening.database for server in opened)
    assert first == again != copy
    assert all(character in "0123456789abcdef" for character in first)


def test_a_client_that_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(opening: Opening) -> FakeQdrant:
        raise ModuleNotFoundError("No module named 'qdrant_client'", name="qdrant_client")

    monkeypatch.setitem(opening_module.SERVERS, "qdrant", make)
    with pytest.raises(MissingExtra, match=r"roles\.vector = 'qdrant'.*sennit\[qdrant\]"):
        sennit.open(tmp_path / "db", roles__vector="qdrant")
    # The folder is not left locked.
    with sennit.open(tmp_path / "db") as db:
        assert db.status().roles["vector"] == "local"


def test_records_that_are_elsewhere_than_the_settings_say_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"roles\.records is 'postgres', but .*db is a database on sqlite"
    ):
        sennit.open(tmp_path / "db", roles__records="postgres")
    assert not (tmp_path / "db").exists()


def test_a_found_file_may_not_bind_a_role_to_a_server(tmp_path: Path) -> None:
    (tmp_path / "sennit.toml").write_text('[roles]\nvector = "qdrant"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match=r"roles\.vector"):
        load_settings(start=tmp_path, env={"XDG_CONFIG_HOME": str(tmp_path / "none")})
    (tmp_path / "sennit.toml").write_text('[roles]\nvector = "local"\n', encoding="utf-8")
    assert (
        load_settings(start=tmp_path, env={"XDG_CONFIG_HOME": str(tmp_path / "none")}).roles.vector == "local"
    )


def folders(db: Path) -> set[str]:
    """The folders of the indexes of this machine, without the numbers of models."""
    return {path.name.partition("-")[0] for path in (db / "index").iterdir() if path.is_dir()}


def test_what_a_server_searches_has_no_index_on_this_machine(
    tmp_path: Path, opened: list[FakeQdrant]
) -> None:
    path = tmp_path / "db"
    with sennit.open(path) as db:
        db.add(NOTES)
        db.admin.flush()
        assert {"keyword", "vector"} <= folders(path)
    bindings: tuple[tuple[dict[str, Any], set[str]], ...] = (
        ({"roles__vector": "qdrant"}, {"keyword"}),
        ({"roles__keyword": "qdrant"}, {"id", "vector"}),
        ({"roles__keyword": "qdrant", "roles__vector": "qdrant"}, {"id"}),
        ({}, {"keyword", "vector"}),
    )
    for roles, expected in bindings:
        with sennit.open(path, **roles) as db:
            db.add([sennit.Record(id="later", text="the river fell again", kind="note")])
            db.admin.flush()
            assert folders(path) & {"keyword", "vector", "id"} == expected, roles
            assert [hit.id for hit in db.search("the river fell again", limit=1)] == ["later"]
            assert len(db.search("river", limit=9)) == 6
            assert [hit.id for hit in db.search("river", filters={"kind": "note"})] == ["later"]
            assert [record.id for record in db][:2] == ["later", "n0"]
            levels = {one.level for one in db.admin.check()}
            assert "problem" not in levels
            db.remove(["later"])
            assert len(db.search("river", limit=9)) == 5


def test_vectors_are_read_from_the_records_where_a_server_searches_them(
    tmp_path: Path, opened: list[FakeQdrant]
) -> None:
    assert not opened
    with sennit.open(tmp_path / "db") as db:
        db.add(NOTES)
        db.admin.flush()
        with db.store.snapshot() as snapshot:
            keys = snapshot.keys(EVERYTHING)
            expected = snapshot.vectors(keys)
    with sennit.open(tmp_path / "db", roles__vector="qdrant") as db, db.store.snapshot() as snapshot:
        assert np.array_equal(snapshot.vectors(keys), expected)
        assert expected.any(axis=1).all()
        assert not snapshot.vectors(np.array([10_000])).any()


def test_a_database_closes_quietly_while_its_servers_are_being_fed(
    tmp_path: Path, opened: list[FakeQdrant], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_feeding, is_closing = threading.Event(), threading.Event()
    failures: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)

    def apply(*_: object) -> None:
        is_feeding.set()
        is_closing.wait()
        raise RuntimeError("the client has been closed")

    monkeypatch.setattr(DictKeywordServer, "apply", apply)
    with sennit.open(tmp_path / "db", roles__keyword="qdrant", store__flush_at=1) as db:
        (feeder,) = (one for one in db.backend.upkeep if isinstance(one, IndexFeeder))
        monkeypatch.setattr(feeder, "cancel", is_closing.set)
        db.add(NOTES[:1])
        is_feeding.wait()
    assert opened[0].is_closed
    assert not failures
