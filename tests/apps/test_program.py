"""The program as a whole: help, exit codes, common options, errors."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from sennit.apps.cli.exit_codes import MEANINGS
from sennit.apps.cli.output import pluralize
from sennit.apps.cli.program import COMMANDS, program

from .conftest import RECORDS, Cli, Run, jsonl, parse_command

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")


def commands() -> dict[str, click.Command]:
    """Return every command and subcommand by its full name."""
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
def test_every_command_has_help_and_is_documented(cli: Cli, name: str) -> None:
    done = cli(*name.split(), "--help")
    assert done.exit_code == 0
    usage = done.stdout.splitlines()[0].removeprefix("Usage: ")
    assert usage.startswith(f"sennit {name} ")
    assert usage in DOCS, "docs/reference/cli.md must have the usage line of every command"
    assert commands()[name].help, "a command says what it is for"
    for option in ("--db", "--json", "--quiet", "--verbose"):
        assert option in done.stdout


@pytest.mark.parametrize("name", commands())
def test_help_has_a_sentence_and_an_example_that_parses(name: str) -> None:
    text = inspect.cleandoc(commands()[name].help or "")
    sentence, _, rest = text.partition("\n\n")
    assert re.fullmatch(r"[A-Z].*\.", sentence), "the help begins with one sentence on one line"
    assert len(sentence) <= 100
    heading, *examples = rest.partition("\n\n")[0].splitlines()[1:]
    assert heading == "Example:"
    assert examples
    for example in examples:
        parse_command(example.rpartition("|")[2])


@pytest.mark.parametrize("name", commands())
def test_every_option_is_documented(name: str) -> None:
    for parameter in commands()[name].params:
        if isinstance(parameter, click.Option):
            assert max(parameter.opts, key=len) in DOCS, f"{name} {parameter.opts}"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_line_is_a_sentence(name: str) -> None:
    assert re.fullmatch(r"[A-Z].*\.", COMMANDS[name].help)


def test_exit_codes_are_documented() -> None:
    for code, meaning in MEANINGS.items():
        assert f"| {code} | {meaning} |" in DOCS


def test_commands_run_as_a_process(run: Run) -> None:
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


def test_closed_pipe_is_not_an_error(run: Run) -> None:
    run("import", input=jsonl([{"id": str(at), "text": "word " * 200} for at in range(2000)]))
    sennit = Path(sys.executable).with_name("sennit")
    for command in (f"{sennit} export", f"{sennit} search word -n 1000"):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{command} | head -c 10"], capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_the_module_is_the_program(run: Run) -> None:
    for args in (["--help"], ["get", "nobody", "--json"]):
        module = subprocess.run([sys.executable, "-m", "sennit", *args], capture_output=True, text=True)
        program = run(*args)
        assert (module.returncode, module.stdout, module.stderr) == (
            program.returncode,
            program.stdout,
            program.stderr,
        )


@pytest.mark.skipif(os.name != "posix", reason="a POSIX shell closes the streams")
@pytest.mark.parametrize(
    ("command", "closing", "code"),
    [
        ("import", "<&-", 0),
        ("search ferry", ">&-", 0),
        ("search ferry --json", "<&- >&- 2>&-", 0),
        ("get nobody", "2>&-", 3),
    ],
)
def test_closed_streams_change_no_exit_code(filled_cli: Cli, command: str, closing: str, code: int) -> None:
    stdin = "</dev/null" if "<" not in closing else ""
    done = subprocess.run(
        f"{shlex.quote(sys.executable)} -m sennit {command} {stdin} {closing}",
        shell=True,
        capture_output=True,
    )
    assert done.returncode == code, done.stderr
    assert b"Unexpected" not in done.stderr
    assert filled_cli("doctor").exit_code == 0, "no output went into a file of the database"


def test_an_error_that_nobody_reads_keeps_its_exit_code(filled_cli: Cli) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "sennit", "get", "nobody"], stderr=write, check=False)
    os.close(write)
    assert done.returncode == 3


@pytest.mark.skipif(os.name != "posix", reason="other systems keep the folder of a process")
@pytest.mark.parametrize("command", ["status", "search ferry", "index .", "demo"])
def test_a_current_folder_that_is_gone_is_named(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    gone = home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = cli(*command.split())
    assert (done.exit_code, done.stderr) == (
        3,
        "Error: The current folder no longer exists. Change to another one.\n",
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run: Run, shell: str) -> None:
    assert "_SENNIT_COMPLETE" in run("completion", shell).stdout


def test_completion_of_commands_and_options(run: Run) -> None:
    env = {"_SENNIT_COMPLETE": "bash_complete", "COMP_WORDS": "sennit sea", "COMP_CWORD": "1"}
    assert run(env=env).stdout == "plain,search\n"
    env = {"_SENNIT_COMPLETE": "bash_complete", "COMP_WORDS": "sennit search --expl", "COMP_CWORD": "2"}
    assert run(env=env).stdout == "plain,--explain\n"


def test_commands_work_with_a_read_only_home(run: Run, home: Path) -> None:
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


@pytest.mark.usefixtures("default_sigint")
def test_interrupt_exits_with_130(home: Path) -> None:
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


INTERRUPTED_IMPORT: Final = """
import signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""
INTERRUPTED_END: Final = """
import atexit, signal
atexit.register(lambda: signal.raise_signal(signal.SIGINT))
"""


