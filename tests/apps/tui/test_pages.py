"""The preview: the file around a result, else what the record has."""

from __future__ import annotations

import os
from pathlib import Path

import sennit
from sennit.apps.tui.items import Item, of_grep, of_result
from sennit.apps.tui.pages import AROUND, page_of


def first(db: sennit.Database, query: str) -> Item:
    return of_result(db.search(query, recipe="keyword", explain=True)).items[0]


def test_the_file_is_shown_around_the_result(library: sennit.Database, folder: Path) -> None:
    page = page_of(library, first(library, "calendar"))
    text = (folder / "docs" / "backup.md").read_text().splitlines()
    assert page.file == str(folder / "docs" / "backup.md")
    assert page.lines == tuple(text)
    assert (page.first, page.chosen, page.start) == (1, (19, 24), 19)
    assert page.note == ""


def test_of_a_long_file_some_screens_are_read(library: sennit.Database, folder: Path) -> None:
    lines = [f"line {number}" for number in range(1, 5001)]
    lines[2499] = "a xylophone stands here"
    (folder / "docs" / "long.txt").write_text("\n".join(lines))
    library.index(folder / "docs")
    item = first(library, "xylophone")
    assert item.lines is not None
    page = page_of(library, item)
    assert page.first == item.lines[0] - AROUND
    assert page.lines[2500 - page.first] == "a xylophone stands here"
    assert len(page.lines) == item.lines[1] - item.lines[0] + 1 + 2 * AROUND


def test_a_file_that_is_gone_leaves_the_records_own_text(library: sennit.Database, folder: Path) -> None:
    (folder / "docs" / "backup.md").unlink()
    page = page_of(library, first(library, "calendar"))
    assert page.file is None
    assert page.note.startswith("[ERROR: NOT_FOUND]")
    assert page.first == 19
    assert "Open the calendar" in "\n".join(page.lines)


def test_a_file_outside_the_allowed_folders_is_not_shown(library: sennit.Database) -> None:
    record = sennit.Record(id="x", text="a xylophone", path="/etc/passwd", lines=(1, 1))
    library.add([record])
    page = page_of(library, first(library, "xylophone"))
    assert page.file is None
    assert page.note.startswith("[ERROR: ACCESS_DENIED]")
    assert page.lines == ("a xylophone",)


def test_a_file_that_changed_since_is_shown_with_a_warning(library: sennit.Database, folder: Path) -> None:
    (folder / "docs" / "backup.md").write_text("quite another text\n" * 40)
    page = page_of(library, first(library, "calendar"))
    assert page.file is not None
    assert page.note == "the file has changed since it was indexed"


def test_a_record_without_a_file_is_its_text(library: sennit.Database) -> None:
    library.add([sennit.Record(id="x", text="one xylophone\ntwo\r\nthree\n", url="http://example.com/x")])
    page = page_of(library, first(library, "xylophone"))
    assert page.lines == ("one xylophone", "two", "three")
    assert (page.first, page.file, page.note) == (None, None, "")


def test_a_grep_begins_at_its_first_match(library: sennit.Database, folder: Path) -> None:
    item = of_grep("rglob", library.grep(["rglob"])).items[0]
    assert item.citation == f"{folder / 'src' / 'copy.py'}:1-14"
    page = page_of(library, item)
    assert page.start == 8
    assert page.lines[page.start - (page.first or 0)].strip() == 'for path in source.rglob("*"):'


def test_a_path_below_the_current_folder_is_shown_from_there(library: sennit.Database) -> None:
    item = first(library, "calendar")
    assert item.place == f"docs{os.sep}backup.md:19-24"
    assert Path(item.citation).is_absolute()
