"""Recipes: validation, equality, tables of sennit.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Record
from sennit.context.expansion import GroupByPage, Neighbours
from sennit.errors import InvalidInput, NotFound
from sennit.ranking.answer_form import AnswerForm
from sennit.ranking.code import CodeRanking, PerFile
from sennit.ranking.decay import Decay
from sennit.ranking.dedupe import Dedupe
from sennit.ranking.diversity import MMR
from sennit.ranking.evidence import Evidence
from sennit.ranking.fusion import RRF, Weighted
from sennit.ranking.known_facts import KnownFacts
from sennit.ranking.latest import Latest
from sennit.ranking.learned import Learned
from sennit.ranking.overlaps import MergeOverlaps
from sennit.ranking.project import ProjectRanking
from sennit.ranking.rerank import Rerank
from sennit.ranking.rescore import Rescore
from sennit.ranking.stages import RUNS, Stage, known_stages
from sennit.ranking.window import Window
from sennit.recipes import (
    BUILTIN_RECIPES,
    CandidateCount,
    Recipe,
    SourceConfig,
    find_recipe,
    recipe_from_dict,
)
from sennit.stores.contract import BM25

KEYWORD = SourceConfig(source="keyword")
FUSION = RRF(k=60, first_rank=1)


def recipe(**parts: Any) -> Recipe:
    return Recipe(**{"name": "mine", "sources": (KEYWORD,), "fusion": FUSION, **parts})


def source_config(**parts: Any) -> SourceConfig:
    return SourceConfig(**parts)


def candidate_count(**parts: Any) -> CandidateCount:
    return CandidateCount(**parts)


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (lambda: recipe(name=""), "needs a name"),
        (lambda: recipe(name=5), "needs a name"),
        (lambda: recipe(sources=()), "at least one source"),
        (lambda: recipe(sources=(KEYWORD, KEYWORD)), "its own name"),
        (lambda: recipe(fusion=Weighted({"vector": 1.0}, "none")), "Its sources: keyword"),
        (lambda: recipe(fusion=RRF(k=60, weights={"other": 1.0})), "Its sources: keyword"),
        (lambda: recipe(sources=("keyword",)), "SourceConfig"),
        (lambda: recipe(fusion="rrf"), "fusion"),
        (
            lambda: recipe(
                sources=(KEYWORD, SourceConfig(source="vector")), fusion=Weighted({"keyword": 1.0}, "none")
            ),
            "no weights for the source 'vector'",
        ),
        (lambda: recipe(limit=0), "from 1 to 1000"),
        (lambda: recipe(limit=True), "from 1 to 1000"),
        (lambda: recipe(max_limit=1001), "from 1 to 1000"),
        (lambda: source_config(source=""), "such as 'keyword'"),
        (lambda: source_config(source=3), "text"),
        (lambda: source_config(source="keyword", collections="notes"), "list of names"),
        (lambda: source_config(source="keyword", collections=(1,)), "list of names"),
        (lambda: source_config(source="keyword", min_score="high"), "must be a number"),
        (lambda: source_config(source="keyword", min_score=float("nan")), "must be a number"),
        (lambda: candidate_count(times=0), "above 0"),
        (lambda: candidate_count(times=float("inf")), "above 0"),
        (lambda: candidate_count(plus=-1), "whole number"),
        (lambda: candidate_count(at_least=1.5), "whole number"),
        (lambda: BM25(k1=-1), "k1"),
        (lambda: BM25(b=2), "between 0 and 1"),
        (lambda: BM25(text_weight=0, title_weight=0), "above 0"),
        (lambda: recipe_from_dict("x", {"sorces": []}), "no setting 'sorces'"),
        (lambda: recipe_from_dict("x", {"sources": ["keyword"]}), "needs 'fusion'"),
        (lambda: recipe_from_dict("x", {}), 'base = "default"'),
        (lambda: recipe_from_dict("x", {"base": "default", "sources": [{"sorce": 1}]}), "no setting 'sorce'"),
        (lambda: recipe_from_dict("x", {"base": "default", "sources": [7]}), "a name or a table"),
        (lambda: recipe_from_dict("x", {"base": "default", "sources": 7}), "x"),
        (lambda: recipe_from_dict("x", {"base": "default", "bm25": {"k2": 1}}), "k2"),
        (lambda: recipe_from_dict("x", {"base": "default", "limit": 0}), "from 1 to"),
        (lambda: recipe_from_dict("x", {"base": "default", "fusion": {"method": "magic"}}), "magic"),
        (lambda: recipe(stages=("dedupe",)), "such as Dedupe()"),
        (
            lambda: recipe(stages=(Dedupe(), Rescore())),
            "'rescore' runs before fusion, so list it before 'dedupe'",
        ),
        (lambda: recipe(stages=(GroupByPage(), MMR())), "so list it before 'group_by_page'"),
        (lambda: recipe_from_dict("x", {"base": "rrf", "rescore_missing": True}), 'add {stage = "rescore"}'),
        (
            lambda: recipe_from_dict("x", {"base": "rrf", "merge_overlaps": True}),
            '{stage = "merge_overlaps"}',
        ),
        (lambda: recipe_from_dict("x", {"base": "rrf", "group_by_page": True}), '{stage = "group_by_page"}'),
        (
            lambda: recipe_from_dict("x", {"base": "docs", "examples_shorter_than": 9}),
            '{stage = "group_by_page", examples_shorter_than = N}',
        ),
        (
            lambda: recipe_from_dict(
                "x", {"base": "docs", "stages": [{"stage": "group_by_page", "short": 1}]}
            ),
            "it takes: examples_shorter_than",
        ),
        (
            lambda: recipe_from_dict("x", {"base": "docs", "stages": [{"stage": "neighbours", "reach": 0}]}),
            "reach",
        ),
    ],
)
def test_invalid_recipe_is_refused_with_advice(make: Callable[[], object], advice: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "one",
    [
        *BUILTIN_RECIPES.values(),
        recipe(
            sources=(
                SourceConfig(
                    source="keyword", name="exact", collections=("a", "b"), candidates=CandidateCount(2, 3, 4)
                ),
                SourceConfig(source="vector", min_score=0.25),
            ),
            fusion=Weighted({"exact": 2.0, "vector": 1.0}, {"exact": "max", "vector": "none"}),
            limit=7,
            max_limit=50,
            bm25=BM25(0.9, 0.3, 1.0, 2.0),
            about="all of it",
        ),
    ],
    ids=lambda one: one.name,
)
def test_recipe_round_trips_through_its_table(one: Recipe) -> None:
    again = recipe_from_dict(one.name, one.to_dict())
    assert again == one
    assert again.about == one.about
    assert again.to_dict() == one.to_dict()


FRACTIONS = st.floats(0, 1)
STAGES: Mapping[str, st.SearchStrategy[Stage]] = {
    "merge_overlaps": st.builds(MergeOverlaps),
    "rescore": st.builds(Rescore),
    "dedupe": st.builds(Dedupe),
    "decay": st.builds(
        Decay,
        st.floats(0.5, 400),
        FRACTIONS,
        st.lists(st.text(max_size=5), max_size=3),
        FRACTIONS | st.just("auto"),
    ),
    "answer_form": st.builds(AnswerForm, st.floats(0.01, 1)),
    "latest": st.builds(Latest, st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.01, 1)),
    "facts": st.builds(KnownFacts, st.floats(0.1, 10), FRACTIONS, st.integers(0, 50)),
    "window": st.builds(Window, FRACTIONS),
    "evidence": st.builds(
        Evidence,
        st.dictionaries(st.sampled_from(("keyword", "vector")), FRACTIONS),
        FRACTIONS,
        st.integers(0, 50),
        FRACTIONS,
        FRACTIONS,
        FRACTIONS,
        FRACTIONS,
    ),
    "rerank": st.builds(Rerank, st.integers(1, 99), st.integers(1, 999), st.integers(1, 9999)),
    "learned": st.builds(Learned, st.text("abc-", min_size=1, max_size=9), st.integers(1, 1000)),
    "mmr": st.builds(MMR, FRACTIONS, st.integers(1, 99), st.sampled_from(("jaccard", "cosine"))),
    "code": st.builds(CodeRanking, outline_weight=FRACTIONS, secondary_roles=st.lists(st.text(max_size=5))),
    "per_file": st.builds(PerFile, st.integers(1, 9)),
    "project": st.builds(
        ProjectRanking,
        st.dictionaries(st.sampled_from(("docs", "source", "test")), FRACTIONS),
        st.dictionaries(st.sampled_from(("docs", "source", "test")), FRACTIONS),
        records_per_file=st.integers(1, 9),
    ),
    "neighbours": st.builds(Neighbours, st.integers(1, 50)),
    "group_by_page": st.builds(GroupByPage, st.integers(0, 9999)),
}


def write_toml(value: object) -> str:
    """Return a value as an inline value of TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {write_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write_toml, value)) + "]"
    # JSON leaves DEL as it is, which TOML does not allow.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


