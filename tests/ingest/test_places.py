"""Places: paths are relative to the indexed folder, and folders may move."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from ingest.conftest import contents_of, counts, paths_of, write
from ingest.test_indexer import forbid_embedding
from sennit import Caller
from sennit.errors import InvalidInput
from sennit.folders import ReadError
from sennit.places import Folder, Places, decode_root, encode_root, make_key, shown_path

FILES: dict[str, str | bytes] = {
    "docs/guide.md": "# Guide\n\nHow to steep tea: three minutes.\n",
    "src/app.py": "def brew(pot):\n    return pot\n",
    "notes.txt": "The kettle is in the kitchen.\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write(folder, FILES)
    return folder


@pytest.fixture
def inside(project: Path) -> Iterator[sennit.Database]:
    """A database in the folder that it indexes."""
    with sennit.open(project / ".sennit") as db:
        db.index(project)
        yield db


def roots_of(db: sennit.Database) -> dict[str, str]:
    return {folder.key: folder.root for folder in db.indexed_folders.places().folders}


def test_stored_paths_and_ids_are_relative_to_the_indexed_folder(
    inside: sennit.Database, project: Path
) -> None:
    assert {record.path for record in inside} == set(FILES)
    assert all(record.id.startswith(f"project/{record.path}") for record in inside)
    assert str(project.parent) not in "".join(contents_of(inside).values())


def test_paths_are_shown_relative_to_the_current_folder(
    inside: sennit.Database, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "where is the kettle"
    assert inside.search(query)[0].citation == f"{project.resolve()}/notes.txt:1"
    for folder, citation in ((project, "notes.txt:1"), (project / "docs", "../notes.txt:1")):
        monkeypatch.chdir(folder)
        assert inside.search(query)[0].citation == citation
        assert inside.search(query, recipe="files")[0].citation == citation
        assert inside.files.grep("kettle").passages[0].citation == citation
        assert inside.files.read(citation.partition(":")[0]).text == FILES["notes.txt"]
    monkeypatch.chdir(project)
    assert inside.ask("how long to steep tea?").citations[0].location.startswith("docs/guide.md:")
    (entry,) = inside.plan("`brew`", max_entities=1).entries
    assert (entry.key, entry.path) == ("src/app.py::brew", "src/app.py")


def test_an_id_is_accepted_as_it_is_shown(
    inside: sennit.Database, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "src")
    record = inside.get("app.py::brew")
    assert record is not None
    assert record.id == "project/src/app.py::brew"
    assert inside.get(record.id) == record
    assert inside.get(f"{project}/src/app.py::brew") == record
    assert inside.why("brew", "app.py::brew").kept
    assert inside.get("other.py::brew") is None


def test_an_episode_shows_its_keys_where_one_is(
    inside: sennit.Database, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    inside.plan("`brew`", episode="e", max_entities=1)
    monkeypatch.chdir(project / "src")
    assert inside.introspect("e", replay=True).plan.keys == ("app.py::brew",)
    following = inside.plan("and now?", episode="e")
    assert following.entries[0].reason == "anchor:hydrated_previous_turn"


def test_a_database_moves_with_its_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sennit.open(project / ".sennit") as db:
        db.index([project, project / "docs"])
        before = contents_of(db)
    moved = project.rename(project.parent / "elsewhere")
    with sennit.open(moved / ".sennit") as db:
        assert roots_of(db) == {"project": str(moved.resolve())}
        monkeypatch.chdir(moved)
        assert db.search("where is the kettle")[0].citation == "notes.txt:1"
        assert db.files.read("notes.txt").text == FILES["notes.txt"]
        assert db.files.grep("kettle").passages[0].citation == "notes.txt:1"
        forbid_embedding(db, monkeypatch)
        assert counts(db.index(moved)) == (0, 0, 0, 0, 3)
        assert contents_of(db) == before


@pytest.mark.parametrize("how", ["rename", "copy"])
def test_a_moved_folder_is_recognised_and_nothing_is_stored_or_embedded_twice(
    tmp_path: Path, project: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.ingest.indexer.MTIME_RESOLUTION_NS", 0)
    with sennit.open(tmp_path / "db") as db:
        db.index(project)
        before = contents_of(db)
        moved = tmp_path / "renamed"
        if how == "rename":
            project.rename(moved)
        else:
            shutil.copytree(project, moved, copy_function=shutil.copy)
            shutil.rmtree(project)
        forbid_embedding(db, monkeypatch)
        report = db.index(moved)
        assert counts(report) == (0, 0, 0, 0, 3)
        if how == "rename":
            assert report.bytes_read == 0
        assert contents_of(db) == before
        assert roots_of(db) == {"project": str(moved.resolve())}
        assert db.search("kettle")[0].citation == f"{moved.resolve()}/notes.txt:1"
        assert db.files.read("notes.txt").path == f"{moved.resolve()}/notes.txt"
        with pytest.raises(ReadError, match="ACCESS_DENIED"):
            db.files.read(str(project / "notes.txt"))


def test_a_copy_of_a_folder_that_still_exists_is_another_folder(tmp_path: Path, project: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.index(project)
        shutil.copytree(project, tmp_path / "copy")
        assert db.index(tmp_path / "copy").added == 3
        assert sorted(roots_of(db)) == ["copy", "project"]


def test_a_folder_moved_into_an_indexed_one_is_renamed_files(tmp_path: Path, project: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        write(tmp_path / "outer", {"a.txt": "Something else."})
        db.index([project, tmp_path / "outer"])
        project.rename(tmp_path / "outer" / "project")
        report = db.index(tmp_path / "outer")
        assert counts(report) == (0, 0, 3, 0, 1)
        # Only the titles of the one file of code name more of its path now.
        assert report.embedded == len([record for record in db if record.path == "project/src/app.py"])
        assert {record.path for record in db} == {"a.txt", *(f"project/{name}" for name in FILES)}
        assert list(roots_of(db)) == ["outer"]


def test_a_folder_inside_another_is_adopted(tmp_path: Path, project: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.index(project / "docs")
        db.index(project / "notes.txt")
        assert {record.path for record in db} == {"guide.md", "notes.txt"}
        assert db.index(project).added == 1
        assert {record.path for record in db} == set(FILES)
        assert list(roots_of(db).values()) == [str(project.resolve())]
        assert counts(db.index(project)) == (0, 0, 0, 0, 3)
        assert counts(db.index(project / "docs")) == (0, 0, 0, 0, 1)
        assert len(roots_of(db)) == 1


def test_two_folders_with_the_same_relative_path_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        write(
            tmp_path / name / "notes",
            {"a.md": f"# Tea\n\nThe kettle of house {name}.\n", "b.py": f"def {name}(): ...\n"},
        )
    with sennit.open(tmp_path / "db") as db:
        db.index([tmp_path / "one" / "notes", tmp_path / "two" / "notes"])
        assert sorted(roots_of(db)) == ["notes", "notes-2"]
        assert len({record.id for record in db}) == len(db)
        monkeypatch.chdir(tmp_path)
        found = db.search("kettle of a house", limit=10)
        assert {hit.citation.partition(":")[0] for hit in found if hit.collection == "docs"} == {
            "one/notes/a.md",
            "two/notes/a.md",
        }
        by_grep = db.search("kettle", recipe="files", keywords=["kettle"])
        assert {hit.citation.partition(":")[0] for hit in by_grep} == {"one/notes/a.md", "two/notes/a.md"}
        assert {entry.path for entry in db.plan("b.py").entries} == {"one/notes/b.py", "two/notes/b.py"}
        assert db.files.read("two/notes/a.md").text.endswith("two.\n")
        shutil.rmtree(tmp_path / "one")
        db.index(tmp_path / "one" / "notes")
        assert {record.path for record in db} == {"a.md", "b.py"}
        assert all("two" in record.text for record in db if record.collection == "docs")


def test_a_single_file_does_not_open_its_folder(tmp_path: Path, project: Path) -> None:
    with sennit.open(tmp_path / "other" / "db") as db:
        db.index(project / "notes.txt")
        assert {record.path for record in db} == {"notes.txt"}
        with pytest.raises(ReadError, match="ACCESS_DENIED"):
            db.files.read(str(project / "src" / "app.py"))
        (project / "notes.txt").unlink()
        assert db.index(project / "notes.txt").removed == 1
        assert roots_of(db) == {}


# Options of a folder


def test_tenant_metadata_and_collection_of_a_folder_are_remembered(tmp_path: Path, project: Path) -> None:
    acme = Caller(tenant="acme")
    with sennit.open(tmp_path / "db") as db:
        db.index(project, tenant="acme", metadata={"team": "tea"}, collection="handbook")
        assert not db.search("kettle")
        assert not db.files.grep("kettle").passages
        hit = db.search("kettle", caller=acme, filters={"team": "tea"})[0]
        assert (hit.record.tenant, hit.collection, hit.metadata["team"]) == ("acme", "handbook", "tea")
        assert db.files.grep("kettle", caller=acme).passages
        assert "kettle" in db.files.read("notes.txt", caller=acme).text
        with pytest.raises(ReadError) as error:
            db.files.read(str(project / "notes.txt"))
        assert "project" not in str(error.value).replace(str(project / "notes.txt"), "")
        (project / "more.txt").write_text("A second kettle.")
        assert counts(db.index(project)) == (1, 0, 0, 0, 3)
        assert {hit.record.tenant for hit in db.search("kettle", caller=acme)} == {"acme"}
        assert counts(db.index(project, metadata={"team": "coffee"})) == (0, 4, 0, 0, 0)
        assert {hit.metadata["team"] for hit in db.search("kettle", caller=acme)} == {"coffee"}
        assert counts(db.index(project, tenant="")) == (0, 4, 0, 0, 0)
        assert db.search("kettle")
        assert not db.search("kettle", caller=acme)


def test_a_folder_with_options_stays_its_own_inside_another(tmp_path: Path, project: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.index(project)
        db.index(project / "docs", metadata={"team": "tea"})
        assert {(r.path, r.metadata.get("team")) for r in db if r.collection == "docs"} == {
            ("guide.md", "tea")
        }
        assert counts(db.index(project)) == (0, 0, 0, 0, 3)
        with pytest.raises(InvalidInput, match="whole folder"):
            db.index(project / "notes.txt", tenant="acme")
        assert len(paths_of(db, project)) == 3


@pytest.mark.parametrize(
    "options", [{"tenant": "a\x1fb"}, {"metadata": {"x": float("nan")}}, {"collection": 3}]
)
def test_invalid_options_change_nothing(tmp_path: Path, project: Path, options: dict[str, object]) -> None:
    with sennit.open(tmp_path / "db") as db:
        with pytest.raises(InvalidInput):
            db.index(project, **options)  # type: ignore[arg-type]
        assert not roots_of(db)


# Hostile places


def test_a_root_reached_by_a_link_is_the_folder_itself(tmp_path: Path, project: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    with sennit.open(tmp_path / "db") as db:
        db.index(tmp_path / "link")
        assert counts(db.index(project)) == (0, 0, 0, 0, 3)
        assert roots_of(db) == {"project": str(project.resolve())}


@pytest.mark.skipif(os.name == "nt", reason="names are UTF-16 there")
def test_a_folder_whose_name_is_not_utf_8_can_be_indexed(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    try:
        Path(os.fsdecode(odd)).mkdir()
    except OSError:
        pytest.skip("this file system refuses names that are not UTF-8")
    for name in (b"a.txt", b"b\xff.txt"):
        Path(os.fsdecode(odd + b"/" + name)).write_bytes(b"The kettle is odd.\n")
    for database in (tmp_path / "db", tmp_path.parent / f"{tmp_path.name}-db"):
        with sennit.open(database) as db:
            assert db.index(os.fsdecode(odd)).added == 2
            assert counts(db.index(os.fsdecode(odd)))[4] == 2
            assert {record.path for record in db} == {"a.txt", "b\\xff.txt"}
            assert roots_of(db)["caf-xe9"] == os.fsdecode(odd)
            assert db.search("kettle")[0].citation.endswith(".txt:1")


def test_names_that_differ_only_in_case_stay_apart(tmp_path: Path) -> None:
    write(tmp_path / "tree", {"Notes.txt": "upper kettle", "notes.txt": "lower kettle"})
    if len(list((tmp_path / "tree").iterdir())) < 2:
        pytest.skip("this file system ignores case")
    with sennit.open(tmp_path / "db") as db:
        assert db.index(tmp_path / "tree").added == 2
        assert db.index(tmp_path / "tree").unchanged == 2
        assert {record.path for record in db} == {"Notes.txt", "notes.txt"}


def test_the_database_folder_itself_is_refused(inside: sennit.Database, project: Path) -> None:
    for path in (project / ".sennit", project / ".sennit" / "index"):
        with pytest.raises(InvalidInput, match="the database itself"):
            inside.index(path)


@given(
    st.lists(
        st.text(min_size=1, max_size=8).filter(
            lambda s: "/" not in s and "\0" not in s and s not in (".", "..")
        ),
        max_size=4,
    ),
    st.booleans(),
)
def test_a_stored_root_is_read_back_and_follows_the_database(parts: list[str], is_inside: bool) -> None:
    parts = [os.fsdecode(os.fsencode(part.encode("utf-8", "replace"))) for part in parts]
    base = "/home/data"
    root = "/".join([base if is_inside else "/else", *parts])
    stored = encode_root(root, base)
    stored.encode()
    assert decode_root(stored, base) == root
    assert decode_root(stored, "/new/place") == (root.replace(base, "/new/place", 1) if is_inside else root)


@given(st.lists(st.text(max_size=60), max_size=6))
def test_keys_are_distinct_and_fit_into_ids(names: list[str]) -> None:
    taken: set[str] = set()
    for name in names:
        key = make_key(f"/x/{name}", taken)
        assert key
        assert key not in taken
        assert not set(key) & set("/@#: ")
        taken.add(key)


def test_the_deepest_folder_owns_a_path() -> None:
    places = Places([Folder("a", "/x"), Folder("b", "/x/y"), Folder("root", "/")])
    assert [(folder.key, path) for folder, path in places.owners("/x/y/z.md")] == [
        ("b", "z.md"),
        ("a", "y/z.md"),
        ("root", "x/y/z.md"),
    ]
    assert [folder.key for folder, _ in places.owners("/xy/z.md")] == ["root"]


def test_windows_paths_are_shown_as_they_are() -> None:
    assert shown_path("C:\\Users\\me\\a.txt") == "C:\\Users\\me\\a.txt"
    assert Places([Folder("c", "C:\\Users")]).owners("/home") == []
