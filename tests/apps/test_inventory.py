"""`sennit status`, `list`, `forget`, and `remove` by a condition."""

from __future__ import annotations

import json
import re
from pathlib import Path

from .conftest import Cli


def test_status_shows_collections_folders_models_and_what_to_do(filled_cli: Cli, home: Path) -> None:
    (home / "docs").mkdir()
    (home / "docs" / "a.md").write_text("# A\n\nText.\n")
    assert filled_cli("index", "docs").exit_code == 0
    shown = filled_cli("status").stdout
    assert "travel            1" in shown
    assert re.search(r"^docs +docs +1 +1  just now  no change", shown, re.MULTILINE)
    assert "static/sennit-static-256" in shown
    assert shown.endswith("Everything is up to date.\n")
    (home / "docs" / "b.md").write_text("new")
    assert "To index what changed: sennit index docs\n" in filled_cli("status").stdout
    values = json.loads(filled_cli("status", "--json").stdout)
    assert values["folders"][0]["changes"] == {"new": 1, "changed": 0, "gone": 0}


def test_list_shows_what_the_other_commands_take(filled_cli: Cli) -> None:
    shown = filled_cli("list").stdout
    assert "bread" in shown
    assert "docs/a.md:3-9" in shown
    for reference in ("bread", "boat", "docs/a.md:3-9"):
        assert filled_cli("get", reference).exit_code == 0


def test_list_takes_a_filter_a_collection_and_pages(filled_cli: Cli) -> None:
    page = json.loads(filled_cli("list", "--limit", "1", "--json").stdout)
    assert (page["total"], page["next"]) == (3, "boat")
    rest = json.loads(filled_cli("list", "--after", "boat", "--json").stdout)
    assert [record["id"] for record in rest["records"]] == ["bread", "path"]
    assert "the next: --after boat" in filled_cli("list", "--limit", "1").stderr
    kinds = json.loads(filled_cli("list", "--filter", "kind = 'note'", "--json").stdout)
    assert [record["id"] for record in kinds["records"]] == ["bread"]
    assert "boat" in filled_cli("list", "-c", "travel").stdout
    nothing = filled_cli("list", "-c", "memory")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "sennit status" in nothing.stderr


def test_list_shows_files_and_sessions(filled_cli: Cli) -> None:
    filled_cli("remember", "hello", "--session", "call")
    assert "docs/a.md        1" in filled_cli("list", "--files").stdout
    assert json.loads(filled_cli("list", "--sessions", "--json").stdout) == {
        "sessions": [{"name": "call", "records": 1}]
    }
    assert filled_cli("list", "--files", "--sessions").exit_code == 2


def test_a_short_id_that_was_printed_can_be_used(cli: Cli) -> None:
    cli("remember", "Priya prefers the aisle seat")
    short = cli("list").stdout.splitlines()[1].split()[0]
    assert short.startswith("memory-")
    assert len(short) == len("memory-") + 8
    assert "Priya" in cli("get", short).stdout
    assert cli("remove", short).exit_code == 0
    assert cli("get", short).exit_code == 3


def test_forget_removes_a_session_and_asks_first(cli: Cli) -> None:
    cli("remember", "hello", "--session", "call-1")
    assert cli("forget", "call-1").exit_code == 2
    unknown = cli("forget", "call", "--yes")
    assert unknown.exit_code == 3
    assert "Did you mean 'call-1'?" in unknown.stderr
    assert json.loads(cli("forget", "call-1", "--yes", "--json").stdout) == {
        "session": "call-1",
        "removed": 1,
    }


def test_remove_takes_a_condition_and_asks_first(filled_cli: Cli) -> None:
    refused = filled_cli("remove", "--where", "kind = 'note'")
    assert refused.exit_code == 2
    assert "Remove 1 record? Give --yes" in refused.stderr
    assert filled_cli("remove", "--where", "kind = 'note'", "--yes").stderr == "Removed 1 record.\n"
    assert filled_cli("remove", "--where", "kind = 'note'").stderr == "Removed 0 records.\n"
    assert filled_cli("remove", "boat", "--where", "kind = 'note'").exit_code == 2
    assert filled_cli("remove").exit_code == 2


def test_remove_takes_a_location(filled_cli: Cli) -> None:
    assert filled_cli("remove", "docs/a.md:4").stderr == "Removed 1 record.\n"
