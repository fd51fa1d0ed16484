"""The commands around records, settings, models and the database."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

import sennit as library
from sennit.exchange import read_records

from .conftest import RECORDS, Cli, jsonl

# Import and export


def test_what_is_exported_is_imported_unchanged(filled: Cli, home: Path) -> None:
    done = filled("export", "all.jsonl", "--json")
    assert json.loads(done.stdout) == {"file": "all.jsonl", "records": 3}
    with (home / "all.jsonl").open("rb") as stream:
        exported = list(read_records(stream))
    assert [record.id for record in exported] == ["boat", "bread", "path"]
    assert filled("import", "all.jsonl", "--db", "copy").exit_code == 0
    again = filled("export", "--db", "copy")
    assert again.stdout_bytes == (home / "all.jsonl").read_bytes()
    assert sorted(path.name for path in home.iterdir()) == [".sennit", "all.jsonl", "copy"]


def test_an_export_that_cannot_be_written_leaves_the_old_one(filled: Cli, home: Path) -> None:
    done = filled("export", "nowhere/all.jsonl")
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr


def test_an_import_reports_what_it_did(filled: Cli) -> None:
    changed = [RECORDS[0], {"id": "boat", "text": "The ferry is late."}, {"id": "new", "text": "x"}]
    done = filled("import", "--json", input=jsonl(changed))
    assert json.loads(done.stdout) == {"read": 3, "added": 1, "updated": 1, "unchanged": 1, "bad": []}


BAD = '{"id": "a", "text": "one"}\n{"id": "b"}\n{"id": "c", "text": "three"}\nnonsense\n'


def test_a_bad_line_stops_the_import_and_what_came_before_stays(sennit: Cli) -> None:
    done = sennit("import", input=BAD)
    assert done.exit_code == 2
    assert "Line 2: A record needs the field 'text'" in done.stderr
    assert "1 record: 1 added" in done.stderr
    assert sennit("get", "a").exit_code == 0
    assert sennit("get", "c").exit_code == 3


def test_bad_lines_are_left_out_on_request(sennit: Cli) -> None:
    done = sennit("import", "--skip-bad", "--json", input=BAD)
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["added"] == 2
    assert [bad["line"] for bad in report["bad"]] == [2, 4]
    assert [json.loads(line)["error"]["type"] for line in done.stderr.splitlines()] == ["BadLine"] * 2


def test_a_check_writes_nothing(sennit: Cli, home: Path) -> None:
    assert sennit("import", "--check", input=jsonl(RECORDS)).stderr == "3 lines can be imported.\n"
    done = sennit("import", "--check", "--skip-bad", "--json", input=BAD)
    assert done.exit_code == 2
    assert [bad["line"] for bad in json.loads(done.stdout)["bad"]] == [2, 4]
    assert list(home.iterdir()) == []


def test_a_file_that_is_not_there(sennit: Cli, home: Path) -> None:
    assert sennit("import", "nothing.jsonl").exit_code == 3
    assert sennit("import", ".").exit_code == 2


# Single records, recipes


def test_get_shows_every_field(filled: Cli) -> None:
    assert json.loads(filled("get", "path", "--json").stdout) == RECORDS[2]
    shown = filled("get", "bread").stdout
    assert "title: Sunday bread" in shown
    assert shown.endswith("Knead the dough and bake it in a hot oven.\n")


def test_remove_is_all_or_none(filled: Cli) -> None:
    done = filled("remove", "boat", "nobody")
    assert done.exit_code == 3
    assert filled("get", "boat").exit_code == 0
    done = filled("remove", "boat", "nobody", "--missing-ok", "--json")
    assert json.loads(done.stdout) == {"removed": 1, "missing": ["nobody"]}
    assert filled("get", "boat").exit_code == 3
    assert filled("search", "ferry", "--recipe", "keyword").stdout == ""


def test_recipes_are_listed_with_those_of_the_settings(sennit: Cli, home: Path) -> None:
    (home / "sennit.toml").write_text(
        '[recipes.mine]\nbase = "rrf"\nabout = "My own."\n[search]\nrecipe = "mine"\n'
    )
    listed = json.loads(sennit("recipes", "--json").stdout)["recipes"]
    mine = next(recipe for recipe in listed if recipe["name"] == "mine")
    assert (mine["about"], mine["default"], mine["built_in"]) == ("My own.", True, False)
    assert mine["fusion"] == next(recipe for recipe in listed if recipe["name"] == "rrf")["fusion"]
    assert "mine *" in sennit("recipes").stdout


# Settings


def test_config_says_where_a_value_came_from(
    sennit: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "sennit.toml").write_text("[keyword]\nb = 0.75\n")
    monkeypatch.setenv("SENNIT_SEARCH_LIMIT", "7")
    rows = {row["key"]: row for row in json.loads(sennit("config", "--json").stdout)["settings"]}
    assert rows["keyword.b"]["value"] == 0.75
    assert rows["keyword.b"]["origin"] == str(home / "sennit.toml")
    assert rows["search.limit"]["origin"] == "SENNIT_SEARCH_LIMIT"
    assert rows["store.fold_at"]["origin"] == "default"
    assert rows["store.fold_at"]["variable"] == "SENNIT_STORE_FOLD_AT"
    assert "keyword.b" in sennit("config").stdout


def test_a_folder_is_trusted_by_name(sennit: Cli, home: Path) -> None:
    (home / "sennit.toml").write_text('[embedding]\nprovider = "ollama"\n')
    refused = sennit("config")
    assert refused.exit_code == 2
    assert "sennit config trust" in refused.stderr
    assert sennit("config", "trust", ".").exit_code == 0
    assert sennit("config").exit_code == 0
    assert json.loads(sennit("config", "untrust", "--json").stdout)["was_trusted"] is True
    assert sennit("config").exit_code == 2


# Models


def test_models_shows_what_the_database_has(filled: Cli) -> None:
    listed = json.loads(filled("models", "--json").stdout)
    (model,) = listed["models"]
    assert (model["name"], model["state"], model["pending"]) == ("static/sennit-static-256", "active", 0)
    assert model["records"] == 3
    assert filled("models", "list").stdout == filled("models").stdout


def test_models_needs_no_database(sennit: Cli) -> None:
    assert json.loads(sennit("models", "--json").stdout)["models"] == []
    assert sennit("models", "--db", "nowhere").exit_code == 3


def test_the_model_is_changed_in_the_foreground(filled: Cli) -> None:
    before = json.loads(filled("models", "--json").stdout)["models"][0]["fingerprint"]
    with library.open(".sennit", embedding__dimensions=64) as db:
        db.vectors.settle()
    done = filled("models", "use", "static", "--json")
    assert json.loads(done.stdout) == {"model": "static/sennit-static-256", "state": "active", "records": 3}
    (model,) = json.loads(filled("models", "--json").stdout)["models"]
    assert model["fingerprint"] == before
    assert filled("doctor").exit_code == 0


def test_a_model_of_another_size_takes_over(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENNIT_EMBEDDING_DIMENSIONS", "64")
    said = filled("models", "use", "static").stderr
    assert said.endswith("The model is static/sennit-static-256, for 3 records.\n")
    (model,) = json.loads(filled("models", "--json").stdout)["models"]
    assert (model["dimensions"], model["state"]) == (64, "active")
    assert json.loads(filled("search", "ferry", "--json").stdout)["hits"][0]["id"] == "boat"
    assert filled("doctor").exit_code == 0


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [("none", 2, "switches embedding off"), ("nobody", 2, "one of"), ("onnx/nothing", 3, "not installed")],
)
def test_a_model_that_cannot_be_used(filled: Cli, name: str, code: int, said: str) -> None:
    done = filled("models", "use", name)
    assert done.exit_code == code
    assert said in done.stderr
    (model,) = json.loads(filled("models", "--json").stdout)["models"]
    assert model["name"] == "static/sennit-static-256"


def test_a_setting_that_would_change_the_model_back_is_pointed_out(
    filled: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_EMBEDDING_PROVIDER", "none")
    assert "SENNIT_EMBEDDING_PROVIDER names none" in filled("models", "use", "static").stderr


# Doctor, demo


def test_doctor_finds_and_repairs(filled: Cli, home: Path) -> None:
    with library.open(".sennit") as db:
        db.optimise()
    assert filled("doctor").exit_code == 0
    damaged = next((home / ".sennit" / "index" / "keyword").glob("*.seg"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    found = filled("doctor", "--json")
    assert found.exit_code == 6
    answer = json.loads(found.stdout)
    assert answer["ok"] is False
    (problem,) = [finding for finding in answer["findings"] if finding["level"] == "problem"]
    assert (problem["check"], problem["repairable"]) == ("keyword index", True)
    repaired = filled("doctor", "--repair")
    assert repaired.exit_code == 0
    assert "repaired  rebuilt the keyword index from the records" in repaired.stdout
    assert filled("doctor").exit_code == 0


def test_doctor_tells_how_many_records_wait_for_a_vector(filled: Cli, home: Path) -> None:
    def told() -> list[str]:
        found = json.loads(filled("doctor", "--json").stdout)["findings"]
        return [finding["message"] for finding in found if finding["check"] == "backlog"]

    assert told() == ["static/sennit-static-256 (active): no record waits for a vector"]
    with contextlib.closing(sqlite3.connect(home / ".sennit" / "sennit.db")) as connection, connection:
        (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
        connection.execute("INSERT INTO pending SELECT 1, row FROM records LIMIT 1")
    assert told() == [f"static/sennit-static-256 (active): 1 of {count} records wait"]


def test_the_demo_holds_what_it_says(sennit: Cli, home: Path) -> None:
    done = sennit("demo", "--json")
    answer = json.loads(done.stdout)
    assert [step for step in answer["steps"] if not step["ok"]] == []
    assert done.exit_code == 0
    assert list(home.iterdir()) == []
    assert "All " in sennit("demo", "--db", "kept").stdout
    assert sennit("doctor", "--db", "kept").exit_code == 0
    assert sennit("demo", "--db", "kept").exit_code == 2
