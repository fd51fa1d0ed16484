"""The tables of docs/quality.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.folders import write_folder
from sennit.errors import InvalidInput
from sennit.evaluation.datasets import read_collection
from sennit.evaluation.quality import BEGIN_MARKER, END_MARKER, render_tables, write_tables
from sennit.evaluation.run import EvaluationOptions, Measurement, evaluate
from sennit.settings import Settings

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Measurement]:
    folder = tmp_path_factory.mktemp("quality")
    collections = [read_collection(write_folder(folder / name)) for name in ("a", "b")]
    return evaluate(collections, EvaluationOptions(models=["static"]), Settings())


def test_tables_have_a_row_per_collection_and_a_mean(measured: list[Measurement]) -> None:
    text = render_tables(measured)
    lines = text.splitlines()
    assert lines[0] == "## nDCG@10, model `static`"
    assert lines[2] == "| collection | keyword | vector | links | rrf | default |"
    assert [line.split("|")[1].strip() for line in lines[4:7]] == ["a", "b", "**mean**"]
    assert "## All metrics" in text
    assert "Python" in lines[-1]


def test_only_text_between_the_markers_is_replaced(tmp_path: Path, measured: list[Measurement]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{BEGIN_MARKER}\nold\n{END_MARKER}\n\nAfter.\n", encoding="utf-8")
    write_tables(page, measured)
    once = page.read_text(encoding="utf-8")
    assert once.startswith(f"# Before\n\n{BEGIN_MARKER}\n\n## ")
    assert once.endswith(f"\n{END_MARKER}\n\nAfter.\n")
    assert "old" not in once
    write_tables(page, measured)
    assert page.read_text(encoding="utf-8") == once


def test_page_without_markers_is_not_changed(tmp_path: Path, measured: list[Measurement]) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Mine\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="table:begin"):
        write_tables(page, measured)
    assert page.read_text(encoding="utf-8") == "# Mine\n"
    with pytest.raises(InvalidInput, match="cannot be read"):
        write_tables(tmp_path / "absent.md", measured)


def test_quality_page_has_the_markers() -> None:
    text = (ROOT / "docs" / "quality.md").read_text(encoding="utf-8")
    assert text.index(BEGIN_MARKER) < text.index(END_MARKER)
