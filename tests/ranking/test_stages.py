"""Stages run before fusion, after it or after the cut; each appears in the trace and in `why`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Database, Recipe, Record
from sennit.context.expansion import GroupByPage, Neighbours
from sennit.ranking.fusion import RRF, Weighted
from sennit.ranking.overlaps import MergeOverlaps
from sennit.ranking.rescore import Rescore
from sennit.ranking.stages import CandidateList, StageContext
from sennit.recipes import BUILTIN_RECIPES, CandidateCount, SourceConfig

FEW = CandidateCount(at_least=3, times=0.1)


def context(records: Sequence[Record] = (), *, explain: bool = True) -> StageContext:
    return StageContext(
        query="",
        limit=10,
        now=datetime(2026, 1, 1, tzinfo=UTC),
        explain=explain,
        records=lambda keys: {key: records[key] for key in keys},
    )


def passage(name: str, first: int, last: int) -> Record:
    return Record(id=name, text="…", path="a.txt", lines=(first, last))


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with sennit.open(":memory:", privacy__open=True) as opened:
        opened.add(
            Record(
                id=f"h{n:02}",
                text=f"harbour {'lights ' * (n % 5)}at berth {n}",
                parent=f"book{n // 10}",
                position=n % 10,
            )
            for n in range(40)
        )
        yield opened


# Rescore


@given(
    st.lists(st.dictionaries(st.integers(-2, 12), st.floats(0.1, 9), max_size=8), min_size=1, max_size=4),
    st.data(),
)
def test_rescored_lists_have_every_stored_candidate_in_order(
    drawn: list[dict[int, float]], data: st.DataObject
) -> None:
    closed = data.draw(st.sets(st.integers(0, len(drawn) - 1)))
    lists = []
    for at, scores in enumerate(drawn):
        keys = sorted(scores, key=lambda key: -scores[key])
        lists.append(
            CandidateList(
                f"list{at}",
                np.array(keys, np.int64),
                np.array([scores[key] for key in keys], np.float64),
                # A score of 0 means that the source has nothing to say about a record.
                None if at in closed else lambda keys: np.where(keys % 3 == 0, 0.0, 5.0 / (keys + 1)),
            )
        )
    output = Rescore().apply(lists, context())
    stored = {key for scores in drawn for key in scores if key >= 0}
    scored: dict[int, list[str]] = {}
    for at, (before, after) in enumerate(zip(lists, output.lists, strict=True)):
        added = set(after.keys.tolist()) - set(before.keys.tolist())
        wanted = {key for key in stored - set(drawn[at]) if key % 3}
        assert added == (set() if at in closed else wanted)
        assert (np.diff(after.scores) <= 0).all()
        for key in added:
            scored.setdefault(key, []).append(after.name)
    assert output.reasons == {key: f"scored by {', '.join(names)}" for key, names in scored.items()}
    assert not Rescore().apply(lists, context(explain=False)).reasons


def test_limited_lists_get_what_lists_of_the_same_collections_found() -> None:
    def found(name: str, key: int, *collections: str) -> CandidateList:
        return CandidateList(
            name, np.array([key]), np.array([1.0]), lambda keys: np.full(len(keys), 0.5), collections
        )

    lists = [found("a", 1, "code"), found("b", 2, "code"), found("c", 3, "docs"), found("d", 4)]
    after = {one.name: one.keys.tolist() for one in Rescore().apply(lists, context()).lists}
    assert after == {"a": [1, 2], "b": [2, 1], "c": [3], "d": [4, 1, 2, 3]}


def test_trace_and_why_name_rescored_records(db: Database) -> None:
    recipe = Recipe(
        name="shallow",
        sources=(
            SourceConfig(source="keyword", candidates=FEW),
            SourceConfig(source="vector", candidates=FEW),
        ),
        fusion=Weighted({"keyword": 0.3, "vector": 0.7}, {"keyword": "max", "vector": "none"}),
        stages=(Rescore(),),
    )
    result = db.search("lights at berth 7", recipe=recipe, explain=True)
    assert result.trace is not None
    (rescore,) = result.trace.list_stages
    assert rescore.name == "rescore"
    assert rescore.reasons
    stages: Any = result.trace.to_dict()["stages"]
    shown = ("stage", "runs", "changed", "dropped")
    assert [{name: stage[name] for name in shown} for stage in stages] == [
        {"stage": "rescore", "runs": "before_fusion", "changed": len(rescore.reasons), "dropped": 0},
        {"stage": "limit", "runs": "after_fusion", "changed": 0, "dropped": 0},
    ]
    for hit in result:
        assert hit.explanation is not None
        without_rank = [s.source for s in hit.explanation.source_scores if s.rank is None and s.score]
        why = db.why("lights at berth 7", hit.id, recipe=recipe)
        assert (f"rescore: scored by {', '.join(without_rank)}" in why.reason) == bool(without_rank)


# Merge overlaps


def test_merged_candidate_is_dropped_with_the_lines_it_shares() -> None:
    records = [passage("first", 1, 20), passage("second", 15, 40), passage("third", 60, 80)]
    one = CandidateList("one", np.array([0]), np.array([1.0]))
    two = CandidateList("two", np.array([1, 2]), np.array([0.9, 0.8]))
    output = MergeOverlaps().apply([one, two], context(records))
    assert [one.keys.tolist() for one in output.lists] == [[0], [0, 2]]
    assert output.merged_into == {1: 0}
    (drop,) = output.dropped.values()
    assert (drop.stage, drop.number, drop.needed, drop.lost_to) == ("merge_overlaps", 6.0, 0.0, 0)
    assert drop.reason == "it overlaps first, which is shown for both"
    assert not MergeOverlaps().apply([one, two], context(records, explain=False)).dropped


def test_candidate_that_another_list_keeps_is_not_dropped() -> None:
    records = [passage("wide", 1, 30), passage("inner", 10, 20)]
    one = CandidateList("one", np.array([0, 1]), np.array([1.0, 0.5]))
    two = CandidateList("two", np.array([1]), np.array([0.9]))
    output = MergeOverlaps().apply([one, two], context(records))
    assert [one.keys.tolist() for one in output.lists] == [[0, 1], [0]]
    assert not output.dropped


@pytest.mark.parametrize(
    "stages", [(MergeOverlaps(),), (MergeOverlaps(), Rescore()), (Rescore(), MergeOverlaps())]
)
def test_trace_has_what_was_merged_and_the_rank_of_what_was_found(
    tmp_path: Path, stages: tuple[MergeOverlaps | Rescore, ...]
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("boats", "kitchen", "island"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nA ferry carries people from the {name}.\n")
    recipe = Recipe(
        name="merged",
        sources=(
            SourceConfig(source="grep"),
            SourceConfig(source="vector", candidates=CandidateCount(at_least=9)),
        ),
        fusion=RRF(k=60, first_rank=1),
        stages=stages,
    )
    with sennit.open(tmp_path / "db", privacy__open=True) as db:
        db.index(folder)
        result = db.search("ferry", recipe=recipe, keywords=["ferry"], explain=True)
        trace = result.trace
        assert trace is not None
        assert [stage.name for stage in trace.list_stages] == [stage.name for stage in stages]
        assert len(result) == 3
        assert {hit.sources for hit in result} == {("grep", "vector")}
        for hit in result:
            assert hit.explanation is not None
            assert all(source_score.rank is not None for source_score in hit.explanation.source_scores)
            (displaced,) = hit.explanation.displaced
            why = db.why("ferry", displaced, recipe=recipe, keywords=["ferry"])
            assert (why.kept, why.stage, why.needed) == (False, "merge_overlaps", 0.0)
            assert why.number is not None
            assert why.number >= 1
            assert hit.id in why.reason
        candidates = json.loads(json.dumps(trace.to_dict()))["candidates"]
        dropped = [entry for entry in candidates if not entry["kept"]]
        assert len(dropped) == 3
        assert {entry["stage"] for entry in dropped} == {"merge_overlaps"}


# After the cut


def test_neighbours_of_a_recipe_equal_those_of_the_argument(db: Database) -> None:
    plain = BUILTIN_RECIPES["keyword"]
    recipe = Recipe(name="wide", sources=plain.sources, fusion=plain.fusion, stages=(Neighbours(reach=2),))
    asked = db.search("berth 7", recipe=plain, neighbours=2)
    listed = db.search("berth 7", recipe=recipe)
    assert listed.hits == asked.hits
    assert any(len(hit.neighbours) == 5 for hit in listed)
    # The caller's number replaces the recipe's.
    assert (
        db.search("berth 7", recipe=recipe, neighbours=1).hits
        == db.search("berth 7", recipe=plain, neighbours=1).hits
    )


def test_trace_and_why_name_the_stages_after_the_cut(db: Database) -> None:
    plain = BUILTIN_RECIPES["keyword"]
    recipe = Recipe(
        name="pages", sources=plain.sources, fusion=plain.fusion, stages=(GroupByPage(), Neighbours())
    )
    result = db.search("lights at berth 7", recipe=recipe, limit=5, explain=True)
    assert [page.score for page in result.pages]
    assert result.trace is not None
    assert [stage.name for stage in result.trace.stages] == ["limit"]
    assert [stage.name for stage in result.trace.result_stages] == ["group_by_page", "neighbours"]
    for hit in result:
        assert hit.trace is result.trace
        assert hit.explanation is not None
        assert [(a.stage, a.before, a.after) for a in hit.explanation.adjustments] == [
            ("group_by_page", hit.score, hit.score),
            ("neighbours", hit.score, hit.score),
        ]
        assert "group_by_page: on page" in db.why("lights at berth 7", hit.id, recipe=recipe, limit=5).reason
    untold = db.search("lights at berth 7", recipe=recipe, limit=5)
    assert (untold.hits, untold.pages) == (result.hits, result.pages)
