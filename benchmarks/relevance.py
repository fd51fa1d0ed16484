"""Fits the coefficients of `sennit.ranking.relevance`, and measures them on collections that were left out.

    python -m benchmarks.relevance [DIR …] [--model static --model minilm --model onnx/bge-small] [--cache DIR]

Without folders it measures the five dev collections of `../shared/data`, with static, MiniLM and bge-small. Install the
models first (`sennit models install bge-small`). Vectors are kept in the cache, in the databases of `sennit eval --cache`.
The tables are printed, and written to `benchmarks/results/relevance.md`.

Every collection is searched with its own questions and with those of the other collections, which it cannot answer.
A hit is a positive example if it is judged relevant. Small databases are cut out of the collections as well, because
most databases of notes are small. The last table has the fusion: the default recipe beside keyword and vector search
alone. `--scales` prints the constants of `sennit.ranking.calibration` instead.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import sennit
from sennit.evaluation.datasets import Collection, Query, read_collection
from sennit.evaluation.run import (
    EvaluationOptions,
    database_folder,
    evaluate,
    index_collection,
    no_progress,
    with_model,
)
from sennit.ranking.relevance import Coefficients, Evidence, best_match, estimate_relevance
from sennit.results.hits import FIT_RELEVANCE
from sennit.settings import Settings

Floats = NDArray[np.float64]

ROOT: Final = Path(__file__).resolve().parents[1]
DATA: Final = ROOT.parent / "shared" / "data"
DEV_COLLECTIONS: Final = ("scifact_train", "cranfield", "locomo_dev", "2wiki_dev", "musique_train")
DEV_SCOPES: Final = {"locomo_dev": "conversation"}
DEV_MODELS: Final = ("static", "minilm", "onnx/bge-small")

FUSION_TOLERANCE: Final = 0.002
"""What a fused answer may be below its better leg."""

OWN_QUESTIONS: Final = 300
FOREIGN_QUESTIONS: Final = 100
"""Questions at most, of the collection itself and of each other collection."""

FOREIGN_WEIGHT: Final = 0.7
"""What all foreign questions weigh, beside 1 for the collection's own."""

SMALL_SIZES: Final = (5, 12, 30, 50)
SMALL_WEIGHT: Final = 0.0
"""Small databases are measured and not fitted: half of their records are answers, which is not so in general."""

LIMIT: Final = 10
BINS: Final = 10
FLAGGED_ANSWERABLE: Final = 0.05
THRESHOLD_SHARE: Final = 0.03
"""The share of answerable questions of the fit that may fall below the threshold; less than may be flagged."""

COEFFICIENTS: Final = len(fields(Coefficients))

SAME_SUBJECT: Final = (frozenset(("musique_train", "2wiki_dev")),)
"""Collections about the same subject: one may well answer a question of the other."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The hits of many questions in one database."""

    collection: str
    model: str
    question: NDArray[np.int64]
    """The number of the question that each hit belongs to."""
    own: NDArray[np.bool_]
    """Whether the question is one of the collection's own."""
    relevant: NDArray[np.bool_]
    answers: Sequence[Evidence]
    """The evidence for the hits of each question, in the order of the hits."""
    weight: float = 1.0

    @property
    def weights(self) -> Floats:
        """The weight of each hit in a fit."""
        own, foreign = max(1, int(self.own.sum())), max(1, int((~self.own).sum()))
        return np.where(self.own, 1 / own, FOREIGN_WEIGHT / foreign) * self.weight


def main(arguments: Sequence[str]) -> None:
    """Print the coefficients, and the figures with each collection left out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, help="default: the dev collections")
    parser.add_argument("--model", action="append", default=[], help="static, minilm …; repeatable")
    parser.add_argument("--scope", action="append", default=[], metavar="COLLECTION=FIELD")
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "eval")
    parser.add_argument("--write", type=Path, default=ROOT / "benchmarks" / "results" / "relevance.md")
    parser.add_argument("--scales", action="store_true")
    options = parser.parse_args(arguments)
    folders = options.folders or [DATA / name for name in DEV_COLLECTIONS]
    collections = [read_collection(folder) for folder in folders]
    scopes = {**DEV_SCOPES, **dict(one.split("=", 1) for one in options.scope)}
    models = options.model or list(DEV_MODELS)
    cache = DatabaseCache(options.cache)
    if options.scales:
        print_scales(collections, scopes, models, cache)
        return
    hits = collect(collections, scopes, models, options.recipe, cache)
    lines = [*describe_fit(hits), "", *describe_fusion(collections, scopes, models, options.cache)]
    print("\n".join(lines))
    options.write.write_text(
        "\n".join(("# Relevance and fusion, by `python -m benchmarks.relevance`", "", *lines, ""))
    )


class DatabaseCache:
    """The databases of collections, with the vectors of every document, kept for the next run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, collection: Collection, model: str) -> sennit.Database:
        """Return the database of a collection."""
        settings = with_model(Settings(), model)
        with database_folder(collection, settings, self._folder) as folder:
            index_collection(collection, settings, folder, no_progress, f"{collection.name}, {model}")
            return sennit.open(folder, settings=settings)


