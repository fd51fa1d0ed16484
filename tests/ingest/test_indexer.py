"""Indexing: the database matches the files, and only changed files are read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import sennit
from ingest.conftest import contents_of, counts, paths_of, reasons, write
from sennit.errors import InvalidInput, NotFound
from sennit.ingest import Scope, index
from sennit.places import FolderOptions

LONG = "\n\n".join(
    f"Paragraph {n} about topic {n % 7}.\n" + f"It has words, number {n}. " * 12 for n in range(40)
)
TREE: dict[str, str | bytes] = {
    "a.md": f"# Alpha\n\n{LONG}",
    "b.txt": "Beta is a short text.",
    "src/c.py": "def gamma():\n    return 3\n",
    "src/d.html": "<h1>Delta</h1><p>A page.</p>",
    "empty.txt": "",
}


@pytest.fixture
def tree(root: Path) -> Path:
    write(root, TREE)
    return root


def forbid_embedding(db: sennit.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise AssertionError("a text was embedded")

    for embedder in db.embeddings._embedders.values():
        monkeypatch.setattr(type(embedder), "embed_documents", refuse)


def test_files_become_records_that_name_them(db: sennit.Database, tree: Path) -> None:
    report = index(db, tree)
    assert counts(report) == (5, 0, 0, 0, 0)
    assert report.records == len(db)
    record = next(record for record in db if record.path == "b.txt")
    assert (record.kind, record.lines, record.position, record.collection) == ("text", (1, 1), 0, "files")
    assert record.parent == "tree/b.txt"
    assert record.id.startswith("tree/b.txt#")
    assert record.metadata == {"language": "text", "role": "docs", "folder": "tree"}
    assert record.timestamp is not None
    assert abs(record.timestamp.timestamp() - (tree / "b.txt").stat().st_mtime) < 0.001
    hit = db.search("gamma", limit=1)[0]
    assert hit.citation == f"{os.path.realpath(tree)}/src/c.py:1-2"


def test_a_second_run_reads_and_embeds_nothing(
    db: sennit.Database, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sennit.ingest.indexer.MTIME_RESOLUTION_NS", 0)
    index(db, tree)
    before = contents_of(db)
    forbid_embedding(db, monkeypatch)
    report = index(db, tree)
    assert counts(report) == (0, 0, 0, 0, 5)
    assert report.bytes_read == 0
    assert contents_of(db) == before


def test_touched_file_with_same_content_is_unchanged(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    before = contents_of(db)
    os.utime(tree / "b.txt")
    assert counts(index(db, tree)) == (0, 0, 0, 0, 5)
    assert contents_of(db) == before


def test_a_changed_file_is_one_update_and_keeps_its_other_passages(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    before = set(contents_of(db))
    (tree / "a.md").write_text(str(TREE["a.md"]).replace("Paragraph 3 ", "Paragraph three ", 1))
    report = index(db, tree)
    assert counts(report) == (0, 1, 0, 0, 4)
    assert len(before - set(contents_of(db))) <= 4
    assert db.search("three", limit=1)[0].text.count("Paragraph three") == 1


def test_inserted_line_shifts_line_numbers_and_keeps_ids(
    db: sennit.Database, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(db, tree)
    before = {record.id: record.lines for record in db if record.kind == "function"}
    (tree / "src/c.py").write_text("\n" + str(TREE["src/c.py"]))
    forbid_embedding(db, monkeypatch)
    index(db, tree)
    after = {record.id: record.lines for record in db if record.kind == "function"}
    assert list(before) == list(after)
    assert (list(before.values()), list(after.values())) == ([(1, 2)], [(2, 3)])


def test_a_renamed_file_is_one_rename_and_embeds_nothing(
    db: sennit.Database, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(db, tree)
    records = len(db)
    (tree / "a.md").rename(tree / "src" / "renamed.md")
    forbid_embedding(db, monkeypatch)
    assert counts(index(db, tree)) == (0, 0, 1, 0, 4)
    assert len(db) == records
    assert paths_of(db, tree) == {"b.txt", "src/c.py", "src/d.html", "src/renamed.md"}


def test_a_deleted_file_leaves_nothing(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    (tree / "b.txt").unlink()
    report = index(db, tree)
    assert counts(report) == (0, 0, 0, 1, 4)
    assert report.records_removed == 1
    assert "b.txt" not in paths_of(db, tree)


def test_only_what_is_under_the_roots_of_the_run_is_removed(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    (tree / "b.txt").unlink()
    (tree / "src/c.py").unlink()
    assert index(db, tree / "src").removed == 1
    assert "b.txt" in paths_of(db, tree)
    write(tree.parent, {"tree-2/x.txt": "a neighbour whose name begins alike"})
    index(db, tree.parent / "tree-2")
    index(db, tree)
    assert any(record.path == "x.txt" for record in db)


def test_deleted_folder_is_removed_if_indexed_and_else_an_error(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    shutil.rmtree(tree)
    assert index(db, tree).removed == 5
    assert len(db) == 0
    with pytest.raises(NotFound, match="no file or folder"):
        index(db, tree)


def test_a_single_file_can_be_indexed(db: sennit.Database, tree: Path) -> None:
    assert index(db, [tree / "b.txt", str(tree / "src" / "c.py")]).added == 2
    assert counts(index(db, tree)) == (3, 0, 0, 0, 2)


def test_file_reached_by_several_paths_is_indexed_once(
    db: sennit.Database, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.parent / "link").symlink_to(tree)
    assert index(db, [tree, tree / "src", tree.parent / "link"]).added == 5
    monkeypatch.chdir(tree)
    assert counts(index(db, ".")) == (0, 0, 0, 0, 5)


def test_another_collection_moves_the_records(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    assert index(db, tree, options=FolderOptions(collection="mine")).updated == 5
    assert {record.collection for record in db} == {"mine", "code_files"}
    assert counts(index(db, tree)) == (0, 0, 0, 0, 5)


def test_records_removed_by_hand_come_back(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    before = contents_of(db)
    db.remove([next(iter(before))])
    assert index(db, tree).updated == 1
    assert contents_of(db) == before


def test_records_not_from_files_are_kept(db: sennit.Database, tree: Path) -> None:
    db.add([sennit.Record(id="note", text="my note on it", parent="tree/b.txt", path="b.txt")])
    index(db, tree)
    (tree / "b.txt").unlink()
    index(db, tree)
    assert db.get("note") is not None


def test_file_that_becomes_binary_loses_its_records_until_it_is_text_again(
    db: sennit.Database, tree: Path
) -> None:
    index(db, tree)
    (tree / "b.txt").write_bytes(b"\0\1\2")
    report = index(db, tree)
    assert reasons(report, tree) == {"b.txt": "binary: it contains zero bytes"}
    assert "b.txt" not in paths_of(db, tree)
    assert reasons(index(db, tree), tree) == {"b.txt": "binary: it contains zero bytes"}
    (tree / "b.txt").write_text("text again")
    assert index(db, tree).added == 1


def test_newly_ignored_or_too_large_file_is_removed(db: sennit.Database, tree: Path) -> None:
    index(db, tree)
    (tree / ".gitignore").write_text("src/\n")
    report = index(db, tree, scope=Scope(max_bytes=1000))
    assert paths_of(db, tree) == {"b.txt"}
    assert "the limit is 1,000" in reasons(report, tree)["a.md"]


def test_identical_passages_of_a_file_are_all_kept(db: sennit.Database, root: Path) -> None:
    block = "def same():\n" + "    x = 1\n" * 200
    write(root, {"a.py": (block + "\n\n") * 3})
    index(db, root)
    lines = sorted(record.lines or (0, 0) for record in db)
    assert lines[0][0] == 1
    assert max(last for _, last in lines) >= 605
    assert len({record.text for record in db}) < len(db)


def test_the_database_does_not_index_itself(root: Path) -> None:
    write(root, {"a.txt": "words"})
    with sennit.open(root / "own.sennit") as db:
        index(db, root, scope=Scope(hidden=True))
        assert paths_of(db, root) == {"a.txt"}


def test_progress_counts_the_files_that_are_read(db: sennit.Database, tree: Path) -> None:
    seen: list[tuple[int, int]] = []
    index(db, tree, progress=lambda done, total, _: seen.append((done, total)))
    assert seen == [(n, 5) for n in range(1, 6)]


def test_a_database_in_memory_takes_files_too(tree: Path) -> None:
    with sennit.open(":memory:") as db:
        assert index(db, tree).added == 5
        assert counts(index(db, tree)) == (0, 0, 0, 0, 5)


@pytest.mark.parametrize("paths", [[], [""], ["a\0b"], [b"bytes"]])
def test_invalid_path_is_rejected(db: sennit.Database, paths: list[str]) -> None:
    with pytest.raises(InvalidInput):
        index(db, paths)
