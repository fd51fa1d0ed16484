"""The preview: the file around a result, or the text of the record."""

from __future__ import annotations

import os
from pathlib import Path

import sennit
from sennit.apps.tui.items import ResultRow, from_grep, from_search
from sennit.apps.tui.preview_content import CONTEXT_LINES, load_preview


def first(db: sennit.Database, query: str) -> ResultRow:
    return from_search(db.search(query, recipe="keyword", explain=True)).items[0]


def test_preview_is_the_file_around_the_result(database: sennit.Database, folder: Path) -> None:
    page = load_preview(database, first(database, "calendar"))
    text = (folder / "docs" / "backup.md").read_text().splitlines()
    assert page.file == "docs/backup.md"
    assert page.lines == tuple(text)
    assert (page.first, page.result_lines, page.start) == (1, (19, 24), 19)
    assert page.note == ""


def test_only_some_lines_of_a_long_file_are_read(database: sennit.Database, folder: Path) -> None:
    lines = [f"line {number}" for number in range(1, 5001)]
    lines[2499] = "a xylophone stands here"
    (folder / "docs" / "long.txt").write_text("\n".join(lines))
    database.index(folder / "docs")
    item = first(database, "xylophone")
    assert item.lines is not None
    page = load_preview(database, item)
    assert page.first == item.lines[0] - CONTEXT_LINES
    assert page.lines[2500 - page.first] == "a xylophone stands here"
    assert len(page.lines) == item.lines[1] - item.lines[0] + 1 + 2 * CONTEXT_LINES


def test_missing_file_is_replaced_by_the_text_of_the_record(database: sennit.Database, folder: Path) -> None:
    (folder / "docs" / "backup.md").unlink()
    page = load_preview(database, first(database, "calendar"))
    assert page.file is None
    assert page.note.startswith("[ERROR: NOT_FOUND]")
    assert page.first == 19
    assert "Open the calendar" in "\n".join(page.lines)


def test_file_outside_the_allowed_folders_is_not_shown(database: sennit.Database) -> None:
    record = sennit.Record(id="x", text="a xylophone", path="/etc/passwd", lines=(1, 1))
    database.add([record])
    page = load_preview(database, first(database, "xylophone"))
    assert page.file is None
    assert page.note.startswith("[ERROR: ACCESS_DENIED]")
    assert page.lines == ("a xylophone",)


def test_changed_file_is_shown_with_a_warning(database: sennit.Database, folder: Path) -> None:
    (folder / "docs" / "backup.md").write_text("quite another text\n" * 40)
    page = load_preview(database, first(database, "calendar"))
    assert page.file is not None
    assert page.note == "the file has changed since it was indexed"


def test_record_without_a_file_is_shown_as_text(database: sennit.Database) -> None:
    database.add([sennit.Record(id="x", text="one xylophone\ntwo\r\nthree\n", url="http://example.com/x")])
    page = load_preview(database, first(database, "xylophone"))
    assert page.lines == ("one xylophone", "two", "three")
    assert (page.first, page.file, page.note) == (None, None, "")


def test_preview_of_a_grep_starts_at_the_first_match(database: sennit.Database, folder: Path) -> None:
    item = from_grep("rglob", database.files.grep(["rglob"])).items[0]
    assert item.citation == "src/copy.py:1-14"
    page = load_preview(database, item)
    assert page.start == 8
    assert page.lines[page.start - (page.first or 0)].strip() == 'for path in source.rglob("*"):'


def test_paths_are_shown_relative_to_the_current_folder(database: sennit.Database) -> None:
    item = first(database, "calendar")
    assert item.short_citation == f"docs{os.sep}backup.md:19-24"
    assert item.citation == item.short_citation