def collect(
    collections: Sequence[Collection],
    scopes: Mapping[str, str],
    models: Sequence[str],
    recipe: str,
    cache: DatabaseCache,
) -> list[Hits]:
    """Search every collection with every model, and the small databases that are cut out of it."""
    out = []
    for model in models:
        for collection in collections:
            others = [
                other
                for other in collections
                if other is not collection and frozenset((other.name, collection.name)) not in SAME_SUBJECT
            ]
            foreign = [query for other in others for query in _spread(other.queries, FOREIGN_QUESTIONS)]
            with cache.open(collection, model) as db:
                out.append(_search(db, collection, foreign, model, recipe, scopes.get(collection.name)))
            for seed, size in enumerate(SMALL_SIZES):
                small = _cut(collection, size, seed)
                few = random.Random(seed).sample(foreign, 2 * len(small.queries))
                with open_in_memory(small, model) as db:
                    found = _search(db, small, few, model, recipe, None)
                out.append(replace(found, weight=SMALL_WEIGHT))
            print(f"searched {collection.name} with {model}", file=sys.stderr, flush=True)
    return out


def open_in_memory(collection: Collection, model: str) -> sennit.Database:
    """Return a database in memory with the vectors of every document."""
    db = sennit.open(":memory:", settings=with_model(Settings(), model))
    db.admin.select_model()
    db.add(collection.documents)
    db.admin.embed_pending(lambda *_: None)
    return db


def _search(
    db: sennit.Database,
    collection: Collection,
    foreign: Sequence[Query],
    model: str,
    recipe: str,
    scope: str | None,
) -> Hits:
    rows: list[tuple[int, bool, bool]] = []
    answers = []
    own = _spread(collection.queries, OWN_QUESTIONS)
    for number, query in enumerate((*own, *foreign)):
        is_own = number < len(own)
        filters = {f"metadata.{scope}": query.metadata[scope]} if scope and is_own else None
        hits = db.search(query.text, recipe=recipe, limit=LIMIT, filters=filters, explain=True)
        evidence = []
        for hit in hits:
            found = hit.explanation.relevance if hit.explanation else None
            assert found is not None
            rows.append((number, is_own, is_own and collection.judgements[query.id].get(hit.id, 0) > 0))
            evidence.append(found)
        if evidence:
            answers.append(
                Evidence(
                    [np.nan if one.coverage is None else one.coverage for one in evidence],
                    [np.nan if one.lift is None else one.lift for one in evidence],
                    [one.linked for one in evidence],
                    evidence[0].best,
                )
            )
    question, is_own_column, relevant_column = np.array(rows).T
    return Hits(
        collection.name, model, question, is_own_column.astype(bool), relevant_column.astype(bool), answers
    )


