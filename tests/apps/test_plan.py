"""`sennit plan` and `sennit introspect`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import CODE, Cli


@pytest.fixture
def code_cli(cli: Cli, home: Path, project: Path) -> Cli:
    """Runs the program in a folder with indexed code."""
    done = cli("index", project.name, "--recipe", "code")
    assert done.exit_code == 0, done.stderr
    return cli


def test_plan_goes_to_stdout_and_its_size_to_stderr(code_cli: Cli, home: Path) -> None:
    done = code_cli("plan", "fix auth.py", "--max-tokens", "1000")
    assert done.exit_code == 0, done.stderr
    path = "project/auth.py"
    assert done.stdout == (
        f"{path}:1-2 login\n```python\ndef login(name):\n    return check(name)\n```\n\n"
        f"{path}:5-6 check\n```python\ndef check(name):\n    return bool(name)\n```\n"
    )
    assert "2 entities, " in done.stderr
    assert "of 1,000 tokens (o200k_base)." in done.stderr


def test_plan_as_json_has_all_fields(code_cli: Cli) -> None:
    plan = json.loads(code_cli("plan", "`check`", "--max-tokens", "40", "--json").stdout)
    assert [entry["qualified"] for entry in plan["entries"]] == ["check"]
    assert plan["entries"][0]["text"].startswith("def check")
    assert [one["selection_reason"] for one in plan["dropped"]] == ["anchor:caller"]


def test_partial_shortens_an_entity_that_does_not_fit(code_cli: Cli, home: Path) -> None:
    body = "".join(f"    step_{n} = {n}\n" for n in range(60))
    (home / "project" / "long.py").write_text(f"def long_way():\n{body}    return the_answer\n")
    code_cli("index", "project", "--recipe", "code")
    outline = code_cli("plan", "the_answer of `long_way`", "--max-tokens", "120")
    assert "def long_way():\n… (61 lines left out)\n" in outline.stdout
    assert "anchors_shortened" in outline.stderr
    short = code_cli("plan", "the_answer of `long_way`", "--max-tokens", "120", "--partial")
    assert "def long_way():\n… (60 lines left out)\n    return the_answer\n" in short.stdout


def test_warnings_name_the_first_dropped_entities_and_count_the_rest(code_cli: Cli, home: Path) -> None:
    many = "".join(f"def step_{n}():\n    return {n}\n\n\n" for n in range(12))
    (home / "project" / "many.py").write_text(many)
    code_cli("index", "project", "--recipe", "code")
    done = code_cli("plan", "look at many.py", "--max-tokens", "40", "--episode", "e")
    assert done.stderr.count("is dropped: it has ") == 5
    assert "6 more are dropped; 'sennit introspect e' lists them all" in done.stderr
    assert code_cli("plan", "look at many.py", "--max-tokens", "40", "--quiet").stderr == ""
    dropped = json.loads(code_cli("introspect", "e", "--json").stdout)["dropped"]
    assert sum(one["selection_reason"] == "anchor:explicit_file_mention" for one in dropped) == 11


def test_introspect_shows_the_plans_of_an_episode(code_cli: Cli, home: Path) -> None:
    code_cli("plan", "`check`", "--episode", "e", "--max-tokens", "40")
    code_cli("plan", "`login`", "--episode", "e")
    last = code_cli("introspect", "e")
    assert last.exit_code == 0
    assert "e, turn 2 of 2" in last.stdout
    assert "anchor:explicit_symbol_mention" in last.stdout
    first = code_cli("introspect", "e", "--turn", "1")
    assert "Dropped:" in first.stdout
    assert "of 40 are left" in first.stdout
    (home / "project" / "auth.py").write_text(CODE.replace("bool(name)", "name is not None"))
    code_cli("index", "project", "--recipe", "code")
    again = code_cli("introspect", "e", "--turn", "1", "--replay")
    assert "changed" in again.stdout
    assert again.stdout.rstrip().endswith("auth.py::check")
    values = json.loads(code_cli("introspect", "e", "--json", "--replay").stdout)
    assert (values["episode_id"], values["turns"]) == ("e", [1, 2])
    assert values["entities"][0]["included_at"] == 1
    assert len(values["replay"]["changed"]) == 1


def test_missing_episode_is_not_found(code_cli: Cli) -> None:
    done = code_cli("introspect", "nothing")
    assert done.exit_code == 3
    assert "There is no episode 'nothing'" in done.stderr


def test_budget_of_zero_is_a_usage_error(code_cli: Cli) -> None:
    done = code_cli("plan", "x", "--max-tokens", "0")
    assert done.exit_code == 2
    assert "max_tokens" in done.stderr


def test_unknown_recipe_is_not_found(code_cli: Cli) -> None:
    assert code_cli("index", "project", "--recipe", "nothing").exit_code == 3
