"""Real collections: the keyword source against published baselines, and the default recipe against RRF."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sennit.evaluation.clock import parse_clock
from sennit.evaluation.datasets import read_collection
from sennit.evaluation.quality import KNOWN_SCOPES
from sennit.evaluation.run import EvaluationOptions, Measurement, System, evaluate
from sennit.settings import Settings

SMALL = ("cranfield", "musique_train")
ALL = (*SMALL, "scifact_train", "locomo_dev", "2wiki_dev")
TIE = 0.01


def measure(data: Path, names: tuple[str, ...]) -> dict[tuple[str, str], Measurement]:
    collections = [read_collection(data / name) for name in names]
    found = evaluate(collections, EvaluationOptions(models=["static"], scopes=KNOWN_SCOPES), Settings())
    return {(one.collection, one.system): one for one in found}


def assert_floors(data: Path, found: dict[tuple[str, str], Measurement], names: tuple[str, ...]) -> None:
    floors = json.loads((data / "BASELINE.json").read_text(encoding="utf-8"))
    for name in names:
        keyword = found[name, "keyword"].metrics
        for measure_name in ("nDCG@10", "R@5", "R@10"):
            assert keyword[measure_name] >= floors[f"dev/{name}"][measure_name] - TIE, (name, measure_name)


def assert_default_beats_rrf(found: dict[tuple[str, str], Measurement], names: tuple[str, ...]) -> None:
    default, rrf = (
        sum(found[name, system].metrics["nDCG@10"] for name in names) / len(names)
        for system in ("default", "rrf")
    )
    assert default > rrf


def test_small_collections_reach_the_baselines_and_default_beats_rrf(shared_data: Path) -> None:
    found = measure(shared_data, SMALL)
    assert_floors(shared_data, found, SMALL)
    assert_default_beats_rrf(found, SMALL)


@pytest.mark.slow
def test_all_text_collections_reach_the_baselines_and_default_beats_rrf(shared_data: Path) -> None:
    found = measure(shared_data, ALL)
    assert_floors(shared_data, found, ALL)
    assert_default_beats_rrf(found, ALL)


@pytest.mark.slow
def test_old_evidence_is_found_with_the_clock_at_the_end(shared_data: Path) -> None:
    options = EvaluationOptions(
        models=["static"], recipes=["memory"], scopes=KNOWN_SCOPES, now=parse_clock("end")
    )
    (measured,) = evaluate(
        [read_collection(shared_data / "locomo_dev")],
        options,
        Settings(),
        systems=lambda recipe: [System("memory", recipe)],
    )
    assert measured.metrics["R@5"] >= 0.62
    assert measured.metrics["R@10"] >= 0.72