@pytest.mark.usefixtures("default_sigint")
@pytest.mark.skipif(os.name != "posix", reason="other systems have no signals that end a process")
@pytest.mark.parametrize("before", [INTERRUPTED_IMPORT, INTERRUPTED_END], ids=["import", "end"])
def test_an_interrupt_while_the_program_starts_or_ends_prints_nothing(before: str) -> None:
    code = f"{before}\nfrom sennit.apps.cli import main\nsys.argv = ['sennit', 'recipes', '-q']\nmain()\n"
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@pytest.mark.skipif(os.name != "posix", reason="other systems have no signals that are ignored")
def test_an_ignored_interrupt_stays_ignored() -> None:
    code = f"import signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{INTERRUPTED_IMPORT}{INTERRUPTED_END}"
    code += "from sennit.apps.cli import main\nsys.argv = ['sennit', '--version']\nmain()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("option", ["--help", "--version", "search --help"])
def test_help_whose_reader_has_gone_is_no_error(option: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "sennit", *option.split()]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_an_error_has_no_colours_where_none_are_wanted(
    monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    runner = CliRunner()
    assert "\x1b[" in runner.invoke(program, ["nope"], color=True).stderr
    monkeypatch.setenv(*variable)
    assert "\x1b[" not in runner.invoke(program, ["nope"], color=True).stderr
    assert "\x1b[" not in runner.invoke(program, ["config", "nope"], color=True).stderr


def test_an_argument_is_utf_8_whatever_the_locale(filled_cli: Cli) -> None:
    code = "from sennit.apps.cli import main; main()"
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, "remember", "Grüße"]
    done = subprocess.run(command, capture_output=True, env=env)
    assert done.returncode == 0, done.stderr
    assert "Grüße" in filled_cli("search", "Grüße", "--json").stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_the_same_error_for_a_file_and_for_standard_output(
    filled_cli: Cli, home: Path
) -> None:
    (home / "full").symlink_to("/dev/full")
    done = filled_cli("export", "full")
    assert done.exit_code == 4
    assert done.stderr == "Error: full: No space left on device. Free some space and try again.\n"


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("facts list", "There are no facts; "),
        ("facts list Ana", "There are no facts about Ana; "),
        ("tokens list", "There are no tokens; "),
        ("rankers list", "There are no rankers; "),
        ("experiment status", "There are no experiments; "),
        ("feedback list", "There is no feedback; "),
        ("list --sessions", "There are no sessions; "),
        ("index empty", "No file was found: "),
        ("plan ''", "The query is empty. "),
        ("plan 'fix the login'", "No code is indexed here. "),
    ],
)
def test_a_command_with_nothing_to_show_says_what_to_do(
    filled_cli: Cli, home: Path, command: str, note: str
) -> None:
    (home / "empty").mkdir()
    done = filled_cli(*shlex.split(command))
    assert done.exit_code == 0
    assert note in done.stderr


def test_misspelt_names_in_a_list_and_a_removal_are_refused(filled_cli: Cli) -> None:
    listed = filled_cli("list", "--collection", "defalt")
    assert listed.exit_code == 3
    assert "There is no collection 'defalt'. Did you mean 'default'?" in listed.stderr
    assert "No record has the field 'knd'" in filled_cli("list", "--filter", 'knd = "x"').stderr
    assert "No record has the field 'knd'" in filled_cli("remove", "--where", 'knd != "x"', "--yes").stderr
    assert filled_cli("get", "boat").exit_code == 0


# Start


