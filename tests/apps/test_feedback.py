"""`sennit feedback` and `sennit experiment`, as commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sennit
from sennit import Caller, Record
from sennit.evaluation.feedback_formats import from_svmlight

from .conftest import Cli


def test_the_commands_record_export_import_and_forget(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SENNIT_FEEDBACK_RECORD", "all")
    monkeypatch.setenv("SENNIT_FEEDBACK_FEATURES", "true")
    with sennit.open(".sennit") as db:
        db.add([Record(id="a b", text="prune the vines"), Record(id="c", text="grapes and vines")])
    query_id = json.loads(cli("search", "vines", "--json").stdout)["query_id"]
    added = cli("feedback", "add", "click", "a b", "--query-id", query_id, "--json")
    assert json.loads(added.stdout)["events"][0]["query_id"] == query_id
    cli("feedback", "add", "judge", "c", "--grade", "2", "--query", "grapes")
    assert "click" in cli("feedback", "list").stdout
    for name in ("ubi", "run", "qrels", "beir", "svmlight"):
        assert cli("feedback", "export", f"out.{name}", "--format", name).exit_code == 0
    assert "a%20b" in Path("out.qrels").read_text()
    assert len(list(from_svmlight(Path("out.svmlight").read_text().split("\n")))) >= 3
    before = cli("feedback", "list", "--json").stdout
    assert cli("feedback", "forget", "--json").exit_code == 2
    assert json.loads(cli("feedback", "forget", "--yes", "--json").stdout) == {"removed": 2}
    assert cli("feedback", "import", "out.ubi").exit_code == 0
    assert json.loads(cli("feedback", "list", "--json").stdout) == json.loads(before)
    cli("feedback", "forget", "--yes")
    for name in ("run", "qrels", "svmlight"):
        assert cli("feedback", "import", f"out.{name}", "--format", name).exit_code == 2
        done = cli(
            "feedback", "import", f"out.{name}", "--format", name, "--queries", "out.beir/queries.jsonl"
        )
        assert done.exit_code == 0, done.stderr
    assert cli("feedback", "import", "out.beir", "--format", "beir").exit_code == 0
    assert cli("feedback", "import", "missing.json").exit_code == 3
    assert cli("feedback", "add", "click", "zz", "--query", "vines").exit_code == 3


def test_the_commands_run_an_experiment(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with sennit.open(".sennit") as db:
        db.add([Record(id=f"r{at}", text=f"vines in row {at}") for at in range(9)])
    assert cli("experiment", "report").exit_code == 3
    assert cli("experiment", "start", "e", "keyword", "keyword").exit_code == 2
    assert json.loads(cli("experiment", "start", "e", "keyword", "vector", "--json").stdout)["stopped"] == ""
    with sennit.open(".sennit") as db:
        for number in range(6):
            caller = Caller(name=f"u{number}")
            result = db.search("vines row", recipe="keyword", caller=caller)
            db.feedback.add(result.query_id, "click", result[0].id, caller=caller)
    found = json.loads(cli("experiment", "report", "--json", "--plot", "plot.svg").stdout)
    assert (found["searches"], found["decisions"], found["winner"]) == (6, 6, None)
    assert Path("plot.svg").read_text().startswith("<svg")
    report = cli("experiment", "report", "e").stdout
    assert "6 searches, 6 decisions" in report
    assert "No winner yet." in report
    assert cli("experiment", "stop", "e").exit_code == 0
    assert "stopped" in cli("experiment", "status").stdout
