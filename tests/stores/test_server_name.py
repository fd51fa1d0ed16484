"""The name that a database has on servers: it stays when the database moves, and a copy gets another."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest

import sennit
from sennit.stores.open import copy_store, open_store
from sennit.stores.sql.server_name import name_on_servers


def name_of(target: Path | str, first: str = "0f") -> str:
    """The name of a database, as the composition root asks for it."""
    store = open_store(target)
    try:
        return name_on_servers(store.pool, lambda: first)
    finally:
        store.close()


def applied_of(target: Path | str) -> int:
    store = open_store(target)
    try:
        with store.snapshot() as snapshot:
            return snapshot.applied("x")
    finally:
        store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database with a name."""
    folder = tmp_path / "db"
    assert name_of(folder) == "0f"
    store = open_store(folder)
    store.set_applied("x", 1)
    store.close()
    return folder


def test_a_database_that_was_moved_keeps_its_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    moved = folder.rename(tmp_path / "elsewhere" / "other")
    assert name_of(moved, "1f") == "0f"
    assert applied_of(moved) == 1
    assert name_of(moved.rename(folder), "1f") == "0f"


def test_a_database_keeps_its_name_although_a_new_one_took_its_place(folder: Path, tmp_path: Path) -> None:
    moved = folder.rename(tmp_path / "other")
    assert name_of(folder, "1f") == "1f"
    assert name_of(moved) == "0f"


def test_a_copy_gets_a_name_of_its_own_and_the_original_keeps_its_name(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    name = name_of(copy)
    assert name != "0f"
    assert name_of(copy) == name
    assert name_of(folder) == "0f"
    # The indexes of the original are not those of the copy.
    assert (applied_of(copy), applied_of(folder)) == (0, 1)


def test_a_copy_on_another_machine_gets_a_name_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "node", lambda: "another")
    # A container in which the folder is mounted as before.
    assert name_of(folder) == "0f"
    assert name_of(folder.rename(tmp_path / "other")) != "0f"


def test_however_a_folder_is_named_its_database_has_one_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    assert name_of("db", "1f") == name_of(tmp_path / "link", "1f") == name_of(folder, "1f") == "0f"


def test_a_migration_leaves_the_name_with_the_source(folder: Path, tmp_path: Path) -> None:
    with sennit.open(folder, embedding__provider="none") as db:
        db.add([sennit.Record(id="a", text="river")])
    copy_store(folder, tmp_path / "target")
    assert name_of(tmp_path / "target", "1f") == "1f"
    assert name_of(folder) == "0f"
