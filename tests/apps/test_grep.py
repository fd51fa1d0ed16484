"""`sennit grep` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .conftest import Cli, Run


@pytest.fixture
def tree(home: Path) -> Path:
    """A folder of files."""
    folder = home / "tree"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("".join(f"line {n}\n" for n in range(1, 31)) + "Max Retries: 5\n")
    (folder / "sub" / "b.py").write_text("retries = 5\nmax = retries\n")
    (folder / ".hidden").write_text("retries\n")
    (folder / "c.log").write_text("retries\n")
    (folder / ".gitignore").write_text("*.log\n")
    return folder


def found(cli: Cli, *args: str) -> list[str]:
    done = cli("grep", "--json", *args)
    assert done.exit_code == 0, done.stderr
    return [Path(passage["path"]).name for passage in json.loads(done.stdout)["passages"]]


def test_passage_has_citation_line_numbers_and_marks(cli: Cli, tree: Path) -> None:
    done = cli("grep", "retries", "--folder", "tree")
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "tree/sub/b.py:1-2  2 × retries",
        "> 1  retries = 5",
        "> 2  max = retries",
        "",
        "tree/a.md:21-31  1 × retries",
        *(f"  {number}  line {number}" for number in range(21, 31)),
        "> 31  Max Retries: 5",
    ]
    assert done.stderr == "3 matches in 2 files.\n"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_file_whose_name_is_not_utf8_is_shown(cli: Cli, tree: Path) -> None:
    (tree / "odd\udcff").mkdir()
    (tree / "odd\udcff" / "name.txt").write_text("needle\n")
    done = cli("grep", "needle", "--folder", "tree")
    assert done.exit_code == 0, done.stderr
    assert "name.txt:1" in done.stdout


def test_json_has_the_whole_result(cli: Cli, tree: Path) -> None:
    answer = json.loads(cli("grep", "retries", "max", "--folder", "tree", "-n", "1", "--json").stdout)
    (passage,) = answer.pop("passages")
    assert passage == {
        "citation": "tree/sub/b.py:1-2",
        "path": "tree/sub/b.py",
        "lines": [1, 2],
        "matched": [1, 2],
        "keywords": ["retries", "max"],
        "matches": 3,
        "text": "retries = 5\nmax = retries",
    }
    assert answer.pop("milliseconds") > 0
    assert answer == {
        "keywords": ["retries", "max"],
        "files": 2,
        "matches": 5,
        "limits": ["Only the best 1 passages are in the result: the limit is 1."],
        "skipped": [],
    }


def test_options_select_matching_and_files(cli: Cli, tree: Path) -> None:
    where = ("--folder", "tree")
    assert found(cli, "Retries", *where) == ["a.md"]
    assert found(cli, "RETRIES", "--case", "ignore", *where) == ["b.py", "a.md"]
    assert found(cli, r"r\w+s = \d", *where) == []
    assert found(cli, "-e", r"r\w+s = \d", *where) == ["b.py"]
    assert found(cli, "retries", "--glob", "*.md", "--glob", "!sub", *where) == ["a.md"]
    assert set(found(cli, "retries", "--hidden", *where)) == {"b.py", "a.md", ".hidden"}
    assert set(found(cli, "retries", "--no-ignore", *where)) == {"b.py", "a.md", "c.log"}
    assert found(cli, "retries", "--folder", "tree/sub", "--folder", "tree/c.log") == ["b.py", "c.log"]
    assert found(cli, *where, "--", "-v") == []


def test_default_folders_are_those_of_the_database(cli: Cli, tree: Path) -> None:
    assert cli("index", "tree/sub").exit_code == 0
    assert found(cli, "retries") == ["b.py"]


def test_nothing_found_is_not_an_error(cli: Cli, tree: Path) -> None:
    done = cli("grep", "absent", "--folder", "tree")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "Nothing found.\n")


def test_errors_say_what_to_do(cli: Cli, tree: Path) -> None:
    bad = cli("grep", "-e", "a(", "--folder", "tree")
    assert bad.exit_code == 2
    assert "'a(' is not a valid regular expression: unclosed group." in bad.stderr
    missing = cli("grep", "a", "--folder", "nowhere")
    assert (missing.exit_code, "nowhere" in missing.stderr) == (3, True)
    none = cli("grep", "a")
    assert none.exit_code == 3
    assert "--folder" in none.stderr


def test_control_characters_of_a_file_are_not_printed(run: Run, home: Path) -> None:
    (home / "tree").mkdir()
    (home / "tree" / "a.txt").write_text("needle \x1b[31mred\x1b]0;title\x07 \u202eevil\n")
    done = run("grep", "needle", "--folder", "tree")
    assert "\x1b" not in done.stdout + done.stderr
    assert "\u202e" not in done.stdout
    assert "needle" in done.stdout