def _cut(collection: Collection, size: int, seed: int) -> Collection:
    """Return a small database: the answers to a few questions, and other documents."""
    chance = random.Random(f"{collection.name} {seed}")
    by_id = {record.id: record for record in collection.documents}
    kept: dict[str, None] = {}
    queries = []
    for query in chance.sample(collection.queries, len(collection.queries)):
        answers = [
            name for name, grade in collection.judgements[query.id].items() if grade > 0 and name in by_id
        ]
        if len(kept) + len(answers) <= max(2, size // 2):
            kept |= dict.fromkeys(answers)
            queries.append(query)
    others = chance.sample(list(by_id), min(size, len(by_id)))
    kept |= dict.fromkeys(others[: max(0, size - len(kept))])
    return replace(
        collection, documents=tuple(by_id[name] for name in kept), queries=tuple(queries[:OWN_QUESTIONS])
    )


def _spread(queries: Sequence[Query], count: int) -> list[Query]:
    """Return at most this many queries, evenly spaced."""
    return list(queries[:: max(1, -(-len(queries) // count))])


# The fit


def design(one: Hits, kind: str) -> Floats:
    """Return the columns of a kind of model: words and meaning, words alone, or meaning alone."""
    answers = [_restrict(answer, kind) for answer in one.answers]
    # The log odds are linear in the coefficients, so those of a unit vector are the column of its coefficient.
    units = [Coefficients(*row) for row in np.eye(COEFFICIENTS).tolist()]
    rows: Floats = np.array(
        [[odds for answer in answers for odds in unit.log_odds(answer)] for unit in units]
    )
    columns: Floats = rows.T
    return columns


def _restrict(answer: Evidence, kind: str) -> Evidence:
    """Return the evidence without what a kind of model does not know."""
    known = answer._replace(
        coverage=[0.0 if kind == "meaning" else value for value in np.nan_to_num(answer.coverage).tolist()],
        lift=[0.0 if kind == "words" else value for value in np.nan_to_num(answer.lift).tolist()],
    )
    return known if kind == "both" else known._replace(best=best_match(known.coverage, known.lift))


def fit(hits: Sequence[Hits], kind: str = "both") -> Coefficients:
    """Fit a logistic regression with a slight ridge by Newton's method."""
    rows = np.concatenate([design(one, kind) for one in hits])
    relevant = np.concatenate([one.relevant for one in hits]).astype(np.float64)
    weights = np.concatenate([one.weights for one in hits])
    weights *= len(weights) / weights.sum()
    ridge = 1e-5 * len(rows)
    beta = np.zeros(rows.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-rows @ beta))
        gradient = rows.T @ (weights * (chance - relevant)) + ridge * beta
        curvature = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows
        step = np.linalg.solve(curvature + ridge * np.eye(len(beta)), gradient)
        beta -= step
        if np.abs(step).max() < 1e-9:
            break
    return Coefficients(*beta.tolist())


def predict(model: Coefficients, one: Hits) -> Floats:
    """Return the chance of each hit."""
    odds = [odds for answer in one.answers for odds in model.log_odds(_restrict(answer, "both"))]
    chances: Floats = 1 / (1 + np.exp(-np.array(odds)))
    return chances


# Figures


def calibration_error(chance: Floats, relevant: NDArray[np.bool_]) -> float:
    """Return the expected calibration error over ten bins of equal width."""
    bins = np.minimum((chance * BINS).astype(int), BINS - 1)
    error = 0.0
    for number in range(BINS):
        inside = bins == number
        if inside.any():
            error += inside.mean() * abs(chance[inside].mean() - relevant[inside].mean())
    return float(error)


def area_under_curve(values: Floats, positive: NDArray[np.bool_]) -> float:
    """Return the chance that a positive example has a higher value than a negative one; ties count half."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    positives = int(positive.sum())
    negatives = len(values) - positives
    if not positives or not negatives:
        return float("nan")
    return float((ranks[positive].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def best_by_question(one: Hits, chance: Floats) -> tuple[Floats, Floats]:
    """Return the best relevance of each own question, and of each foreign one."""
    best = np.zeros(one.question.max() + 1)
    np.maximum.at(best, one.question, chance)
    is_own = np.zeros(len(best), bool)
    is_own[one.question] = one.own
    asked = np.isin(np.arange(len(best)), one.question)
    return best[is_own & asked], best[~is_own & asked]


def fitting_threshold(hits: Iterable[Hits], chances: Callable[[Hits], Floats]) -> float:
    """Return the relevance that all but a few of the answerable questions reach; every database counts the same."""
    best = [best_by_question(one, chances(one))[0] for one in hits if one.weight]
    values = np.concatenate(best)
    shares = np.concatenate([np.full(len(one), 1 / len(one)) for one in best])
    rising = np.argsort(values)
    reached = np.cumsum(shares[rising]) / shares.sum()
    return float(values[rising][np.searchsorted(reached, THRESHOLD_SHARE)])


def describe_fit(hits: Sequence[Hits]) -> Iterator[str]:
    """Yield the coefficients of a fit with everything, and the figures with each collection left out."""
    for name, kind in (("WORDS_AND_MEANING", "both"), ("WORDS", "words"), ("MEANING", "meaning")):
        yield f"    {name} = {fit(hits, kind)}"
    everything = fit(hits)
    threshold = fitting_threshold(hits, lambda one: predict(everything, one))
    yield f"    FIT_RELEVANCE = {threshold:.3f}"
    yield ""
    yield "| left out | model | ECE | AUC | answerable flagged | other subjects flagged | flagged at 5 % |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    rows = []
    for name in dict.fromkeys(one.collection for one in hits):
        others = [one for one in hits if one.collection != name]
        model = fit(others)
        other_threshold = fitting_threshold(others, lambda one, model=model: predict(model, one))  # type: ignore[misc]
        for one in hits:
            if one.collection == name and one.weight == 1.0:
                rows.append(figures(one, predict(model, one), other_threshold))
                yield _row(name, one.model, rows[-1])
    yield _row("mean", "", np.mean(rows, axis=0))
    for size, small in enumerate_small(hits):
        rows = [figures(one, predict(everything, one), threshold) for one in small]
        yield _row(f"{size} records", "", np.nanmean(rows, axis=0))
    yield ""
    shipped = [
        figures(
            one, np.array([c for answer in one.answers for c in estimate_relevance(answer)]), FIT_RELEVANCE
        )
        for one in hits
        if one.weight == 1.0
    ]
    yield _row("shipped, nothing left out", "", np.mean(shipped, axis=0))


def _row(name: str, model: str, values: Iterable[float]) -> str:
    return f"| {name} | {model} | " + " | ".join(f"{value:.3f}" for value in values) + " |"


def describe_fusion(
    collections: Sequence[Collection], scopes: Mapping[str, str], models: Sequence[str], cache: Path
) -> Iterator[str]:
    """Yield nDCG@10 of the default recipe beside its legs, and whether it is at or above the better one."""
    options = EvaluationOptions(models=models, recipes=["default"], scopes=scopes, cache_dir=cache)
    found = {
        (one.collection, one.model, one.system): one.metrics["nDCG@10"]
        for one in evaluate(collections, options, Settings())
    }
    yield "| collection | model | keyword | vector | default | default − better leg | holds |"
    yield "|---|---|---:|---:|---:|---:|---|"
    for model in models:
        for collection in collections:
            keyword, vector, fused = (
                found[collection.name, model, system] for system in ("keyword", "vector", "default")
            )
            above = fused - max(keyword, vector)
            holds = "yes" if above >= -FUSION_TOLERANCE else "no"
            yield (
                f"| {collection.name} | {model} | {keyword:.3f} | {vector:.3f} | {fused:.3f} | {above:+.3f} | {holds} |"
            )


def enumerate_small(hits: Sequence[Hits]) -> Iterable[tuple[int, list[Hits]]]:
    """Yield the small databases by size."""
    small = [one for one in hits if not one.weight]
    for at, size in enumerate(SMALL_SIZES):
        yield size, small[at :: len(SMALL_SIZES)]


def figures(one: Hits, chance: Floats, threshold: float) -> list[float]:
    """Return the figures of one database."""
    own, foreign = best_by_question(one, chance)
    return [
        calibration_error(chance, one.relevant),
        area_under_curve(chance, one.relevant),
        float((own < threshold).mean()),
        float((foreign < threshold).mean()),
        float((foreign < np.quantile(own, FLAGGED_ANSWERABLE)).mean()),
    ]


def print_scales(
    collections: Sequence[Collection], scopes: Mapping[str, str], models: Sequence[str], cache: DatabaseCache
) -> None:
    """Print the usual background of each model, and the lift that 95 % and 50 % of true answers exceed."""
    for model in models:
        means, quantiles = [], []
        for collection in collections:
            with cache.open(collection, model) as db:
                lifts, backgrounds = [], []
                for query in _spread(collection.queries, OWN_QUESTIONS):
                    scope = scopes.get(collection.name)
                    filters = {f"metadata.{scope}": query.metadata[scope]} if scope else None
                    found = db.search(
                        query.text, recipe="default", limit=LIMIT, filters=filters, explain=True
                    )
                    for hit in found:
                        if hit.explanation is None or hit.explanation.relevance is None:
                            continue
                        backgrounds += [s.background for s in hit.explanation.source_scores if s.background]
                        if collection.judgements[query.id].get(hit.id, 0) > 0:
                            lifts.append(hit.explanation.relevance.lift or 0.0)
                means.append(np.mean(backgrounds))
                quantiles.append(np.quantile(lifts, [0.01, 0.05, 0.5]))
        lowest, low, middle = np.mean(quantiles, axis=0)
        print(
            f"{model}: background {np.mean(means):.2f}; 99 % of true answers above {lowest:.2f}, "
            f"95 % above {low:.2f}, 50 % above {middle:.2f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
