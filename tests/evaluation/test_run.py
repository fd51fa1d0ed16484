"""Measuring: the systems of a recipe, scopes, categories, models, kept databases, and what a folder says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaluation.folders import JUDGED, write_folder
from sennit.errors import InvalidInput, NotFound
from sennit.evaluation.datasets import read_collection
from sennit.evaluation.report import (
    HEADERS,
    degraded_warnings,
    measurement_to_dict,
    query_result_dicts,
    table_rows,
)
from sennit.evaluation.run import EvaluationOptions, Measurement, build_systems, evaluate, parse_model
from sennit.ranking.fusion import RRF
from sennit.recipes import BUILTIN_RECIPES
from sennit.settings import Settings

SETTINGS = Settings()


def measured(
    folder: Path, options: EvaluationOptions | None = None, settings: Settings = SETTINGS
) -> dict[str, Measurement]:
    found = evaluate([read_collection(folder)], options or EvaluationOptions(), settings)
    return {one.system: one for one in found}


# Systems


def test_a_recipe_is_measured_beside_its_sources_and_rrf() -> None:
    systems = build_systems(BUILTIN_RECIPES["default"])
    assert [system.name for system in systems] == ["keyword", "vector", "links", "rrf", "default"]
    assert [len(system.recipe.sources) for system in systems] == [1, 1, 1, 3, 3]
    assert systems[3].recipe.fusion == RRF(k=60, first_rank=1)
    assert systems[4].recipe == BUILTIN_RECIPES["default"]


def test_what_would_be_the_same_is_measured_once() -> None:
    assert [system.name for system in build_systems(BUILTIN_RECIPES["rrf"])] == ["keyword", "vector", "rrf"]
    assert [system.name for system in build_systems(BUILTIN_RECIPES["keyword"])] == ["keyword"]


def test_a_second_recipe_adds_only_what_is_new(tmp_path: Path) -> None:
    found = evaluate(
        [read_collection(write_folder(tmp_path / "c"))],
        EvaluationOptions(recipes=["default", "rrf"]),
        SETTINGS,
    )
    assert [one.system for one in found] == ["keyword", "vector", "links", "rrf", "default"]


# MetricValues


def test_figures_are_those_of_the_ranking(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c", judged="q1\tpear\t1\nq2\tapple\t1\nq2\tbrick\t1\n"))
    keyword = found["keyword"]
    # "green pear" finds the pear alone; "red" finds the two red things and nothing else.
    assert [sorted(result.ranking) for result in keyword.query_results] == [["pear"], ["apple", "brick"]]
    assert keyword.metrics == {"nDCG@10": 1.0, "MRR@10": 1.0, "R@5": 1.0, "R@10": 1.0, "R@100": 1.0}
    assert all(result.milliseconds > 0 for one in found.values() for result in one.query_results)
    assert {one.documents for one in found.values()} == {4}


def test_the_first_ten_are_measured_as_a_search_for_ten_gives_them(tmp_path: Path) -> None:
    documents = [{"_id": f"d{at:03}", "text": "same words"} for at in range(60)]
    queries = [{"_id": "q", "text": "same words"}]
    judged = "q\td000\t1\nq\td020\t1\n"
    folder = write_folder(tmp_path / "c", documents=documents, queries=queries, judged=judged)
    keyword = measured(folder)["keyword"]
    assert len(keyword.query_results[0].ranking) == 10
    assert keyword.metrics["R@10"] == 0.5
    assert keyword.metrics["R@100"] == 1.0


def test_only_the_first_queries_are_asked_when_told(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c"), EvaluationOptions(max_queries=1))
    assert [result.query.id for result in found["default"].query_results] == ["q1"]


def test_a_scope_searches_only_where_the_field_equals_the_querys(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    found = measured(folder, EvaluationOptions(scopes={"c": "shelf"}))
    assert found["default"].scope == "shelf"
    for one in found.values():
        beside = {"q1": {"pear"}, "q2": {"apple", "plum"}}
        assert all(set(result.ranking) <= beside[result.query.id] for result in one.query_results)
    assert found["keyword"].query_results[1].ranking == ("apple",)


def test_a_scope_means_the_metadata_even_where_a_record_has_a_field_of_that_name(tmp_path: Path) -> None:
    documents = [
        {"_id": "a", "text": "red", "metadata": {"collection": "x"}},
        {"_id": "b", "text": "red", "metadata": {"collection": "y"}},
    ]
    queries = [{"_id": "q", "text": "red", "metadata": {"collection": "y"}}]
    folder = write_folder(tmp_path / "c", documents=documents, queries=queries, judged="q\tb\t1\n")
    assert measured(folder, EvaluationOptions(scopes={"c": "collection"}))["keyword"].query_results[
        0
    ].ranking == ("b",)


def test_a_scope_that_a_query_lacks_is_an_error_that_names_both(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"query 'q1' has no metadata field 'floor'.* it has: kind, shelf"):
        measured(write_folder(tmp_path / "c"), EvaluationOptions(scopes={"c": "floor"}))


def test_categories_are_told_apart_and_ordered_by_number(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c"))["keyword"]
    assert list(found.by_category("kind")) == ["2", "10"]
    assert [len(answers) for answers in found.by_category("kind").values()] == [1, 1]
    assert found.by_category("absent") == {}


# Models


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("static", ("static", "")),
        ("minilm", ("onnx", "minilm")),
        ("openai/text-embedding-3-small", ("openai", "text-embedding-3-small")),
        ("ollama/library/model:tag", ("ollama", "library/model:tag")),
    ],
)
def test_a_model_is_named_shortly_or_by_provider(text: str, meant: tuple[str, str]) -> None:
    assert parse_model(text) == meant


def test_an_unknown_model_is_an_error_that_lists_the_providers() -> None:
    with pytest.raises(InvalidInput, match="give static, minilm, or PROVIDER/MODEL"):
        parse_model("bert")


def test_a_model_that_is_not_there_is_an_error_and_not_a_poor_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path / "none"))
    with pytest.raises(NotFound, match="absent"):
        measured(write_folder(tmp_path / "c"), EvaluationOptions(models=["onnx/absent"]))


def test_answers_without_a_source_are_reported(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c"), EvaluationOptions(models=["none"]))
    assert found["keyword"].degraded == []
    assert len(found["default"].degraded) == 2
    note = degraded_warnings(list(found.values()))[-1]
    assert note.startswith("c, none, default: a source failed in 2 of 2 searches (vector: ")
    assert measurement_to_dict(found["default"])["degraded"] == {
        "queries": 2,
        "reason": found["default"].degraded[0],
    }


def test_the_settings_own_model_is_used_when_none_is_named(tmp_path: Path) -> None:
    assert measured(write_folder(tmp_path / "c"))["vector"].model == "static"
    small = replace(SETTINGS, embedding=replace(SETTINGS.embedding, model="sennit-static-256", dimensions=64))
    assert (
        measured(write_folder(tmp_path / "c"), settings=small)["vector"].model == "static/sennit-static-256"
    )


# Kept databases


def test_a_kept_database_is_used_again_and_gives_the_same_figures(tmp_path: Path) -> None:
    options = EvaluationOptions(cache_dir=tmp_path / "kept", models=["static"])
    folder = write_folder(tmp_path / "c")
    first = measured(folder, options)
    (database,) = (tmp_path / "kept").iterdir()
    before = (database / "sennit.db").stat().st_ino
    again = measured(folder, options)
    assert [one.metrics for one in again.values()] == [one.metrics for one in first.values()]
    assert (database / "sennit.db").stat().st_ino == before
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_another_corpus_or_model_gets_a_database_of_its_own(tmp_path: Path) -> None:
    options = EvaluationOptions(cache_dir=tmp_path / "kept", models=["static", "none"])
    measured(write_folder(tmp_path / "c"), options)
    measured(write_folder(tmp_path / "c", documents=[{"_id": "pear", "text": "pear"}]), options)
    assert len(list((tmp_path / "kept").iterdir())) == 4


# Reports


def test_rows_have_every_column_and_end_with_means_over_collections(tmp_path: Path) -> None:
    collections = [read_collection(write_folder(tmp_path / name)) for name in ("a", "b")]
    rows = table_rows(evaluate(collections, EvaluationOptions(), SETTINGS), "kind")
    assert {len(row) for row in rows} == {len(HEADERS)}
    assert [row[2] for row in rows[:4]] == ["keyword", "keyword, kind 2", "keyword, kind 10", "vector"]
    assert [row[:4] for row in rows[-5:]] == [
        ("mean", "static", system, "4") for system in ("keyword", "vector", "links", "rrf", "default")
    ]


def test_every_answer_can_be_written_as_a_line(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c", judged=JUDGED))
    lines = list(query_result_dicts(list(found.values())))
    assert len(lines) == 5 * 2
    assert lines[0]["query"] == "q1"
    assert lines[0]["ranking"] == ["pear"]
    assert lines[0]["nDCG@10"] == 1.0
