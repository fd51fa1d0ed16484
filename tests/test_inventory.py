"""What a database holds, as a caller may see it; removing by filter, and forgetting a session."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Caller, Fact, Record, Turn
from sennit.engine import Database
from sennit.errors import InvalidInput, NotFound

STRANGER = Caller(clearance="normal", scopes=frozenset({"public"}), name="stranger")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nA note about {name}.\n")
    return folder


@pytest.fixture
def db(tmp_path: Path, folder: Path) -> Iterator[Database]:
    with sennit.open(tmp_path / "db") as db:
        db.index(folder)
        db.add_turns([Turn(text=f"turn {n}", session="call") for n in range(3)])
        db.add_turns([Turn(text="another", session="other")])
        db.add([Record(id="secret", text="hidden", collection="vault", sensitivity="private")])
        yield db


def test_status_counts_what_the_caller_may_see(db: Database) -> None:
    state = db.status(caller=STRANGER)
    assert state.records == 7
    assert {one.name: one.records for one in state.collections} == {"docs": 3, "history": 4}
    assert state.sessions == 2
    assert state.roles["records"] == "sqlite"
    owner = db.status(caller=sennit.OWNER)
    assert {one.name for one in owner.collections} == {"docs", "history", "vault"}
    assert owner.models[0].pending is None
    assert db.status().models[0].pending == 0


def test_status_is_the_same_for_a_stranger_whether_hidden_records_exist_or_not(db: Database) -> None:
    before = db.status(caller=STRANGER).to_dict()
    db.remove(["secret"])
    assert db.get("secret") is None
    assert db.status(caller=STRANGER).to_dict() == before


def test_status_lists_indexed_folders_with_age_and_changes(db: Database, folder: Path) -> None:
    (state,) = db.status(changes=True).folders
    assert (state.path, state.files, state.records) == (str(folder), 3, 3)
    assert state.indexed_at is not None
    assert datetime.now(UTC) - state.indexed_at < timedelta(minutes=10)
    assert state.changes is not None
    assert state.changes.total == 0
    (folder / "a.md").write_text("# a\n\nA note that is longer than before.\n")
    (folder / "b.md").unlink()
    (folder / "d.md").write_text("new")
    (folder / "e.md").write_text("new")
    (state,) = db.status(changes=True).folders
    assert state.changes is not None
    assert state.changes.to_dict() == {"new": 2, "changed": 1, "gone": 1}
    db.index(folder)
    (state,) = db.status(changes=True).folders
    assert state.changes is not None
    assert state.changes.total == 0


def test_status_notices_a_change_of_a_file_that_was_indexed_at_once(db: Database, folder: Path) -> None:
    file = folder / "a.md"
    status = file.stat()
    file.write_text("# a\n\nA note about z.\n")
    assert file.stat().st_size == status.st_size
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    (state,) = db.status(changes=True).folders
    assert state.changes is not None
    assert state.changes.changed == 1


def test_a_folder_without_visible_records_is_not_named(db: Database, tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as again:
        again.add([_hidden(record) for record in again.records(collections=["docs"])])
    assert [one.path for one in db.status(caller=STRANGER).folders] == []
    assert len(db.status().folders) == 1


def _hidden(record: Record) -> Record:
    return Record.from_dict({**record.to_dict(), "sensitivity": "private"})


@given(st.integers(1, 6), st.sets(st.text("abc\x1fé😀", min_size=1, max_size=4), max_size=12))
def test_pages_list_each_record_once_in_the_order_of_ids(limit: int, ids: set[str]) -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id=name, text="x") for name in ids])
        seen: list[str] = []
        after = None
        for _ in range(len(ids) + 1):
            page = db.records(limit=limit, after=after)
            assert page.total == len(ids)
            assert len(page) <= limit
            seen += [record.id for record in page]
            after = page.next
            if after is None:
                break
        assert sorted(seen) == sorted(ids)
        assert after is None


def test_records_are_listed_by_filter_and_collection(db: Database) -> None:
    assert len(db.records(collections=["history"])) == 4
    assert [record.text for record in db.records('session = "other"')] == ["another"]
    assert db.records(collections=["memory"]).total == 0
    with pytest.raises(NotFound, match=r"There is no collection 'vault'.*: docs, history"):
        db.records(collections=["vault"], caller=STRANGER)
    with pytest.raises(InvalidInput, match="limit"):
        db.records(limit=0)


def test_a_tenant_lists_only_its_own_records_and_pages_through_them() -> None:
    other = Caller(tenant="other", name="other")
    with sennit.open(":memory:") as db:
        db.add([Record(id=f"r{n}", text="x", tenant="other") for n in range(5)], caller=other)
        db.add([Record(id="mine", text="x")])
        first = db.records(limit=3, caller=other)
        assert [record.id for record in first] == ["r0", "r1", "r2"]
        assert first.next == "r2"
        rest = db.records(limit=3, after=first.next, caller=other)
        assert [record.id for record in rest] == ["r3", "r4"]
        assert rest.next is None
        assert [record.id for record in db.records()] == ["mine"]


def test_files_and_sessions_are_listed_with_their_records(db: Database, folder: Path) -> None:
    assert [(one.name, one.records) for one in db.files.paths()] == [
        (str(folder / f"{name}.md"), 1) for name in "abc"
    ]
    assert [(one.name, one.records) for one in db.memory.sessions()] == [("call", 3), ("other", 1)]


def test_removing_by_filter_removes_what_matches_and_the_caller_may_see(db: Database) -> None:
    assert db.remove(where='collection = "vault"', caller=STRANGER) == 0
    assert db.remove(where='session = "call"', caller=STRANGER) == 3
    assert [one.name for one in db.memory.sessions()] == ["other"]
    assert db.remove(where='collection = "vault"', caller=sennit.OWNER) == 1
    with pytest.raises(InvalidInput, match="filter"):
        db.remove(where=None)


def test_removing_by_filter_takes_the_chunks_of_documents_along(db: Database) -> None:
    db.add_artifacts([Record(id="report", text="A long report.\n\n" * 50, kind="report")])
    assert db.records(collections=["artifact_chunks"]).total
    db.remove(where='collection = "artifacts"')
    assert db.records(collections=["artifact_chunks"]).total == 0


def test_forgetting_a_session_forgets_facts_that_are_known_only_from_it(db: Database) -> None:
    turn = db.records('session = "call"')[0]
    other = db.records('session = "other"')[0]
    db.add_facts(
        [
            Fact(subject="Ana", relation="likes", object="tea", sources=(turn.id,)),
            Fact(subject="Ana", relation="lives in", object="Porto", sources=(turn.id, other.id)),
            Fact(subject="Ana", relation="is", object="tall"),
        ]
    )
    assert db.memory.forget("call", caller=STRANGER) == 4
    left = {record.metadata["object"] for record in db.records("exists subject")}
    assert left == {"Porto", "tall"}
    assert db.memory.forget("call") == 0
