"""Hostile and damaged files: each is reported, and the others are indexed."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

import sennit
from ingest.conftest import counts, locked, paths_of, reasons, write
from ingest.test_file_reader import archives
from sennit.ingest import index, walk
from sennit.ingest.walk import WalkResult
from sennit.places import path_to_text


def test_a_broken_file_does_not_stop_the_rest(db: sennit.Database, root: Path) -> None:
    write(
        root,
        {
            "good.txt": "a fine text",
            "zip.txt": archives()["zip"],
            "gzip.md": archives()["gzip"],
            "tar.txt": archives()["tar"],
            "fake.pdf": "no pdf at all",
            "latin.txt": "Größe und Maß".encode("latin-1"),
            "broken.txt": ("日本語のテキスト。" * 50).encode()[:-1] + b"\xff\xfe\xff",
            "half.txt": b"\xff\xfeh\x00a\x00l\x00f\x00",
        },
    )
    os.mkfifo(root / "pipe.txt")
    (root / "loop").symlink_to(root)
    report = index(db, root)
    assert paths_of(db, root) == {"good.txt", "latin.txt", "broken.txt", "half.txt"}
    assert reasons(report, root) == {
        "zip.txt": "binary: a zip archive",
        "gzip.md": "binary: a gzip archive",
        "tar.txt": "binary: it contains zero bytes",
        "fake.pdf": "not a PDF, despite its name",
        "pipe.txt": "a named pipe, not a file",
        "loop": "a symbolic link, not a file",
    }
    by_name = {Path(record.path or "").name: record for record in db}
    assert by_name["latin.txt"].metadata["encoding"] == "cp1252"
    assert by_name["broken.txt"].metadata["replaced_characters"] == by_name["broken.txt"].text.count("\ufffd")
    assert by_name["half.txt"].text == "half"


def test_a_gigabyte_is_not_read(db: sennit.Database, root: Path) -> None:
    write(root, {"a.txt": "small"})
    with (root / "huge.log").open("wb") as file:
        file.truncate(1 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = index(db, root)
    assert "1,073,741,824 bytes" in reasons(report, root)["huge.log"]
    assert report.bytes_read == 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


@pytest.mark.parametrize(
    "name",
    [
        b"new\nline.txt",
        b"tab\tand \x1b[31mcolour.txt",
        b"bad\xff\xfebytes.txt",
        b"quote'\"`$(x);.txt",
        b"-rf",
        b"a#b?c%20.txt",
        b"x" * 251 + b".txt",
        "日本語.txt".encode(),
    ],
)
def test_any_name_can_be_indexed_again_and_removed(db: sennit.Database, root: Path, name: bytes) -> None:
    place = root / os.fsdecode(name)
    place.write_bytes(b"content of a file with an odd name")
    assert index(db, root).added == 1
    (record,) = db
    assert record.path == path_to_text(os.fsdecode(name))
    assert db.search("odd name", limit=1)[0].id == record.id
    assert counts(index(db, root)) == (0, 0, 0, 0, 1)
    place.unlink()
    assert index(db, root).removed == 1
    assert len(db) == 0


def test_path_longer_than_an_id_is_stored_in_full(db: sennit.Database, root: Path) -> None:
    folder = root.joinpath(*["d" * 240] * 6)
    write(
        root,
        {f"{folder.relative_to(root)}/a.txt": "far down", f"{folder.relative_to(root)}/b.txt": "far down"},
    )
    assert index(db, root).added == 2
    assert {record.path for record in db} == {
        str((folder / name).relative_to(root)) for name in ("a.txt", "b.txt")
    }
    (folder / "a.txt").unlink()
    assert index(db, root).removed == 1


def test_very_long_lines_and_files_are_split_without_loss(db: sennit.Database, root: Path) -> None:
    words = " ".join(f"word{n}" for n in range(60_000))
    write(root, {"line.json": words, "blank.txt": "\n" * 300_000, "many.txt": "x y z\n" * 50_000})
    report = index(db, root)
    assert report.skipped == []
    pieces = sorted((r for r in db if r.path and r.path.endswith("line.json")), key=lambda r: r.position or 0)
    assert "".join(record.text for record in pieces) == words
    assert {record.lines for record in pieces} == {(1, 1)}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "#" * 500_000),
        ("b.md", "# " + "x" * 500_000 + "\n" + "# y\n" * 20_000),
        ("c.md", "```\n" * 50_001),
        ("d.md", "---\n" * 50_000),
        ("e.rst", "====\n" * 50_000),
        ("f.py", " " * 400_000 + "x"),
        ("g.md", "[" * 300_000),
        ("h.txt", ". " * 300_000),
        ("i.md", "a " + " " * 200_000 + "#" * 100_000 + " " * 100_000 + "x"),
        ("j.md", "# a" + " #" * 150_000 + "x"),
        ("k.md", "# a" + "\t" * 200_000 + "x"),
    ],
)
def test_indexing_time_is_linear_for_hostile_files(
    db: sennit.Database, root: Path, name: str, content: str
) -> None:
    write(root, {name: content})
    report = index(db, root)
    assert report.skipped == []
    assert report.added == 1


def test_unreadable_file_keeps_its_records(root: Path) -> None:
    write(root, {"a.txt": "known before", "closed/b.txt": "and this"})
    with sennit.open(":memory:") as db:
        index(db, root)
        (root / "a.txt").write_text("changed since")
        with locked(root / "a.txt", root / "closed"):
            report = index(db, root)
        assert set(reasons(report, root)) == {"a.txt", "closed"}
        assert {record.text for record in db} == {"known before", "and this"}


def test_unreadable_folder_keeps_its_records(
    db: sennit.Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"sub/a.txt": "kept", "b.txt": "gone soon"})
    index(db, root)
    (root / "b.txt").unlink()
    real = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("/sub"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    report = index(db, root)
    assert report.removed == 1
    assert reasons(report, root) == {"sub": "cannot be accessed: Permission denied"}
    assert {record.text for record in db} == {"kept"}


def test_walk_of_a_missing_folder_is_reported() -> None:
    tree = WalkResult()
    walk.walk("/nowhere/at/all", walk.Scope(), tree)
    assert tree.unreadable_folders == ["/nowhere/at/all"]
