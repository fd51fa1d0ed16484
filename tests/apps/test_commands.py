"""The commands around records, settings, models and the database."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from pathlib import Path

import pytest

import sennit as library
from sennit.jsonl import read_records

from .conftest import RECORDS, Cli, jsonl, parse_command

# Import and export


def test_export_and_import_round_trip(filled_cli: Cli, home: Path) -> None:
    done = filled_cli("export", "all.jsonl", "--json")
    assert json.loads(done.stdout) == {"file": "all.jsonl", "records": 3}
    with (home / "all.jsonl").open("rb") as stream:
        exported = list(read_records(stream))
    assert [record.id for record in exported] == ["boat", "bread", "path"]
    assert filled_cli("import", "all.jsonl", "--db", "copy").exit_code == 0
    again = filled_cli("export", "--db", "copy")
    assert again.stdout_bytes == (home / "all.jsonl").read_bytes()
    assert sorted(path.name for path in home.iterdir()) == [".sennit", "all.jsonl", "copy"]


def test_export_to_an_unwritable_path_is_a_usage_error(filled_cli: Cli, home: Path) -> None:
    done = filled_cli("export", "nowhere/all.jsonl")
    assert done.exit_code == 2
    assert "cannot be written" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="a pipe with a name")
def test_export_into_a_pipe_keeps_the_pipe(filled_cli: Cli, home: Path) -> None:
    pipe = home / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert filled_cli("export", "pipe").exit_code == 0
    assert os.read(reading, 100).startswith(b'{"sennit":')
    os.close(reading)
    assert pipe.is_fifo()


def test_export_through_a_link_keeps_the_link(filled_cli: Cli, home: Path) -> None:
    (home / "link.jsonl").symlink_to("all.jsonl")
    assert filled_cli("export", "link.jsonl").exit_code == 0
    assert (home / "link.jsonl").is_symlink()
    assert (home / "all.jsonl").read_bytes().startswith(b'{"sennit":')


def test_import_reports_counts(filled_cli: Cli) -> None:
    changed = [RECORDS[0], {"id": "boat", "text": "The ferry is late."}, {"id": "new", "text": "x"}]
    done = filled_cli("import", "--json", input=jsonl(changed))
    assert json.loads(done.stdout) == {"read": 3, "added": 1, "updated": 1, "unchanged": 1, "bad": []}


BAD = '{"id": "a", "text": "one"}\n{"id": "b"}\n{"id": "c", "text": "three"}\nnonsense\n'


def test_invalid_line_stops_the_import_and_keeps_earlier_records(cli: Cli) -> None:
    done = cli("import", input=BAD)
    assert done.exit_code == 2
    assert "Line 2: A record needs the field 'text'" in done.stderr
    assert "1 record: 1 added" in done.stderr
    assert cli("get", "a").exit_code == 0
    assert cli("get", "c").exit_code == 3


def test_skip_bad_skips_invalid_lines(cli: Cli) -> None:
    done = cli("import", "--skip-bad", "--json", input=BAD)
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["added"] == 2
    assert [bad["line"] for bad in report["bad"]] == [2, 4]
    assert [json.loads(line)["error"]["type"] for line in done.stderr.splitlines()] == ["BadLine"] * 2


def test_import_check_writes_nothing(cli: Cli, home: Path) -> None:
    assert cli("import", "--check", input=jsonl(RECORDS)).stderr == "3 lines can be imported.\n"
    done = cli("import", "--check", "--skip-bad", "--json", input=BAD)
    assert done.exit_code == 2
    assert [bad["line"] for bad in json.loads(done.stdout)["bad"]] == [2, 4]
    assert list(home.iterdir()) == []


def test_import_of_a_missing_file(cli: Cli, home: Path) -> None:
    assert cli("import", "nothing.jsonl").exit_code == 3
    assert cli("import", ".").exit_code == 2


# Single records, recipes


def test_get_shows_every_field(filled_cli: Cli) -> None:
    assert json.loads(filled_cli("get", "path", "--json").stdout) == RECORDS[2]
    shown = filled_cli("get", "bread").stdout
    assert "title: Sunday bread" in shown
    assert shown.endswith("Knead the dough and bake it in a hot oven.\n")


def test_remove_is_atomic(filled_cli: Cli) -> None:
    done = filled_cli("remove", "boat", "nobody")
    assert done.exit_code == 3
    assert filled_cli("get", "boat").exit_code == 0
    done = filled_cli("remove", "boat", "nobody", "--missing-ok", "--json")
    assert json.loads(done.stdout) == {"removed": 1, "missing": ["nobody"]}
    assert filled_cli("get", "boat").exit_code == 3
    assert filled_cli("search", "ferry", "--recipe", "keyword").stdout == ""


def test_recipes_lists_recipes_of_the_settings(cli: Cli, home: Path) -> None:
    (home / "sennit.toml").write_text(
        '[recipes.mine]\nbase = "rrf"\nabout = "My own."\n[search]\nrecipe = "mine"\n'
    )
    listed = json.loads(cli("recipes", "--json").stdout)["recipes"]
    mine = next(recipe for recipe in listed if recipe["name"] == "mine")
    assert (mine["about"], mine["default"], mine["built_in"]) == ("My own.", True, False)
    assert mine["fusion"] == next(recipe for recipe in listed if recipe["name"] == "rrf")["fusion"]
    assert "mine *" in cli("recipes").stdout


# Settings


def test_config_shows_the_origin_of_a_value(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "sennit.toml").write_text("[keyword]\nb = 0.75\n")
    monkeypatch.setenv("SENNIT_SEARCH_LIMIT", "7")
    rows = {row["key"]: row for row in json.loads(cli("config", "--json").stdout)["settings"]}
    assert rows["keyword.b"]["value"] == 0.75
    assert rows["keyword.b"]["origin"] == str(home / "sennit.toml")
    assert rows["search.limit"]["origin"] == "SENNIT_SEARCH_LIMIT"
    assert rows["store.flush_at"]["origin"] == "default"
    assert rows["store.flush_at"]["variable"] == "SENNIT_STORE_FLUSH_AT"
    assert "keyword.b" in cli("config").stdout


PASSWORD = "open-sesame-9"


def test_config_shows_no_password(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in (
        f"postgresql://ana:{PASSWORD}@db.example:5432/notes",
        f"postgresql://ana:1@2/{PASSWORD}@db.example:5432/notes",
        f"postgresql://db.example:5432/notes?user=ana&password={PASSWORD}",
    ):
        monkeypatch.setenv("SENNIT_POSTGRES_URL", url)
        listed, shown = cli("config", "--json"), cli("config")
        assert PASSWORD not in listed.stdout + shown.stdout
        rows = {row["key"]: row["value"] for row in json.loads(listed.stdout)["settings"]}
        assert "db.example:5432/notes" in rows["postgres.url"]


def test_config_shows_no_password_of_a_table(cli: Cli, home: Path) -> None:
    (home / "sennit.toml").write_text(
        '[attached.tickets]\nserver = "postgres"\nid = "id"\ntext = "body"\nkeyword = "words"\n'
        f'source = "postgresql://ana:{PASSWORD}@db.example/tickets"\n'
    )
    assert cli("config", "trust", ".").exit_code == 0
    shown = cli("config", "--json").stdout + cli("config").stdout
    assert "db.example/tickets" in shown
    assert PASSWORD not in shown


def test_folder_can_be_trusted_and_untrusted(cli: Cli, home: Path) -> None:
    (home / "sennit.toml").write_text('[embedding]\nprovider = "ollama"\n')
    refused = cli("config")
    assert refused.exit_code == 2
    assert "sennit config trust" in refused.stderr
    assert cli("config", "trust", ".").exit_code == 0
    assert cli("config").exit_code == 0
    assert json.loads(cli("config", "untrust", "--json").stdout)["was_trusted"] is True
    assert cli("config").exit_code == 2


# Models


def test_models_lists_the_models_of_the_database(filled_cli: Cli) -> None:
    listed = json.loads(filled_cli("models", "--json").stdout)
    (model,) = listed["models"]
    assert (model["name"], model["state"], model["pending"]) == ("static/sennit-static-256", "active", 0)
    assert model["records"] == 3
    assert filled_cli("models", "list").stdout == filled_cli("models").stdout


def test_models_needs_no_database(cli: Cli) -> None:
    assert json.loads(cli("models", "--json").stdout)["models"] == []
    assert cli("models", "--db", "nowhere").exit_code == 3


def test_models_use_builds_vectors_in_the_foreground(filled_cli: Cli) -> None:
    before = json.loads(filled_cli("models", "--json").stdout)["models"][0]["fingerprint"]
    with library.open(".sennit", embedding__dimensions=64) as db:
        db.embeddings.select_model()
    done = filled_cli("models", "use", "static", "--json")
    assert json.loads(done.stdout) == {"model": "static/sennit-static-256", "state": "active", "records": 3}
    (model,) = json.loads(filled_cli("models", "--json").stdout)["models"]
    assert model["fingerprint"] == before
    assert filled_cli("doctor").exit_code == 0


def test_model_with_other_dimensions_replaces_the_old_one(
    filled_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_EMBEDDING_DIMENSIONS", "64")
    message = filled_cli("models", "use", "static").stderr
    assert message.endswith("The model is static/sennit-static-256, for 3 records.\n")
    (model,) = json.loads(filled_cli("models", "--json").stdout)["models"]
    assert (model["dimensions"], model["state"]) == (64, "active")
    assert json.loads(filled_cli("search", "ferry", "--json").stdout)["hits"][0]["id"] == "boat"
    assert filled_cli("doctor").exit_code == 0


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [("none", 2, "switches embedding off"), ("nobody", 2, "one of"), ("onnx/nothing", 3, "not installed")],
)
def test_unusable_model_leaves_the_old_one_active(
    filled_cli: Cli, name: str, code: int, message: str
) -> None:
    done = filled_cli("models", "use", name)
    assert done.exit_code == code
    assert message in done.stderr
    (model,) = json.loads(filled_cli("models", "--json").stdout)["models"]
    assert model["name"] == "static/sennit-static-256"


def test_models_use_warns_about_a_conflicting_setting(
    filled_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_EMBEDDING_PROVIDER", "none")
    assert "SENNIT_EMBEDDING_PROVIDER names none" in filled_cli("models", "use", "static").stderr


# Doctor, demo


def test_doctor_finds_and_repairs(filled_cli: Cli, home: Path) -> None:
    with library.open(".sennit") as db:
        db.admin.optimise()
    assert filled_cli("doctor").exit_code == 0
    damaged = next((home / ".sennit" / "index" / "keyword").glob("*.seg"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    found = filled_cli("doctor", "--json")
    assert found.exit_code == 6
    answer = json.loads(found.stdout)
    assert answer["ok"] is False
    (problem,) = [finding for finding in answer["findings"] if finding["level"] == "problem"]
    assert (problem["check"], problem["repairable"]) == ("keyword index", True)
    repaired = filled_cli("doctor", "--repair")
    assert repaired.exit_code == 0
    assert "repaired  rebuilt the keyword index from the records" in repaired.stdout
    assert filled_cli("doctor").exit_code == 0


def test_doctor_reports_records_without_a_vector(filled_cli: Cli, home: Path) -> None:
    def backlog_messages() -> list[str]:
        found = json.loads(filled_cli("doctor", "--json").stdout)["findings"]
        return [finding["message"] for finding in found if finding["check"] == "pending vectors"]

    assert backlog_messages() == ["static/sennit-static-256 (active): no record lacks a vector"]
    with contextlib.closing(sqlite3.connect(home / ".sennit" / "sennit.db")) as connection, connection:
        (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
        connection.execute("INSERT INTO pending_vectors SELECT 1, row FROM records LIMIT 1")
    assert backlog_messages() == [f"static/sennit-static-256 (active): 1 of {count} records lack a vector"]


def test_demo_checks_pass(cli: Cli, home: Path) -> None:
    done = cli("demo", "--json")
    answer = json.loads(done.stdout)
    assert [step for step in answer["steps"] if not step["ok"]] == []
    assert done.exit_code == 0
    assert list(home.iterdir()) == []
    assert "All " in cli("demo", "--db", "kept").stdout
    assert cli("doctor", "--db", "kept").exit_code == 0
    assert cli("demo", "--db", "kept").exit_code == 2


def test_demo_text_is_readable_at_80_columns_and_ends_with_three_commands(cli: Cli) -> None:
    lines = cli("demo").stdout.splitlines()
    assert [line[5:] for line in lines if re.match(r"[1-5]/5  ", line)] == [
        "memory", "docs", "artifacts", "files", "code",
    ]  # fmt: skip
    assert [line for line in lines if len(line) > 80 and not line.startswith("  $ cp -r ")] == []
    assert "\x1b" not in "".join(lines)
    assert lines[-4] == "Try next, in a folder of your own:"
    assert all(line.startswith("  sennit ") for line in lines[-3:])


def test_demo_commands_parse(cli: Cli) -> None:
    shown = [line[4:] for line in cli("demo").stdout.splitlines() if line.startswith("  $ sennit ")]
    assert len(shown) == 10
    for line in shown:
        parse_command(line)


def test_facts_extract_shows_what_is_over_and_ends_the_stored_fact(cli: Cli) -> None:
    cli("remember", "I work at Acme.", "--speaker", "Priya")
    assert "works at Acme (90% sure)" in cli("facts", "extract").stdout
    cli("remember", "i left Acme, finally", "--speaker", "Priya")
    assert "over: Priya -> Acme: works at / member of" in cli("facts", "extract").stdout
    (ended,) = json.loads(cli("facts", "extract", "--json").stdout)["ended"]
    assert (ended["subject"], ended["object"]) == ("Priya", "Acme")
    assert "superseded_at" in cli("facts", "list", "--history", "--json").stdout


def test_a_text_is_remembered_as_of_the_time_at_which_it_was_said(cli: Cli) -> None:
    cli("remember", "I work at Acme.", "--speaker", "Priya", "--time", "2026-03-01T09:30")
    cli("facts", "extract")
    (record,) = json.loads(cli("list", "--collection", "memory", "--json").stdout)["records"]
    assert record["timestamp"] == "2026-03-01T09:30:00+00:00"
    assert "2026-03-01" in cli("facts", "list").stdout


def test_a_time_that_is_none_is_refused_before_anything_is_stored(cli: Cli, home: Path) -> None:
    done = cli("remember", "I work at Acme.", "--time", "yesterday")
    assert done.exit_code == 2
    assert "Not a valid time: 'yesterday'" in done.stderr
    assert not (home / ".sennit").exists()
