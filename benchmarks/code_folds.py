"""Whether the constants of code search are fitted to the projects they are measured on; see benchmarks.code."""

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
from sennit.evaluation.metrics import figures_of
from sennit.ranking.code import CodeSense, PerFile
from sennit.ranking.fusion import Weighted
from sennit.recipes import Recipe
from sennit.recipes.code import CODE_SEARCH
from sennit.recipes.values import Pool

FOLDS: Final = 3
LIMIT: Final = 10
PASSES: Final = 2

Constants = Mapping[str, float]

SHIPPED: Final[Constants] = {
    "keyword": 1.0,
    "vector": 0.5,
    "outline_keyword": 1.0,
    "outline_vector": 1.0,
    "outline": 1.0,
    "definition": 1.0,
    "file_name": 0.5,
    "company": 0.15,
    "beside": 1.0,
    "pool": 50,
}
FACTORS: Final = (0.5, 1.0, 1.5, 2.0)
"""What is tried of each, times what it is; equal ones stay as they are."""


def recipe_with(constants: Constants) -> Recipe:
    """The recipe with other constants."""
    pool = Pool(at_least=int(constants["pool"]))
    uses = tuple(replace(use, pool=pool) for use in CODE_SEARCH.sources)
    weights = {use.name: constants[use.name] for use in uses}
    sense = CodeSense(
        outline=constants["outline"],
        definition=constants["definition"],
        file_name=constants["file_name"],
        company=constants["company"],
        beside=constants["beside"],
    )
    return replace(CODE_SEARCH, sources=uses, fusion=Weighted(weights, "max"), stages=(sense, PerFile()))


class Trials:
    """nDCG@10 of each project with some constants; what was measured once is known."""

    def __init__(self, collections: Sequence[Collection], folder: Path, held: ExitStack) -> None:
        self._collections = collections
        self._known: dict[tuple[tuple[str, float], ...], dict[str, list[float]]] = {}
        self._databases: dict[str, sennit.Database] = {}
        for one in collections:
            db = self._databases[one.name] = held.enter_context(sennit.open(folder / one.name))
            db.add(one.documents)
            db.optimise()

    @property
    def measured(self) -> int:
        """How many sets of constants were tried."""
        return len(self._known)

    def quality(self, constants: Constants, projects: Sequence[str]) -> float:
        """The mean over all questions of some projects."""
        key = tuple(sorted(constants.items()))
        if key not in self._known:
            self._known[key] = self._measure(recipe_with(constants))
        return fmean(value for name in projects for value in self._known[key][name])

    def _measure(self, recipe: Recipe) -> dict[str, list[float]]:
        out = {}
        for one in self._collections:
            db = self._databases[one.name]
            rankings = {
                query.id: one.ranking(query, db.search(query.text, recipe=recipe, limit=LIMIT))
                for query in one.queries
            }
            out[one.name] = [own["nDCG@10"] for own in figures_of(one.judgements, rankings).values()]
        return out


def fitted(trials: Trials, projects: Sequence[str]) -> Constants:
    """The best of each constant on these projects, one after the other."""
    best = dict(SHIPPED)
    for _ in range(PASSES):
        before = dict(best)
        for name, shipped in SHIPPED.items():
            choices = [{**best, name: shipped * factor} for factor in FACTORS]
            # What is as good as it was stays as it was.
            best = max([best, *choices], key=lambda constants: trials.quality(constants, projects))
        if best == before:
            break
    return best


def print_folds(collections: Sequence[Collection]) -> None:
    """A row for each fold, and one for all of what was left out."""
    names = [one.name for one in collections]
    with tempfile.TemporaryDirectory(prefix="sennit-folds-") as folder, ExitStack() as held:
        trials = Trials(collections, Path(folder), held)
        print(
            "| left out | fitted on the others, there | shipped, there | fitted, left out | shipped, left out | what was chosen |"
        )
        print("|---|---:|---:|---:|---:|---|")
        kept: list[float] = []
        chosen: list[float] = []
        for fold in range(FOLDS):
            away = names[fold::FOLDS]
            here = [name for name in names if name not in away]
            own = fitted(trials, here)
            changed = ", ".join(f"{name} {value:g}" for name, value in own.items() if value != SHIPPED[name])
            chosen.append(trials.quality(own, away))
            kept.append(trials.quality(SHIPPED, away))
            figures = (trials.quality(own, here), trials.quality(SHIPPED, here), chosen[-1], kept[-1])
            print(
                f"| {', '.join(away)} | {' | '.join(f'{value:.3f}' for value in figures)} | {changed or 'as shipped'} |"
            )
        print(f"| mean |  |  | {fmean(chosen):.3f} | {fmean(kept):.3f} |  |")
        print(f"\n{trials.measured} sets of constants were tried.")