def test_help_and_completion_of_no_command_import_what_only_its_work_needs() -> None:
    code = (
        "import sys, click\n"
        "from sennit.apps.cli.program import COMMANDS, program\n"
        "context = click.Context(program)\n"
        "commands = [program.get_command(context, name) for name in COMMANDS]\n"
        "for command in commands: command.get_help(click.Context(command))\n"
        "print(*{'numpy', 'pydantic', 'rich', 'tokenizers', 'yaml', 'sennit.engine'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("\n", "")


# Which database


def test_nearest_database_above_is_used(filled_cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(home / "a" / "b")
    assert filled_cli("get", "boat").exit_code == 0
    filled_cli("import", input=jsonl([{"id": "deep", "text": "from below"}]))
    assert not (home / "a" / "b" / ".sennit").exists()
    assert filled_cli("get", "deep").exit_code == 0


def test_db_option_wins_over_the_variable(filled_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    filled_cli("--db", "other", "import", input=jsonl([{"id": "x", "text": "other"}]))
    monkeypatch.setenv("SENNIT_DB", "nowhere")
    assert "nowhere" in filled_cli("get", "x").stderr
    assert filled_cli("get", "x", "--db", "other").exit_code == 0
    assert filled_cli("--db", "other", "get", "x").exit_code == 0
    monkeypatch.setenv("SENNIT_DB", "other")
    assert filled_cli("get", "x").exit_code == 0


@pytest.mark.parametrize(
    "command", [("search", "x"), ("why", "x", "y"), ("get", "x"), ("remove", "x"), ("export",), ("doctor",)]
)
def test_reading_commands_never_create_a_database(cli: Cli, home: Path, command: tuple[str, ...]) -> None:
    done = cli(*command)
    assert done.exit_code == 3
    assert "sennit import" in done.stderr
    assert cli(*command, "--db", "there").exit_code == 3
    assert list(home.iterdir()) == []


def test_folder_with_other_files_is_refused(cli: Cli, home: Path) -> None:
    (home / "photos").mkdir()
    (home / "photos" / "cat.jpg").touch()
    done = cli("import", "--db", "photos", input=jsonl(RECORDS))
    assert done.exit_code == 4
    assert "cat.jpg" in done.stderr


# Errors


def test_traceback_is_shown_only_with_sennit_debug(
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "sennit.toml").write_text("[search]\nlimit = 0\n")
    done = cli("import", input=jsonl(RECORDS))
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: ")
    assert "search.limit" in done.stderr
    assert "Traceback" not in done.stderr
    monkeypatch.setenv("SENNIT_DEBUG", "1")
    assert "Traceback" in cli("import", input=jsonl(RECORDS)).stderr


def test_unexpected_error_is_a_sentence(filled_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("sennit.engine.references.ReferenceResolver.find", broken)
    done = filled_cli("get", "boat")
    assert done.exit_code == 1
    assert "KeyError: 'oops'" in done.stderr
    assert "SENNIT_DEBUG=1" in done.stderr


def test_usage_errors_are_json_with_json_option(cli: Cli) -> None:
    error = json.loads(cli("search", "--json").stderr)["error"]
    assert error["type"] == "UsageError"
    assert "Usage: sennit search" in error["message"]
    assert cli("search", "--", "--json").stderr.startswith("Error:")


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("search ferry --paths-from nothing", 3, "There is no file nothing."),
        ("search ferry --paths-from .", 2, ". cannot be read: "),
        ("search ferry --paths-from binary", 2, "binary is not UTF-8 text (byte 0)."),
        ("search ferry --editor nothing", 3, "There is no file nothing."),
        ("facts import nothing", 3, "There is no file nothing."),
        ("facts import binary", 2, "binary is not UTF-8 text (byte 0)."),
        ("facts import list.jsonl", 2, "Line 1: a fact is an object with subject, relation and object"),
        ("facts import misspelt.jsonl", 2, "Line 1: a fact has no field 'objekt'"),
        ("judge . --from nothing", 3, "There is no file nothing."),
        ("judge . --from binary", 2, "binary is not UTF-8 text (byte 0)."),
        ("facts import .", 2, ". cannot be read: "),
        ("remember --from nothing", 3, "There is no file nothing."),
        ("remember --from .", 2, ". cannot be read: "),
        ("remember --from binary", 2, "binary is not UTF-8 text (byte 0)."),
        ("feedback import nothing", 3, "There is no file nothing."),
        ("feedback import .", 2, ". cannot be read: "),
        ("feedback import binary", 2, "binary is not UTF-8 text (byte 0)."),
        ("rankers add nothing", 3, "There is no file nothing."),
        ("rankers add .", 2, ". cannot be read: "),
        ("read a.md --folder nothing", 3, "There is no folder 'nothing' to read in."),
        ("remember ''", 2, "Give either a TEXT to remember"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_exit_code(
    filled_cli: Cli, home: Path, command: str, code: int, message: str
) -> None:
    (home / "binary").write_bytes(b"\xff\xfe\x00")
    (home / "list.jsonl").write_text("[1]\n")
    fact = {"subject": "Ana", "relation": "knows", "object": "Rui", "objekt": "Eva"}
    (home / "misspelt.jsonl").write_text(json.dumps(fact))
    done = filled_cli(*shlex.split(command))
    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.startswith(f"Error: {message}")


def test_invalid_utf8_argument_is_refused(filled_cli: Cli) -> None:
    done = filled_cli("search", "\udcff")
    assert done.exit_code == 2
    assert "not valid UTF-8" in done.stderr
    assert "'-c' / '--collection'" in filled_cli("list", "-c", "\udcff").stderr


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        ("", "it is empty"),
        ("notes.txt", "'notes.txt' is a file. A database is a folder."),
        (".sennit/sennit.db", "A database is a folder, here '.sennit'."),
    ],
)
def test_a_target_that_is_no_folder_says_what_to_give(
    filled_cli: Cli, home: Path, target: str, advice: str
) -> None:
    (home / "notes.txt").write_text("no database")
    done = filled_cli("--db", target, "status")
    assert done.exit_code == 2
    assert advice in done.stderr


def test_damaged_database_has_its_own_exit_code(filled_cli: Cli, home: Path) -> None:
    (home / ".sennit" / "sennit.db").write_bytes(b"this is not a database" * 1000)
    done = filled_cli("search", "ferry")
    assert done.exit_code == 4
    assert "damaged" in done.stderr
    checked = filled_cli("doctor")
    assert checked.exit_code == 6
    assert checked.stdout.startswith("problem")


def test_quiet_suppresses_log_warnings(filled_cli: Cli, home: Path) -> None:
    for path in (home / ".sennit" / "index").rglob("*"):
        if path.is_file():
            path.unlink()
    (home / ".sennit" / "index" / "keyword").mkdir(parents=True, exist_ok=True)
    (home / ".sennit" / "index" / "keyword" / "manifest.json").write_text("{}")
    assert "sennit: " in filled_cli("search", "ferry").stderr
    assert filled_cli("search", "ferry", "-q").stderr == ""


@pytest.mark.parametrize(
    ("words", "same_as"),
    [
        ("help", "--help"),
        ("help search", "search --help"),
        ("help tokens add", "tokens add --help"),
        ("version", "--version"),
        ("version --json", "--version"),
        ("-V", "--version"),
    ],
)
def test_help_and_version_are_commands_too(words: str, same_as: str) -> None:
    found, expected = (CliRunner().invoke(program, one.split()) for one in (words, same_as))
    assert found.exit_code == 0
    assert found.stdout == expected.stdout


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("rm x", "Did you mean 'remove'?"),
        ("add x", "Did you mean 'index', 'import' or 'remember'?"),
        ("tokens create ana", "Did you mean 'add'?"),
        ("facts delete x", "Did you mean 'remove'?"),
        ("rankers lst", "Did you mean 'list'?"),
        ("config frobnicate", "'sennit config --help' lists the commands."),
        ("config set search.recipe memory", "change one in sennit.toml or with its environment variable."),
        ("update .", "Did you mean 'index'?"),
        ("restore notes.jsonl", "Did you mean 'import'?"),
        ("save x", "Did you mean 'remember' or 'import'?"),
        ("models use minilm", "Give the provider before the model, such as onnx/minilm."),
    ],
)
def test_a_command_of_other_programs_suggests_ours(words: str, advice: str) -> None:
    result = CliRunner().invoke(program, words.split(), prog_name="sennit")
    assert result.exit_code == 2
    assert advice in result.stderr


def test_a_group_without_a_command_prints_its_help_and_no_error() -> None:
    result = CliRunner().invoke(program, ["facts"], prog_name="sennit")
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: sennit facts")


@pytest.mark.parametrize(
    ("number", "noun", "shown"),
    [
        (1, "query", "1 query"),
        (2, "query", "2 queries"),
        (0, "match", "0 matches"),
        (1200, "record", "1,200 records"),
    ],
)
def test_a_number_has_the_right_plural(number: int, noun: str, shown: str) -> None:
    assert pluralize(number, noun) == shown
