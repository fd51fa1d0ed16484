"""`sennit search --format`: lines for pickers and editors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.apps.cli.result_lines import LineFormat, format_lines
from sennit.records import Record
from sennit.results import Hit, SearchResult

from .conftest import Cli

LINE = re.compile(r"(.+?):(\d+):(\d+): (.*)")


@pytest.fixture
def indexed(cli: Cli, home: Path) -> Cli:
    folder = home / "notes"
    folder.mkdir()
    (folder / "ferry.md").write_text("# Boats\n\nSome words.\n\nOn Sundays the ferry leaves at two.\n")
    (folder / "run.py").write_text("import os\n\n\ndef depart():\n\tboard_ferry(os)\n")
    assert cli("index", "notes").exit_code == 0
    done = cli("import", input='{"id": "memo", "text": "The ferry is blue.", "title": "Paint"}')
    assert done.exit_code == 0
    return cli


def test_vscode_gets_the_place_of_the_best_line_of_each_file(indexed: Cli, home: Path) -> None:
    places = set()
    for line in indexed("search", "--format", "vscode", "ferry").stdout.splitlines():
        found = LINE.fullmatch(line)
        assert found is not None, line
        text = Path(found[1]).read_text().splitlines()[int(found[2]) - 1]
        # An outline describes a file of code, and leads to its beginning.
        assert "ferry" not in text or text[int(found[3]) - 1 :].startswith(("ferry", "board_ferry"))
        places.add((found[1], int(found[2]), int(found[3])))
    assert ("notes/ferry.md", 5, 16) in places
    assert {path for path, _, _ in places} == {"notes/ferry.md", "notes/run.py"}
    assert any(path == "notes/run.py" and line == 5 and column < 9 for path, line, column in places)


def test_fzf_and_rofi_get_every_result(indexed: Cli) -> None:
    hits = len(json.loads(indexed("search", "--json", "ferry").stdout)["hits"])
    entries = indexed("search", "--format", "fzf", "ferry").stdout.split("\0")
    assert entries.pop() == ""
    assert len(entries) == hits
    assert "memo: The ferry is blue." in entries
    rows = indexed("search", "--format", "rofi", "ferry").stdout.splitlines()
    assert len(rows) == hits
    assert "memo: The ferry is blue.\0meta\x1fPaint default" in rows


def test_read_takes_every_line_that_fzf_is_given(indexed: Cli, home: Path) -> None:
    (home / "notes" / "ferry.csv").write_text("name,length\nMarlin ferry,7\nTern ferry,3\n")
    (home / "notes" / "odd: name.md").write_text("One line.\n\nThe ferry: at 10:30:00: or later.\n")
    assert indexed("index", "notes").exit_code == 0
    entries = indexed("search", "--format", "fzf", "--limit", "20", "ferry").stdout.split("\0")[:-1]
    shown = {entry: indexed("read", entry) for entry in entries}
    for entry, done in shown.items():
        assert done.exit_code == 0, (entry, done.stderr)
        assert "ferry" in done.stdout or entry.startswith("notes/run.py"), entry
    by_place = {entry.split(": ")[0]: done.stdout for entry, done in shown.items()}
    assert by_place["notes/ferry.md:5:16"].startswith("# Boats"), "with the lines around it"
    assert by_place["notes/ferry.csv#row=2"] == "name: Tern ferry\nlength: 3\n"
    assert by_place["memo"] == "The ferry is blue."
    assert any(entry.startswith("notes/odd: name.md:3:") for entry in shown)
    stripped = indexed("read", "notes/ferry.md:5:16:")
    assert stripped.stdout == by_place["notes/ferry.md:5:16"], "fzf cuts the space off"


def test_a_line_leads_to_no_file_outside_the_allowed_folders(indexed: Cli, home: Path) -> None:
    (home / "secret.txt").write_text("secret")
    for line in ("secret.txt:1:1: x", "notes/../secret.txt:1:1: x", "secret.txt: x"):
        done = indexed("read", line, "--folder", "notes")
        assert done.exit_code != 0
        assert "secret\n" not in done.stdout
        assert done.stdout == ""


def test_one_form_at_a_time(indexed: Cli) -> None:
    for other in ("--json", "--files"):
        assert indexed("search", "--format", "fzf", other, "ferry").exit_code == 2


@given(
    text=st.text(),
    path=st.text(min_size=1).filter(lambda path: path.strip()),
    query=st.text(),
    form=st.sampled_from(["fzf", "rofi", "vscode"]),
)
def test_a_line_is_a_line_whatever_the_text_says(text: str, path: str, query: str, form: LineFormat) -> None:
    try:
        record = Record(id="a", text=text, path=path, title=text, lines=(3, 3 + text.count("\n")))
    except ValueError:
        return
    result = SearchResult(query, "default", (Hit(record, 1.0, 1, location=path),))
    (line,) = format_lines(result, form)
    end = "\0" if form == "fzf" else "\n"
    shown = line.removesuffix(end).partition("\0meta\x1f")[0]
    assert line.endswith(end)
    assert shown.isprintable() or not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", shown)
