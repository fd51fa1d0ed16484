"""The keys of `--json` are those of docs/reference/cli.md, for every command, also for empty answers."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import pytest
from click.testing import CliRunner, Result

import sennit
from evaluation.test_learning import few_trees, small_ranker, write_svmlight  # noqa: F401
from sennit.apps.cli.exit_codes import NOT_CONFIRMED, OK
from sennit.apps.cli.program import COMMANDS, program
from sennit.ranking.ranker import RankerScope

from .conftest import Cli

SAMPLES: Final = Path(sennit.__file__).parent / "samples"
FACT: Final = sennit.Fact(subject="Priya", relation="lives in", object="Pune")
PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"

SETUP: Final = (
    "import {samples}/demo.jsonl",
    "index {samples}/docs {samples}/code",
    "remember --from {samples}/conversation.txt",
    "remember 'The spare key is under the blue pot' --session home",
    "facts add Priya 'lives in' Pune",
    "facts extract",
    "tokens add reader",
    "plan 'fix the login in auth.go' --episode e1",
    "plan 'and the store' --episode e1",
    "experiment start meaning default vector",
    "feedback add judge note/bread --grade 3 --query 'bake bread'",
    "feedback export ubi.json",
    "rankers add ranker.json",
)
"""What the database of every case holds: the sample data of the package, and one of everything else."""

CASES: Final = (
    ("import", "import new.jsonl"),
    ("import", "import --check new.jsonl"),
    ("export FILE", "export all.jsonl"),
    ("get", "get note/bread"),
    ("remove", "remove note/bread"),
    ("remove", "remove nobody --missing-ok"),
    ("remove", "remove --where 'kind = \"nothing\"' --yes"),
    ("list", "list"),
    ("list", "list --filter 'kind = \"nothing\"'"),
    ("list --files", "list --files"),
    ("list --sessions", "list --sessions"),
    ("status", "status"),
    ("forget", "forget home --yes"),
    ("index", "index {samples}/docs"),
    ("read", "read notes.md --folder ."),
    ("grep", "grep lease --folder {samples}/docs"),
    ("grep", "grep nothing-of-that-kind --folder {samples}/docs"),
    ("search", "search how long is a lease"),
    ("search", "search how long is a lease --explain --neighbours 1 --project docs"),
    ("search", "search how long is a lease --recipe docs"),
    ("search", "search lease --recipe keyword --filter 'kind = \"nothing\"'"),
    ("why", "why bake bread note/bread"),
    ("why", "why bake bread note/boiler --limit 1"),
    ("recipes", "recipes"),
    ("ask", "ask how long is a lease"),
    ("ask", "ask how long is a lease --prompt"),
    ("ask", "ask ''"),
    ("remember TEXT", "remember 'Ana prefers the aisle'"),
    ("remember --from", "remember --from {samples}/conversation.txt"),
    ("context", "context where does Priya live"),
    ("context", "context ''"),
    ("facts add", "facts add Ana 'lives in' Porto"),
    ("facts list", "facts list"),
    ("facts list", "facts list nobody"),
    ("facts import", "facts import facts.jsonl"),
    ("facts extract", "facts extract --dry-run"),
    ("facts remove", "facts remove {fact}"),
    ("plan", "plan 'fix the login in auth.go'"),
    ("plan", "plan zebra"),
    ("introspect", "introspect e1"),
    ("introspect", "introspect e1 --replay"),
    ("tokens add", "tokens add writer --write"),
    ("tokens list", "tokens list"),
    ("tokens remove", "tokens remove reader"),
    ("install", "install"),
    ("install AGENT", "install cursor --print"),
    ("tools", "tools"),
    ("tools call", "tools call list_records '{{}}'"),
    ("models list", "models list"),
    ("models", "models"),
    ("models use", "models use static"),
    ("config", "config"),
    ("config trust", "config trust ."),
    ("config untrust", "config untrust ."),
    ("doctor", "doctor --quick"),
    ("optimise", "optimise"),
    ("migrate", "migrate copy"),
    ("eval", "eval labelled"),
    ("eval", "eval labelled --recipe default --recipe keyword"),
    ("tune", "tune labelled --dry-run"),
    ("judge", "judge mine --query 'bake bread' --limit 1"),
    ("judge --from", "judge labelled --from grades.jsonl"),
    ("feedback add", "feedback add click note/bread --query 'bake bread'"),
    ("feedback list", "feedback list"),
    ("feedback export", "feedback export run.txt --format run"),
    ("feedback import", "feedback import ubi.json"),
    ("feedback forget", "feedback forget --yes"),
    ("learn", "learn --svmlight features.txt --dry-run"),
    ("rankers list", "rankers list"),
    ("rankers add", "rankers add ranker.json"),
    ("rankers export", "rankers export long exported.json"),
    ("rankers remove", "rankers remove long"),
    ("experiment start", "experiment stop meaning && experiment start second default rrf"),
    ("experiment status", "experiment status"),
    ("experiment report", "experiment report"),
    ("experiment stop", "experiment stop meaning"),
    ("demo", "demo --db shown"),
    ("completion", "completion bash"),
)

RUN_ELSEWHERE: Final = {"serve", "mcp --http", "open", "models install"}
"""Commands that listen until they are stopped, or fetch a file from a network; their own tests read what they print."""

NO_OBJECT: Final = {"tui", "export"}
"""A screen, and the records themselves on standard output."""


class Shape(NamedTuple):
    """Keys by name, and which of them may be missing."""

    keys: Mapping[str, Shape | None]
    optional: frozenset[str]


def read_tables() -> tuple[dict[str, str], dict[str, str]]:
    """Return the cells of the tables of shapes and of commands by what is in their first columns."""
    section = PAGE.read_text(encoding="utf-8").partition("## JSON output")[2]
    tables = section.split("| command | keys |")
    rows = [re.findall(r"^\| (.+?) \| (.+) \|$", table, re.MULTILINE) for table in tables]
    shapes, commands = (
        {name.strip("`"): cell for names, cell in table for name in names.split(", ")} for table in rows
    )
    return shapes, commands


SHAPES, DOCUMENTED = read_tables()


def read_shape(cell: str) -> Shape:
    """Return the keys that a cell documents: `name`, `name`? if it may be missing, `name` (…) with keys of its own."""
    keys: dict[str, Shape | None] = {}
    optional: set[str] = set()
    for shape in re.findall(r"those of (?:a |an )?(\w+)", cell):
        named = read_shape(SHAPES[shape])
        keys |= named.keys
        optional |= named.optional
    for name, mark, inner in re.findall(r"`(\w+)`(\?)?(?: \(([^()]*)\))?", cell):
        body = SHAPES.get(inner, inner)
        keys[name] = read_shape(body) if "`" in body else None
        optional |= {name} if mark else set()
    return Shape(keys, frozenset(optional))


def check_shape(value: Mapping[str, Any], shape: Shape, where: str) -> None:
    """Assert that an object has the documented keys, and no others."""
    assert set(value) <= set(shape.keys), f"{where} has keys that {PAGE.name} does not document"
    assert set(shape.keys) - shape.optional <= set(value), f"{where} lacks documented keys"
    for name, inner in shape.keys.items():
        found = value.get(name, [])
        for item in found if isinstance(found, list) else [found]:
            if inner is not None:
                check_shape(item, inner, f"{where}.{name}")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database that holds the sample data, and the files that the cases name."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "notes.md").write_text("# Notes\n\nA lease is thirty seconds.\n")
    (folder / "new.jsonl").write_text('{"id": "new", "text": "The ferry leaves at noon."}\n')
    (folder / "facts.jsonl").write_text('{"subject": "Ana", "relation": "knows", "object": "Rui"}\n')
    (folder / "grades.jsonl").write_text('{"query": "q1", "id": "note/bread", "grade": 3}\n')
    write_svmlight(folder / "features.txt")
    labelled = folder / "labelled"
    labelled.mkdir()
    numbers = range(24)
    for name, prefix, text in (("corpus", "d", "the passage about number"), ("queries", "q", "number")):
        lines = [json.dumps({"_id": f"{prefix}{n}", "text": f"{text} {n}"}) + "\n" for n in numbers]
        (labelled / f"{name}.jsonl").write_text("".join(lines))
    grades = "".join(f"q{n}\td{n}\t1\n" for n in numbers)
    (labelled / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{grades}")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SENNIT_PRIVACY_OPEN", "true")
        with sennit.open(".sennit") as db:
            (folder / "ranker.json").write_text(small_ranker(db, RankerScope()).to_json())
        for line in SETUP:
            done = run(line)
            assert done.exit_code == 0, (line, done.output)
    return folder


def run(line: str, *more: str) -> Result:
    words = shlex.split(line.format(samples=SAMPLES, fact=FACT.id))
    return CliRunner().invoke(program, [*words, *more], prog_name="sennit")


@pytest.mark.parametrize(("row", "line"), CASES, ids=[line for _, line in CASES])
@pytest.mark.usefixtures("few_trees")
def test_json_has_the_documented_keys(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, line: str
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(filled, folder)
    monkeypatch.chdir(folder)
    for name, value in {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "SENNIT_PRIVACY_OPEN": "true"}.items():
        monkeypatch.setenv(name, value)
    *before, last = line.split(" && ")
    for one in before:
        assert run(one).exit_code == 0
    done = run(last, "--json")
    assert done.exit_code in (OK, NOT_CONFIRMED), done.output
    for text in done.stdout.splitlines():
        value = json.loads(text)
        if row == "recipes":
            assert all({"name", "default", "built_in"} <= set(one) for one in value[row])
        else:
            check_shape(value, read_shape(DOCUMENTED[row]), row)
    assert done.stdout


def test_every_command_has_a_row_and_a_case() -> None:
    context = click.Context(program, info_name="sennit")
    for name in COMMANDS:
        command = program.get_command(context, name)
        parts = command.commands if isinstance(command, click.Group) else {}
        for full in [f"{name} {part}" for part in parts] or [name]:
            if full not in NO_OBJECT:
                rows = [row for row in DOCUMENTED if f"{row} ".startswith(f"{full} ")]
                assert rows, f"{full} has no row in the table of {PAGE.name}"
    cases = {row for row, _ in CASES}
    assert set(DOCUMENTED) - {"---"} - cases == RUN_ELSEWHERE


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("tokens", 2),
        ("search", 2),
        ("nothing", 2),
        ("search x --nothing", 2),
        ("get nobody", 3),
        ("read nothing.md", 3),
        ("index nothing", 3),
        ("import nothing.jsonl", 3),
        ("tui", 2),
        ("eval nothing", 3),
    ],
)
def test_an_error_is_one_object(filled_cli: Cli, line: str, code: int) -> None:
    done = filled_cli(*line.split(), "--json")
    assert (done.exit_code, done.stdout) == (code, "")
    error = json.loads(done.stderr)["error"]
    assert set(error) == {"type", "message"}
    assert error["message"]
