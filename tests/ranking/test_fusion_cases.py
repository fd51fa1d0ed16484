"""Fusions agree with the numbers of other systems (tests/fixtures/fusion_cases.json), of the specification and of the contract."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NoReturn, TypedDict

import numpy as np
import pytest

from sennit.ranking.fusion import (
    ISR,
    METHODS,
    RBC,
    RRF,
    Borda,
    Comb,
    Condorcet,
    Fused,
    Fusion,
    RankedList,
    Weighted,
    fuse,
    order,
)
from sennit.ranking.normalisation import NORMALISATIONS


class Params(TypedDict, total=False):
    k: float
    rank_base: float
    weights: list[float]
    normalizer: list[str | None] | None
    norm: str | None
    gamma: float
    phi: float
    size: int


class Case(TypedDict, total=False):
    id: str
    source: str
    method: str
    params: Params
    lists: list[list[str]]
    scored_lists: list[dict[str, float]]
    scores: list[float]
    expected: dict[str, float]
    expected_score: float
    expected_order: list[str]
    tol: float
    expect_error: bool


ROOT = Path(__file__).parents[2]
CONTRACT = ROOT / "docs" / "ranking-contract.md"
FIXTURE = ROOT / "tests" / "fixtures" / "fusion_cases.json"
ORIGIN = ROOT.parent / "shared" / "data" / "fusion_vectors" / "fusion_cases.json"
CASES: list[Case] = json.loads(FIXTURE.read_text(encoding="utf-8"))
BY_ID = {case["id"]: case for case in CASES}

RANX_NORMS = {
    None: "none",
    "min-max": "minmax",
    "max": "max",
    "sum": "sum",
    "zmuv": "zscore",
    "rank": "rank",
    "borda": "borda",
}

# The cases where sennit differs on purpose, by id, with the reason.
SKIPPED: dict[str, str] = {
    **{
        f"ranx-{method}-borda-{query}": "the expected scores rank all three lists alike, though the lists "
        "differ; in sennit a fusion by rank takes the ranks of each list and no normalisation"
        for method in ("rrf", "isr", "log_isr", "bordafuse", "rbc")
        for query in ("q1", "q2")
    },
    **{
        f"ranx-condorcet-{norm}-q1": "d1 and d2 draw their duel; ranx parts them by the course of its sort, sennit "
        "scores them equal and orders them by id"
        for norm in RANX_NORMS
    },
}
PARTIAL = {  # cases with expected values for only a part of the result, and why
    "es-linear-page-from2-size1": "one page of it",
    "haystack-dbsf-constant-list": "leaves out the candidate found twice",
}


def weights(params: Params) -> dict[str, float] | None:
    given = params.get("weights")
    return None if given is None else {str(position): weight for position, weight in enumerate(given)}


def weighted(params: Params) -> Weighted:
    rules = {str(i): rule or "none" for i, rule in enumerate(params.get("normalizer") or [])}
    return Weighted(weights(params) or {"*": 1.0}, rules or "none")


def comb(kind: str) -> Callable[[Params], Comb]:
    def build(params: Params) -> Comb:
        gamma = params.get("gamma", 1.0)
        return Comb(kind, RANX_NORMS[params.get("norm")], all_equal=0.0, gamma=gamma)

    return build


OFFERED: dict[str, Callable[[Params], Fusion]] = {
    "rrf": lambda p: RRF(k=p.get("k", 60), first_rank=p.get("rank_base", 1), weights=weights(p)),
    "rrf_qdrant_weighted": lambda p: RRF(k=p["k"], first_rank=0, weights=weights(p), weighting="rank"),
    "rrf_rank_assignment": lambda p: RRF(k=p["k"], first_rank=p["rank_base"]),
    "linear": weighted,
    "weighted_sum_of_rr": weighted,
    "sum_of_rr": lambda p: Comb("sum", "none"),
    "relative_score": lambda p: Weighted(weights(p) or {}, "minmax", all_equal=1.0),
    "dbsf_max_dedupe": lambda p: Comb("max", "dbsf", all_equal=0.0),
    **{kind: comb(kind) for kind in ("sum", "mnz", "anz", "gmnz", "max", "min", "med")},
    "isr": lambda p: ISR(),
    "log_isr": lambda p: ISR(log=True),
    "rbc": lambda p: RBC(phi=p["phi"]),
    "bordafuse": lambda p: Borda(),
    "condorcet": lambda p: Condorcet(),
}


def case_lists(case: Case) -> list[dict[str, float]]:
    """Per list, scores by document; a list that is an order alone is given falling scores."""
    if "scores" in case:
        return [{"it": score} for score in case["scores"]]
    if "lists" in case:
        return [{doc: float(len(docs) - i) for i, doc in enumerate(docs)} for docs in case["lists"]]
    return case["scored_lists"]


def answer(case: Case) -> dict[str, float]:
    """Fused scores by document, best first."""
    ids = sorted({doc for scores in case_lists(case) for doc in scores})
    key_of = {doc: key for key, doc in enumerate(ids)}
    lists: list[RankedList] = []
    for position, scores in enumerate(case_lists(case)):
        docs = sorted(scores, key=lambda doc: (-scores[doc], doc))
        keys = np.array([key_of[doc] for doc in docs], dtype=np.int64)
        lists.append((str(position), keys, np.array([scores[doc] for doc in docs], dtype=np.float64)))
    method = OFFERED[case["method"]](case.get("params") or {})
    fused = fuse(method, lists)
    ranking = order(fused.keys, fused.scores, lambda keys: [ids[key] for key in keys])
    return {ids[fused.keys[i]]: float(fused.scores[i]) for i in ranking}


def expected_scores(case: Case) -> dict[str, float]:
    return {"it": case["expected_score"]} if "expected_score" in case else case["expected"]


def matches_expected(case: Case) -> bool:
    found, expected, tolerance = answer(case), expected_scores(case), case.get("tol", 1e-9)
    complete = found.keys() >= expected.keys() if case["id"] in PARTIAL else found.keys() == expected.keys()
    return complete and all(found[doc] == pytest.approx(expected[doc], abs=tolerance) for doc in expected)


@pytest.mark.parametrize("case_id", [case["id"] for case in CASES])
def test_case(case_id: str) -> None:
    case = BY_ID[case_id]
    if case_id in SKIPPED:
        pytest.skip(SKIPPED[case_id])
    assert case["method"] in OFFERED, f"offer {case['method']!r}, or add {case_id!r} and a reason to SKIPPED"
    if case.get("expect_error"):
        with pytest.raises(ValueError, match=r"weights|normalis|source"):
            answer(case)
        return
    assert matches_expected(case), f"found {answer(case)}, expected {expected_scores(case)}"
    # Other systems order ties differently, so compare scores, not names.
    expected_order = case.get("expected_order", [])
    found = answer(case)
    tolerance = case.get("tol", 1e-9)
    for earlier, later in pairwise(expected_order):
        assert found[earlier] >= found[later] - tolerance


def test_page_of_a_ranking_is_a_slice_of_it() -> None:
    found = list(answer(BY_ID["es-linear-page-from2-size1"]))
    assert found[2:3] == ["4"]


@pytest.mark.parametrize("case_id", SKIPPED)
def test_skipped_case_exists_and_does_differ(case_id: str) -> None:
    assert not matches_expected(BY_ID[case_id]), "it matches_expected: take it out of SKIPPED"


def test_tied_duels_give_equal_scores() -> None:
    assert answer(BY_ID["ranx-condorcet-None-q1"]) == {"d3": 3.0, "d1": 1.5, "d2": 1.5}


def test_fixture_is_unchanged(leave_out: Callable[[str], NoReturn]) -> None:
    if not ORIGIN.exists():
        leave_out(f"{ORIGIN} is not here; the fixture is checked where it is")
    kept = set(Case.__annotations__)
    origin = json.loads(ORIGIN.read_text(encoding="utf-8"))
    assert [{key: value for key, value in case.items() if key in kept} for case in origin] == CASES


# --- the numbers of the specification


def in_order(name: str, *keys: int) -> RankedList:
    return name, np.array(keys, dtype=np.int64), np.arange(len(keys), 0, -1, dtype=np.float64)


def score_of(fused: Fused, key: int) -> float:
    return float(fused.scores[fused.keys == key][0])


def test_rrf_counted_from_zero() -> None:
    found = fuse(RRF(k=60, first_rank=0), [in_order("a", 7, 8, 1), in_order("b", 2, 3, 4, 5, 6, 1)])
    assert score_of(found, 1) == pytest.approx(1 / 62 + 1 / 65)
    assert round(score_of(found, 1), 4) == 0.0315


def test_rrf_counted_from_one() -> None:
    found = fuse(RRF(), [in_order("keyword", 1, 8), in_order("vector", 2, 1), in_order("graph", 3, 1)])
    assert score_of(found, 1) == pytest.approx(1 / 61 + 1 / 62 + 1 / 62)
    assert score_of(found, 1) == pytest.approx(0.0486, abs=1e-4)  # the specification truncates 0.04865


def test_memory_recipes_worked_example() -> None:
    goa_trip, told_priya, check_dates, flights, fact = range(5)
    lists = [
        in_order("keyword", goa_trip, told_priya, check_dates),
        in_order("vector", told_priya, goa_trip, flights),
        in_order("graph", fact),
    ]
    found = fuse(RRF(k=60, first_rank=1), lists)
    assert round(score_of(found, told_priya), 4) == 0.0325
    assert round(score_of(found, flights), 4) == 0.0159


# --- the document


def python_blocks() -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```", CONTRACT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_the_contract_has_examples() -> None:
    assert python_blocks()


@pytest.mark.parametrize("block", python_blocks(), ids=lambda block: block.splitlines()[0])
def test_examples_of_the_contract_run(block: str) -> None:
    ran = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_the_contract_names_every_method_and_normalisation() -> None:
    text = CONTRACT.read_text(encoding="utf-8")
    assert not [name for name in (*METHODS, *NORMALISATIONS, "borda") if f"`{name}`" not in text]
