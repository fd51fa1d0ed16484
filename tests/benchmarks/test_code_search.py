"""The code search benchmark, with semble if it is installed."""

from __future__ import annotations

import json
from importlib import util
from pathlib import Path

import pytest

from benchmarks import code, cross_validation, plans
from sennit.recipes.builtin import CODE_SEARCH

SOURCES = {
    "shop/basket.py": 'class Basket:\n    """What a customer wants to buy."""\n\n    def add(self, item): ...\n',
    "shop/payment.py": 'def charge(card):\n    """Take the money from a credit card."""\n    return card\n',
}
QUESTIONS = [
    {"query": "charging a credit card", "relevant": ["shop/payment.py"], "category": "semantic"},
    {"query": "Basket", "relevant": ["shop/basket.py"], "category": "symbol"},
    {"query": "how things are bought", "relevant": list(SOURCES), "category": "architecture"},
]


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    data, projects = tmp_path / "data", tmp_path / "projects"
    (data / "annotations").mkdir(parents=True)
    names = [f"shop{number}" for number in range(cross_validation.FOLD_COUNT)]
    for name in names:
        (data / "annotations" / f"{name}.json").write_text(json.dumps(QUESTIONS))
        for path, text in SOURCES.items():
            file = projects / f"{name}-1.0" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    manifest = {name: {"version": "1.0", "benchmark_root": "shop"} for name in names}
    (data / "MANIFEST.json").write_text(json.dumps(manifest))
    return ["--data", str(data), "--projects", str(projects), "--rounds", "1"]


def test_every_installed_system_has_a_row(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code.main(arguments)
    told = capsys.readouterr()
    rows = [line.split(" | ") for line in told.out.splitlines()]
    assert rows[2][0] == "| sennit"
    assert rows[2][5] == "1.0000"
    if util.find_spec("semble") is None:
        assert len(rows) == 3
        assert "semble is not installed" in told.err
    else:
        assert rows[3][0] == "| semble"


def test_cross_validation_prints_a_row_for_each_fold(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_validation, "FACTORS", (1.0, 2.0))
    code.main([*arguments, "--folds"])
    rows = capsys.readouterr().out.splitlines()
    # Nothing improves on these projects, so the shipped constants stay.
    assert [row.split(" | ")[0] for row in rows[2:6]] == ["| shop0", "| shop1", "| shop2", "| mean"]
    assert all("| as shipped |" in row for row in rows[2:5])


def test_cross_validation_starts_from_the_shipped_constants() -> None:
    assert cross_validation.recipe_with(cross_validation.SHIPPED).stages == CODE_SEARCH.stages
    assert cross_validation.recipe_with(cross_validation.SHIPPED).sources == CODE_SEARCH.sources
    assert set(cross_validation.SHIPPED) >= {use.name for use in CODE_SEARCH.sources}


def test_plans_are_measured_beside_plain_search(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plans.main([*arguments[:4], "--budgets", "500"])
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "|  | questions | plan, 500 | plain, 500 |"
    assert rows[2] == "| data | 9 | 1.000 | 1.000 |"