@given(st.lists(st.one_of(*STAGES.values()), max_size=8))
def test_recipe_of_any_stages_round_trips_through_toml(stages: list[Stage]) -> None:
    points = list(RUNS)
    one = recipe(stages=sorted(stages, key=lambda stage: points.index(stage.runs)))
    assert (*one.list_stages, *one.ranking_stages, *one.result_stages) == one.stages
    table = tomllib.loads(f"mine = {write_toml(one.to_dict())}")["mine"]
    again = recipe_from_dict("mine", table)
    assert again == one
    assert again.to_dict() == one.to_dict()


def test_every_stage_is_drawn_and_documented() -> None:
    assert set(STAGES) == set(known_stages())
    page = (Path(__file__).parent.parent / "docs" / "reference" / "recipes.md").read_text(encoding="utf-8")
    for name in STAGES:
        assert f"| `{name}` |" in page


def test_candidate_count_grows_with_the_limit() -> None:
    assert CandidateCount(times=3, at_least=100).for_limit(10) == 100
    assert CandidateCount(times=3, at_least=100).for_limit(50) == 150
    assert CandidateCount(times=1.5, plus=2).for_limit(3) == 7
    assert CandidateCount(times=0.1).for_limit(1) == 1


def test_an_unknown_recipe_names_the_known() -> None:
    with pytest.raises(NotFound, match=r"artifacts, .*default, .*vector"):
        find_recipe("nothing", BUILTIN_RECIPES)


