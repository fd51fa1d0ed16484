"""`sennit plan` and `sennit introspect`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import CODE, Cli


@pytest.fixture
def coded(sennit: Cli, home: Path, project: Path) -> Cli:
    """The program in a folder with code that is indexed."""
    done = sennit("index", project.name, "--recipe", "code")
    assert done.exit_code == 0, done.stderr
    return sennit


def test_a_plan_is_a_block_for_a_prompt_and_says_its_size_beside(coded: Cli, home: Path) -> None:
    done = coded("plan", "fix auth.py", "--max-tokens", "1000")
    assert done.exit_code == 0, done.stderr
    path = (home / "project" / "auth.py").resolve()
    assert done.stdout == (
        f"{path}:1-2 login\n```python\ndef login(name):\n    return check(name)\n```\n\n"
        f"{path}:5-6 check\n```python\ndef check(name):\n    return bool(name)\n```\n"
    )
    assert "2 entities, " in done.stderr
    assert "of 1,000 tokens (o200k_base)." in done.stderr


def test_a_plan_as_json_has_everything(coded: Cli) -> None:
    plan = json.loads(coded("plan", "`check`", "--max-entities", "1", "--json").stdout)
    assert [entry["qualified"] for entry in plan["entries"]] == ["check"]
    assert plan["entries"][0]["text"].startswith("def check")
    assert [one["wanted"] for one in plan["dropped"]] == ["anchor:caller"]


def test_what_does_not_fit_can_be_shortened(coded: Cli, home: Path) -> None:
    body = "".join(f"    step_{n} = {n}\n" for n in range(60))
    (home / "project" / "long.py").write_text(f"def long_way():\n{body}    return the_answer\n")
    coded("index", "project", "--recipe", "code")
    whole = coded("plan", "the_answer of `long_way`", "--max-tokens", "120")
    assert "def long_way" not in whole.stdout
    assert "is left out" in whole.stderr
    short = coded("plan", "the_answer of `long_way`", "--max-tokens", "120", "--partial")
    assert "def long_way():\n… (60 lines left out)\n    return the_answer\n" in short.stdout


def test_of_many_that_are_left_out_the_first_are_named_and_the_rest_counted(coded: Cli, home: Path) -> None:
    many = "".join(f"def step_{n}():\n    return {n}\n\n\n" for n in range(12))
    (home / "project" / "many.py").write_text(many)
    coded("index", "project", "--recipe", "code")
    done = coded("plan", "look at many.py", "--max-entities", "1", "--episode", "e")
    assert done.stderr.count("is left out: the plan has its 1 entity") == 5
    assert "6 more are left out; 'sennit introspect e' lists them all" in done.stderr
    assert coded("plan", "look at many.py", "--max-entities", "1", "--quiet").stderr == ""
    dropped = json.loads(coded("introspect", "e", "--json").stdout)["dropped"]
    assert sum(one["wanted"] == "anchor:explicit_file_mention" for one in dropped) == 11


def test_an_episode_can_be_looked_into(coded: Cli, home: Path) -> None:
    coded("plan", "`check`", "--episode", "e", "--max-entities", "1")
    coded("plan", "`login`", "--episode", "e")
    last = coded("introspect", "e")
    assert last.exit_code == 0
    assert "e, turn 2 of 2" in last.stdout
    assert "anchor:explicit_symbol_mention" in last.stdout
    first = coded("introspect", "e", "--turn", "1")
    assert "Dropped:" in first.stdout
    assert "the plan has its 1 entity" in first.stdout
    (home / "project" / "auth.py").write_text(CODE.replace("bool(name)", "name is not None"))
    coded("index", "project", "--recipe", "code")
    again = coded("introspect", "e", "--turn", "1", "--replay")
    assert "changed" in again.stdout
    assert again.stdout.rstrip().endswith("auth.py::check")
    values = json.loads(coded("introspect", "e", "--json", "--replay").stdout)
    assert values["turns"] == [1, 2]
    assert len(values["replay"]["changed"]) == 1


def test_an_episode_that_is_not_there_is_not_found(coded: Cli) -> None:
    done = coded("introspect", "nothing")
    assert done.exit_code == 3
    assert "There is no episode 'nothing'" in done.stderr


def test_a_budget_of_nothing_is_wrong_usage(coded: Cli) -> None:
    done = coded("plan", "x", "--max-tokens", "0")
    assert done.exit_code == 2
    assert "max_tokens" in done.stderr


def test_an_unknown_recipe_is_not_found(coded: Cli) -> None:
    assert coded("index", "project", "--recipe", "nothing").exit_code == 3
