"""Evaluation runs: systems, scopes, categories, models, cached databases and reports."""

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


def test_systems_are_sources_rrf_and_the_recipe() -> None:
    systems = build_systems(BUILTIN_RECIPES["default"])
    assert [system.name for system in systems] == ["keyword", "vector", "links", "rrf", "default"]
    assert [len(system.recipe.sources) for system in systems] == [1, 1, 1, 3, 3]
    assert systems[3].recipe.fusion == RRF(k=60, first_rank=1)
    assert systems[4].recipe == BUILTIN_RECIPES["default"]


def test_duplicate_systems_are_measured_once() -> None:
    assert [system.name for system in build_systems(BUILTIN_RECIPES["rrf"])] == ["keyword", "vector", "rrf"]
    assert [system.name for system in build_systems(BUILTIN_RECIPES["keyword"])] == ["keyword"]


def test_second_recipe_adds_only_new_systems(tmp_path: Path) -> None:
    found = evaluate(
        [read_collection(write_folder(tmp_path / "c"))],
        EvaluationOptions(recipes=["default", "rrf"]),
        SETTINGS,
    )
    assert [one.system for one in found] == ["keyword", "vector", "links", "rrf", "default"]


# Metrics


def test_metrics_are_those_of_the_ranking(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c", judged="q1\tpear\t1\nq2\tapple\t1\nq2\tbrick\t1\n"))
    keyword = found["keyword"]
    # "green pear" finds the pear alone; "red" finds the two red things and nothing else.
    assert [sorted(result.ranking) for result in keyword.query_results] == [["pear"], ["apple", "brick"]]
    assert keyword.metrics == {"nDCG@10": 1.0, "MRR@10": 1.0, "R@5": 1.0, "R@10": 1.0, "R@100": 1.0}
    assert all(result.milliseconds > 0 for one in found.values() for result in one.query_results)
    assert {one.documents for one in found.values()} == {4}


def test_shallow_metrics_use_a_search_for_ten_results(tmp_path: Path) -> None:
    documents = [{"_id": f"d{at:03}", "text": "same words"} for at in range(60)]
    queries = [{"_id": "q", "text": "same words"}]
    judged = "q\td000\t1\nq\td020\t1\n"
    folder = write_folder(tmp_path / "c", documents=documents, queries=queries, judged=judged)
    keyword = measured(folder)["keyword"]
    assert len(keyword.query_results[0].ranking) == 10
    assert keyword.metrics["R@10"] == 0.5
    assert keyword.metrics["R@100"] == 1.0


def test_max_queries_limits_the_queries(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c"), EvaluationOptions(max_queries=1))
    assert [result.query.id for result in found["default"].query_results] == ["q1"]


def test_scope_searches_only_records_with_the_querys_value(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c")
    found = measured(folder, EvaluationOptions(scopes={"c": "shelf"}))
    assert found["default"].scope == "shelf"
    for one in found.values():
        beside = {"q1": {"pear"}, "q2": {"apple", "plum"}}
        assert all(set(result.ranking) <= beside[result.query.id] for result in one.query_results)
    assert found["keyword"].query_results[1].ranking == ("apple",)


def test_scope_is_a_metadata_field_even_if_a_record_field_has_that_name(tmp_path: Path) -> None:
    documents = [
        {"_id": "a", "text": "red", "metadata": {"collection": "x"}},
        {"_id": "b", "text": "red", "metadata": {"collection": "y"}},
    ]
    queries = [{"_id": "q", "text": "red", "metadata": {"collection": "y"}}]
    folder = write_folder(tmp_path / "c", documents=documents, queries=queries, judged="q\tb\t1\n")
    assert measured(folder, EvaluationOptions(scopes={"c": "collection"}))["keyword"].query_results[
        0
    ].ranking == ("b",)


def test_scope_missing_in_a_query_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"query 'q1' has no metadata field 'floor'.* it has: kind, shelf"):
        measured(write_folder(tmp_path / "c"), EvaluationOptions(scopes={"c": "floor"}))


def test_categories_are_grouped_and_ordered_by_number(tmp_path: Path) -> None:
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
def test_parse_model(text: str, meant: tuple[str, str]) -> None:
    assert parse_model(text) == meant


def test_unknown_model_error_lists_the_providers() -> None:
    with pytest.raises(InvalidInput, match="give static, minilm, or PROVIDER/MODEL"):
        parse_model("bert")


def test_unavailable_model_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path / "none"))
    with pytest.raises(NotFound, match="absent"):
        measured(write_folder(tmp_path / "c"), EvaluationOptions(models=["onnx/absent"]))


def test_degraded_searches_give_a_warning(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c"), EvaluationOptions(models=["none"]))
    assert found["keyword"].degraded == []
    assert len(found["default"].degraded) == 2
    note = degraded_warnings(list(found.values()))[-1]
    assert note.startswith("c, none, default: 2 of 2 searches were degraded (vector: ")
    assert measurement_to_dict(found["default"])["degraded"] == {
        "queries": 2,
        "reason": found["default"].degraded[0],
    }


def test_model_of_the_settings_is_the_default(tmp_path: Path) -> None:
    assert measured(write_folder(tmp_path / "c"))["vector"].model == "static"
    small = replace(SETTINGS, embedding=replace(SETTINGS.embedding, model="sennit-static-256", dimensions=64))
    assert (
        measured(write_folder(tmp_path / "c"), settings=small)["vector"].model == "static/sennit-static-256"
    )


# Cached databases


def test_cached_database_is_reused(tmp_path: Path) -> None:
    options = EvaluationOptions(cache_dir=tmp_path / "kept", models=["static"])
    folder = write_folder(tmp_path / "c")
    first = measured(folder, options)
    (database,) = (tmp_path / "kept").iterdir()
    before = (database / "sennit.db").stat().st_ino
    again = measured(folder, options)
    assert [one.metrics for one in again.values()] == [one.metrics for one in first.values()]
    assert (database / "sennit.db").stat().st_ino == before
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_cache_has_a_database_for_each_corpus_and_model(tmp_path: Path) -> None:
    options = EvaluationOptions(cache_dir=tmp_path / "kept", models=["static", "none"])
    measured(write_folder(tmp_path / "c"), options)
    measured(write_folder(tmp_path / "c", documents=[{"_id": "pear", "text": "pear"}]), options)
    assert len(list((tmp_path / "kept").iterdir())) == 4


# Reports


def test_table_rows_end_with_means_over_collections(tmp_path: Path) -> None:
    collections = [read_collection(write_folder(tmp_path / name)) for name in ("a", "b")]
    rows = table_rows(evaluate(collections, EvaluationOptions(), SETTINGS), "kind")
    assert {len(row) for row in rows} == {len(HEADERS)}
    assert [row[2] for row in rows[:4]] == ["keyword", "keyword, kind 2", "keyword, kind 10", "vector"]
    assert [row[:4] for row in rows[-5:]] == [
        ("mean", "static", system, "4") for system in ("keyword", "vector", "links", "rrf", "default")
    ]


def test_query_result_dicts_has_every_query(tmp_path: Path) -> None:
    found = measured(write_folder(tmp_path / "c", judged=JUDGED))
    lines = list(query_result_dicts(list(found.values())))
    assert len(lines) == 5 * 2
    assert lines[0]["query"] == "q1"
    assert lines[0]["ranking"] == ["pear"]
    assert lines[0]["nDCG@10"] == 1.0