def test_a_recipe_of_sennit_toml_is_used_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sennit.toml").write_text(
        """
        [search]
        recipe = "titles"

        [recipes.titles]
        base = "keyword"
        limit = 2
        bm25 = { k1 = 0.5, b = 0.0, text_weight = 0.1, title_weight = 5.0 }

        [recipes.notes]
        about = "Notes only."
        sources = ["keyword", { source = "vector", name = "meaning", collections = ["notes"] }]
        fusion = { method = "rrf", k = 10, weights = { meaning = 2.0, "*" = 1.0 } }
        """
    )
    monkeypatch.chdir(tmp_path)
    with sennit.open(":memory:") as db:
        db.add(
            [
                Record(id="text", text="harbour harbour harbour"),
                Record(id="title", text="words about a place by the sea", title="harbour"),
                Record(id="note", text="harbour at night", collection="notes"),
            ]
        )
        result = db.search("harbour")
        assert (result.recipe, result[0].id, len(result)) == ("titles", "title", 2)
        assert db.recipes["titles"].sources == BUILTIN_RECIPES["keyword"].sources
        assert db.recipes["notes"].about == "Notes only."
        told = db.search("harbour", recipe="notes", explain=True)
        assert told.trace is not None
        assert [(source.name, len(source.keys)) for source in told.trace.sources] == [
            ("keyword", 3),
            ("meaning", 1),
        ]
        assert told[0].id == "note"


def test_invalid_recipe_in_sennit_toml_is_refused_on_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sennit.toml").write_text('[recipes.broken]\nbase = "default"\nlimit = 5000\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="broken"):
        sennit.open(":memory:")
