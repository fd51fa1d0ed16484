"""The groups of a database: db.memory, db.files, db.code and db.admin, and the flat methods that lead to them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit
from sennit import Caller, Database, Fact, Record, SearchRequest, Turn
from sennit.engine.groups import CONTEXT_QUERY, AdminGroup, CodeGroup, FilesGroup, MemoryGroup
from sennit.errors import AccessDenied
from sennit.ingest import Scope
from sennit.settings import IngestSettings, Settings

CODE = "def login(name):\n    return check(name)\n\n\ndef check(name):\n    return bool(name)\n"

FLAT_METHODS = {
    *("add", "add_artifacts", "add_facts", "add_turns", "remember", "index", "remove"),
    *("get", "search", "why", "plan", "introspect", "ask", "ask_stream", "audience", "close"),
    *("find", "find_removable", "records", "collections", "count", "status", "search_many", "wait"),
    *("what_admits", "field_names", "field_values"),
}
"""The names that SPEC and the documentation give, and no others."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "auth.py").write_text(CODE)
    (folder / "harbour.txt").write_text("The ferry leaves\nat noon\n")
    return folder


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with sennit.open(tmp_path / "db") as db:
        yield db


def test_a_database_has_few_methods_and_each_group_is_made_once(db: Database) -> None:
    methods = {name for name, _ in inspect.getmembers(Database, callable) if not name.startswith("_")}
    assert methods == FLAT_METHODS
    for name, kind in (
        ("memory", MemoryGroup),
        ("files", FilesGroup),
        ("code", CodeGroup),
        ("admin", AdminGroup),
    ):
        assert type(getattr(db, name)) is kind
        assert getattr(db, name) is getattr(db, name)


@pytest.mark.parametrize(
    ("flat", "group"),
    [
        (Database.add_turns, MemoryGroup.add_turns),
        (Database.add_facts, MemoryGroup.add_facts),
        (Database.remember, MemoryGroup.remember),
        (Database.index, FilesGroup.index),
        (Database.plan, CodeGroup.plan),
        (Database.introspect, CodeGroup.introspect),
    ],
    ids=lambda method: method.__qualname__,
)
def test_a_flat_method_has_the_arguments_of_its_group(flat: object, group: object) -> None:
    assert inspect.signature(flat) == inspect.signature(group)  # type: ignore[arg-type]


# db.memory


def test_memory_stores_turns_facts_and_memories(db: Database) -> None:
    assert (
        db.memory.add_turns([Turn(session="s", speaker="Rajesh", text="March suits us for Goa")]).added == 1
    )
    assert db.memory.add_facts([Fact(subject="Rajesh", relation="visits", object="Goa")]).added == 1
    assert db.memory.remember("Priya prefers the aisle seat").collection == "memory"
    assert len(db) == 3
    extracted = db.memory.extract_facts([Record(id="n", text="Ana lives in Pune.")], keep=False)
    assert extracted.by == "offline"
    assert len(db) == 3


def test_memory_checks_what_a_caller_may_write(db: Database) -> None:
    secret = Turn(session="s", text="secret", sensitivity="private")
    with pytest.raises(AccessDenied):
        db.memory.add_turns([secret], caller=Caller())
    with pytest.raises(AccessDenied, match="could not read"):
        db.memory.remember("secret", sensitivity="private", caller=Caller())
    assert len(db) == 0


def test_memory_context_is_a_search_and_its_block(db: Database) -> None:
    assert db.memory.context("vacation").block == ""
    db.memory.add_turns([Turn(session="s1", speaker="Rajesh", text="We can do March for vacation")])
    found = db.memory.context("When is the vacation?", limit=1)
    assert found.result.recipe == "memory"
    assert '- Rajesh said: "We can do March for vacation"' in found.block.splitlines()
    assert "(s1" not in found.block
    request = SearchRequest("vacation", recipe="keyword")
    assert "(s1" in db.memory.context(request, provenance=True).block
    assert db.memory.context(request).result.recipe == "keyword"
    assert db.memory.context().result.query == CONTEXT_QUERY


# db.files


def test_files_are_indexed_read_and_searched(db: Database, folder: Path) -> None:
    assert db.files.index(folder).added == 2
    assert db.files.read("harbour.txt", lines=(2, 2)).text == "at noon\n"
    (passage,) = db.files.grep("ferry").passages
    assert Path(passage.path).name == "harbour.txt"
    assert [Path(root).name for root in db.files.folders.roots] == ["notes"]
    assert db.index(folder).unchanged == 2


def test_files_show_only_what_the_caller_may_see(folder: Path, tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db", files__sensitivity="private", files__folders=(str(folder),)) as db:
        assert not db.files.grep("ferry", caller=Caller()).passages
        assert db.files.grep("ferry", caller=Caller(clearance="private")).passages


# db.code


def test_code_is_planned_and_introspected(db: Database, folder: Path) -> None:
    db.files.index(folder, recipe="code")
    plan = db.code.plan("what does `login` call?", episode="e1")
    assert "login" in {entry.qualified for entry in plan.entries}
    assert db.code.introspect("e1").plan.keys == plan.keys
    assert db.introspect("e1").plan.keys == plan.keys
    assert db.plan("what does `login` call?").keys == plan.keys


# db.admin


def test_admin_issues_and_revokes_tokens(db: Database) -> None:
    secret = db.admin.tokens.issue("reader", Caller(name="reader"), write=False)
    found = db.admin.tokens.find(secret)
    assert found is not None
    assert found.caller.name == "reader"
    assert db.admin.tokens.find("nonsense") is None


def test_admin_shows_models_and_pending_vectors(db: Database) -> None:
    db.admin.select_model()
    db.add([Record(id="a", text="harbour lights")])
    db.admin.embed_pending()
    (state,) = db.admin.models()
    assert (state.total, state.pending) == (1, 0)
    assert db.admin.pending_vectors() == 0
    assert [model.name for model in db.admin.current_models()] == [state.model.name]
    assert db.admin.last_error is None
    assert not db.admin.embedding_is_off
    db.admin.flush()
    db.admin.optimise()
    assert [hit.id for hit in db.search("harbour")] == ["a"]


def test_admin_says_that_embedding_is_off() -> None:
    with sennit.open(":memory:", embedding__provider="none") as db:
        assert db.admin.embedding_is_off
        assert db.admin.models() == []


def test_the_settings_decide_which_files_are_indexed(tmp_path: Path, folder: Path) -> None:
    (folder / "uv.lock").write_text("version = 1\n")
    settings = Settings(ingest=IngestSettings(default_ignores=False, exclude=("*.txt",)))
    with sennit.open(tmp_path / "db", settings=settings) as db:
        db.index(folder)
        assert {Path(record.path or "").name for record in db} == {"auth.py", "uv.lock"}
        assert db.index(folder, scope=Scope()).removed == 1
        assert {Path(record.path or "").name for record in db} == {"auth.py", "harbour.txt"}
