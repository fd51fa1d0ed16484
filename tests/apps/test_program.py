"""The program as a whole: help, exit codes, options that every command has, and how it ends."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sennit.apps.cli.exits import MEANINGS
from sennit.apps.cli.program import COMMANDS, program

from .conftest import RECORDS, Cli, Run, jsonl

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands() -> dict[str, click.Command]:
    """Every command and subcommand by its full name."""
    context = click.Context(program, info_name="sennit")
    out: dict[str, click.Command] = {}
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        out[name] = command
        if isinstance(command, click.Group):
            out |= {f"{name} {inner}": part for inner, part in command.commands.items()}
    return out


@pytest.mark.parametrize("name", commands())
def test_every_command_has_help_and_a_place_in_the_docs(sennit: Cli, name: str) -> None:
    done = sennit(*name.split(), "--help")
    assert done.exit_code == 0
    usage = done.stdout.splitlines()[0].removeprefix("Usage: ")
    assert usage.startswith(f"sennit {name} ")
    assert usage in DOCS, "docs/cli.md must have the usage line of every command"
    assert commands()[name].help, "a command says what it is for"
    for option in ("--db", "--json", "--quiet", "--verbose"):
        assert option in done.stdout


@pytest.mark.parametrize("name", commands())
def test_every_option_is_in_the_docs(name: str) -> None:
    for parameter in commands()[name].params:
        if isinstance(parameter, click.Option):
            assert max(parameter.opts, key=len) in DOCS, f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_in_the_help_is_a_sentence(name: str) -> None:
    assert re.fullmatch(r"[A-Z].*\.", COMMANDS[name].help)


def test_the_docs_list_the_exit_codes() -> None:
    for code, meaning in MEANINGS.items():
        assert f"| {code} | {meaning} |" in DOCS


def test_the_program_as_a_process(run: Run) -> None:
    assert run("--version").stdout.startswith("sennit ")
    done = run("import", input=jsonl(RECORDS))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "3 records: 3 added, 0 updated, 0 unchanged.\n"
    assert Path(".sennit/sennit.db").is_file()
    found = run("search", "ferry", "--json")
    assert found.returncode == 0
    assert json.loads(found.stdout)["hits"][0]["id"] == "boat"
    assert run("search", "ferry", "-n", "1").stdout.startswith(" 1  ")
    assert run("doctor", "--quick").returncode == 0
    gone = run("get", "nobody", "--json")
    assert gone.returncode == 3
    assert json.loads(gone.stderr) == {
        "error": {"type": "NotFound", "message": "There is no record 'nobody'."}
    }
    assert run("serch").returncode == 2


def test_a_reader_that_stops_is_no_error(run: Run) -> None:
    run("import", input=jsonl([{"id": str(at), "text": "word " * 200} for at in range(2000)]))
    sennit = Path(sys.executable).with_name("sennit")
    for command in (f"{sennit} export", f"{sennit} search word -n 1000"):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{command} | head -c 10"], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    assert "_SENNIT_COMPLETE" in run("completion", shell).stdout


def test_completion_completes(run: Run) -> None:
    env = {"_SENNIT_COMPLETE": "bash_complete", "COMP_WORDS": "sennit sea", "COMP_CWORD": "1"}
    assert run(env=env).stdout == "plain,search\n"
    env = {"_SENNIT_COMPLETE": "bash_complete", "COMP_WORDS": "sennit search --expl", "COMP_CWORD": "2"}
    assert run(env=env).stdout == "plain,--explain\n"


def test_a_home_that_cannot_be_written_is_enough(run: Run, home: Path) -> None:
    locked = home / "home"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    env = {"HOME": str(locked), "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    try:
        assert run("import", input=jsonl(RECORDS), env=env).returncode == 0
        for command in (("search", "ferry"), ("models",), ("config",), ("doctor",), ("demo",)):
            done = run(*command, env=env)
            assert done.returncode == 0, done.stderr
        assert list(locked.iterdir()) == []
    finally:
        locked.chmod(stat.S_IRWXU)


def test_an_interrupt_leaves_with_130(home: Path) -> None:
    code = (
        "import signal, sys\n"
        "from sennit.apps.cli import main\n"
        "class Input:\n"
        "    def isatty(self): return False\n"
        "    @property\n"
        "    def buffer(self): return self\n"
        "    def readline(self, _): signal.raise_signal(signal.SIGINT)\n"
        "sys.stdin = Input()\n"
        "sys.argv = ['sennit', 'import']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (130, "")


# Which database


def test_the_nearest_database_above_is_used(filled: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(home / "a" / "b")
    assert filled("get", "boat").exit_code == 0
    filled("import", input=jsonl([{"id": "deep", "text": "from below"}]))
    assert not (home / "a" / "b" / ".sennit").exists()
    assert filled("get", "deep").exit_code == 0


def test_the_option_wins_over_the_variable(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    filled("--db", "other", "import", input=jsonl([{"id": "x", "text": "other"}]))
    monkeypatch.setenv("SENNIT_DB", "nowhere")
    assert "nowhere" in filled("get", "x").stderr
    assert filled("get", "x", "--db", "other").exit_code == 0
    assert filled("--db", "other", "get", "x").exit_code == 0
    monkeypatch.setenv("SENNIT_DB", "other")
    assert filled("get", "x").exit_code == 0


@pytest.mark.parametrize(
    "command", [("search", "x"), ("why", "x", "y"), ("get", "x"), ("remove", "x"), ("export",), ("doctor",)]
)
def test_reading_never_makes_a_database(sennit: Cli, home: Path, command: tuple[str, ...]) -> None:
    done = sennit(*command)
    assert done.exit_code == 3
    assert "sennit import" in done.stderr
    assert sennit(*command, "--db", "there").exit_code == 3
    assert list(home.iterdir()) == []


def test_a_folder_with_other_things_is_left_alone(sennit: Cli, home: Path) -> None:
    (home / "photos").mkdir()
    (home / "photos" / "cat.jpg").touch()
    done = sennit("import", "--db", "photos", input=jsonl(RECORDS))
    assert done.exit_code == 4
    assert "cat.jpg" in done.stderr


# Errors


def test_errors_are_sentences_and_the_traceback_is_for_those_who_ask(
    sennit: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "sennit.toml").write_text("[search]\nlimit = 0\n")
    done = sennit("import", input=jsonl(RECORDS))
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert "search.limit" in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.setenv("SENNIT_DEBUG", "1")
    assert "Traceback" in sennit("import", input=jsonl(RECORDS)).stderr


def test_what_should_not_happen_is_still_a_sentence(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("sennit.stores.embedded.store.EmbeddedStore.get", broken)
    done = filled("get", "boat")
    assert done.exit_code == 1
    assert "KeyError: 'oops'" in done.stderr
    assert "SENNIT_DEBUG=1" in done.stderr


def test_usage_errors_are_json_where_json_is_wanted(sennit: Cli) -> None:
    error = json.loads(sennit("search", "--json").stderr)["error"]
    assert error["type"] == "UsageError"
    assert "Usage: sennit search" in error["message"]
    assert sennit("search", "--", "--json").stderr.startswith("Error:")


def test_bytes_that_are_no_text_are_refused(filled: Cli) -> None:
    done = filled("search", "\udcff")
    assert done.exit_code == 2
    assert "not valid UTF-8" in done.stderr


def test_a_damaged_database_is_told_apart_from_a_missing_one(filled: Cli, home: Path) -> None:
    (home / ".sennit" / "sennit.db").write_bytes(b"this is not a database" * 1000)
    done = filled("search", "ferry")
    assert done.exit_code == 4
    assert "damaged" in done.stderr
    checked = filled("doctor")
    assert checked.exit_code == 6
    assert checked.stdout.startswith("problem")


def test_logging_is_asked_for(filled: Cli, home: Path) -> None:
    for path in (home / ".sennit" / "index").rglob("*"):
        if path.is_file():
            path.unlink()
    (home / ".sennit" / "index" / "keyword").mkdir(parents=True, exist_ok=True)
    (home / ".sennit" / "index" / "keyword" / "manifest.json").write_text("{}")
    assert "sennit: " in filled("search", "ferry").stderr
    assert filled("search", "ferry", "-q").stderr == ""
