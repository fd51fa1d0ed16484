"""Cross-validation of the constants of code search: are they overfitted to the projects? See benchmarks.code."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Final

import sennit
from sennit.evaluation.datasets import Collection
from sennit.evaluation.metrics import compute_metrics
from sennit.ranking.code import CodeRanking, PerFile
from sennit.ranking.fusion import Weighted
from sennit.ranking.rescore import Rescore
from sennit.recipes import Recipe
from sennit.recipes.builtin import CODE_SEARCH
from sennit.recipes.recipe import CandidateCount
from sennit.records import OUTLINE_COLLECTION

FOLD_COUNT: Final = 3
LIMIT: Final = 10
MAX_PASSES: Final = 2

Constants = Mapping[str, float]

SHIPPED: Final[Constants] = {
    "keyword": 1.0,
    "vector": 0.5,
    "outline_keyword": 1.0,
    "outline_vector": 1.0,
    "outline_weight": 1.0,
    "definition_boost": 1.0,
    "name_boost": 1.0,
    "file_name_boost": 0.5,
    "context_boost": 0.15,
    "secondary_penalty": 1.0,
    "older_version_penalty": 0.5,
    "candidates": 50,
    "outline_candidates": 100,
}
FACTORS: Final = (0.5, 1.0, 1.5, 2.0)
"""The factors by which each constant is multiplied. On a tie the current value stays."""


def recipe_with(constants: Constants) -> Recipe:
    """The recipe with other constants."""
    counts = {False: constants["candidates"], True: constants["outline_candidates"]}
    sources = tuple(
        replace(
            config, candidates=CandidateCount(at_least=int(counts[OUTLINE_COLLECTION in config.collections]))
        )
        for config in CODE_SEARCH.sources
    )
    weights = {config.name: constants[config.name] for config in sources}
    ranking = CodeRanking(
        outline_weight=constants["outline_weight"],
        definition_boost=constants["definition_boost"],
        name_boost=constants["name_boost"],
        file_name_boost=constants["file_name_boost"],
        context_boost=constants["context_boost"],
        secondary_penalty=constants["secondary_penalty"],
        older_version_penalty=constants["older_version_penalty"],
    )
    stages = (Rescore(), ranking, PerFile())
    return replace(CODE_SEARCH, sources=sources, fusion=Weighted(weights, "max"), stages=stages)


class Trials:
    """nDCG@10 of each project for a set of constants, cached."""

    def __init__(self, collections: Sequence[Collection], folder: Path, stack: ExitStack) -> None:
        self._collections = collections
        self._cache: dict[tuple[tuple[str, float], ...], dict[str, list[float]]] = {}
        self._databases: dict[str, sennit.Database] = {}
        for collection in collections:
            db = self._databases[collection.name] = stack.enter_context(sennit.open(folder / collection.name))
            db.add(collection.documents)
            db.admin.optimise()

    @property
    def count(self) -> int:
        """How many sets of constants were tried."""
        return len(self._cache)

    def ndcg(self, constants: Constants, projects: Sequence[str]) -> float:
        """The mean nDCG@10 over all queries of some projects."""
        key = tuple(sorted(constants.items()))
        if key not in self._cache:
            self._cache[key] = self._measure(recipe_with(constants))
        return fmean(value for name in projects for value in self._cache[key][name])

    def _measure(self, recipe: Recipe) -> dict[str, list[float]]:
        out = {}
        for collection in self._collections:
            db = self._databases[collection.name]
            rankings = {
                query.id: collection.ranking(query, db.search(query.text, recipe=recipe, limit=LIMIT))
                for query in collection.queries
            }
            metrics = compute_metrics(collection.judgements, rankings)
            out[collection.name] = [values["nDCG@10"] for values in metrics.values()]
        return out


def fit_constants(trials: Trials, projects: Sequence[str]) -> Constants:
    """Choose the best value of each constant on these projects, one constant after the other."""
    best = dict(SHIPPED)
    for _ in range(MAX_PASSES):
        before = dict(best)
        for name, shipped in SHIPPED.items():
            choices = [{**best, name: shipped * factor} for factor in FACTORS]
            # max returns the first of equal ones, so on a tie the current value stays.
            best = max([best, *choices], key=lambda constants: trials.ndcg(constants, projects))
        if best == before:
            break
    return best


def print_folds(collections: Sequence[Collection]) -> None:
    """Print a row for each fold, and the mean over the held-out projects."""
    names = [collection.name for collection in collections]
    with tempfile.TemporaryDirectory(prefix="sennit-folds-") as folder, ExitStack() as stack:
        trials = Trials(collections, Path(folder), stack)
        print(
            "| held out | fitted, training | shipped, training | fitted, held out | shipped, held out | fitted constants |"
        )
        print("|---|---:|---:|---:|---:|---|")
        shipped_ndcg: list[float] = []
        fitted_ndcg: list[float] = []
        for fold in range(FOLD_COUNT):
            held_out = names[fold::FOLD_COUNT]
            training = [name for name in names if name not in held_out]
            fitted = fit_constants(trials, training)
            changed = ", ".join(
                f"{name} {value:g}" for name, value in fitted.items() if value != SHIPPED[name]
            )
            fitted_ndcg.append(trials.ndcg(fitted, held_out))
            shipped_ndcg.append(trials.ndcg(SHIPPED, held_out))
            values = (
                trials.ndcg(fitted, training),
                trials.ndcg(SHIPPED, training),
                fitted_ndcg[-1],
                shipped_ndcg[-1],
            )
            print(
                f"| {', '.join(held_out)} | {' | '.join(f'{value:.3f}' for value in values)} | {changed or 'as shipped'} |"
            )
        print(f"| mean |  |  | {fmean(fitted_ndcg):.3f} | {fmean(shipped_ndcg):.3f} |  |")
        print(f"\n{trials.count} sets of constants were tried.")
