"""Systems compared query by query: how certain a difference is, and which queries got worse and why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from sennit.errors import InvalidInput, suggest
from sennit.evaluation.datasets import read_objects
from sennit.evaluation.metrics import METRICS
from sennit.evaluation.plots import IntervalRow
from sennit.evaluation.run import Measurement, QueryResult
from sennit.evaluation.statistics import PairedTest, compare, holm
from sennit.records import Json

WORST_QUERIES: Final = 5
"""Queries that a report shows of those that got worse."""


class BaselineResult(NamedTuple):
    """What the baseline found for a query."""

    value: float
    ranking: tuple[str, ...]


class MovedDocument(NamedTuple):
    """A document that the baseline ranks better: its ranks from 1 (None if it is not among the first), and why."""

    id: str
    before: int
    after: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class WorseQuery:
    """A query for which the system is worse than the baseline."""

    id: str
    text: str
    before: float
    after: float
    moved: tuple[MovedDocument, ...]

    def to_dict(self) -> dict[str, Json]:
        return {
            "query": self.id,
            "text": self.text,
            "before": self.before,
            "after": self.after,
            "moved": [dict(one._asdict()) for one in self.moved],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """A system against a baseline on one collection."""

    collection: str
    model: str
    baseline: str
    system: str
    metric: str
    test: PairedTest
    worse: tuple[WorseQuery, ...]
    """The queries that lost most."""
    p_corrected: float = 1.0
    """The p-value of the randomisation test, corrected for the number of comparisons by Holm's method."""

    def to_dict(self) -> dict[str, Json]:
        test = self.test
        return {
            "collection": self.collection,
            "model": self.model,
            "baseline": self.baseline,
            "system": self.system,
            "metric": self.metric,
            "queries": test.queries,
            "difference": test.difference,
            "interval": list(test.interval),
            "p_randomisation": test.p_randomisation,
            "p_t": test.p_t,
            "p_corrected": self.p_corrected,
            "better": test.better,
            "equal": test.equal,
            "worse": test.worse,
            "worse_queries": [one.to_dict() for one in self.worse],
        }

    def to_row(self) -> IntervalRow:
        """Return the difference and its interval for a plot."""
        label = f"{self.collection} {self.system} - {self.baseline}"
        return IntervalRow(label, self.test.interval.low, self.test.difference, self.test.interval.high)


EarlierRun = Mapping[tuple[str, str, str], Mapping[str, BaselineResult]]
"""The results of each query, by the collection, model and system of the run."""


def compare_systems(measured: Sequence[Measurement], baseline: str, metric: str) -> list[Comparison]:
    """Compare each system with the one called `baseline`, on each collection and model."""
    check_metric(metric)
    out = []
    for base in measured:
        if base.system != baseline:
            continue
        known = {one.query.id: BaselineResult(one.metrics[metric], one.ranking) for one in base.query_results}
        out += [
            _compare(one, baseline, known, metric)
            for one in measured
            if one.system != baseline and (one.collection, one.model) == (base.collection, base.model)
        ]
    return correct_for_several(out)


def compare_with_run(measured: Sequence[Measurement], earlier: EarlierRun, metric: str) -> list[Comparison]:
    """Compare each system with itself in an earlier run."""
    return correct_for_several(
        [
            _compare(one, "before", earlier[key], metric)
            for one in measured
            if (key := (one.collection, one.model, one.system)) in earlier
        ]
    )


def correct_for_several(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with their p-values corrected by Holm's method."""
    corrected = holm([one.test.p_randomisation for one in comparisons])
    return [replace(one, p_corrected=p) for one, p in zip(comparisons, corrected, strict=True)]


def check_metric(metric: str) -> str:
    """Return the name of a metric; raise InvalidInput for another."""
    if metric not in METRICS:
        raise InvalidInput(
            f"There is no metric {metric!r}. {suggest(metric, METRICS)}Metrics: {', '.join(METRICS)}"
        )
    return metric


def _compare(
    measured: Measurement, baseline: str, known: Mapping[str, BaselineResult], metric: str
) -> Comparison:
    shared = [one for one in measured.query_results if one.query.id in known]
    if not shared:
        raise InvalidInput(f"{measured.collection}: the baseline has none of its queries")
    test = compare([known[one.query.id].value for one in shared], [one.metrics[metric] for one in shared])
    worse = sorted(
        (one for one in shared if one.metrics[metric] < known[one.query.id].value),
        key=lambda one: one.metrics[metric] - known[one.query.id].value,
    )
    return Comparison(
        measured.collection,
        measured.model,
        baseline,
        measured.system,
        metric,
        test,
        tuple(_worse(one, known[one.query.id], metric) for one in worse[:WORST_QUERIES]),
    )


def _worse(result: QueryResult, before: BaselineResult, metric: str) -> WorseQuery:
    moved = []
    for name, reason in result.reasons.items():
        if name not in before.ranking:
            continue
        rank = before.ranking.index(name) + 1
        after = result.ranking.index(name) + 1 if name in result.ranking else None
        if after is None or after > rank:
            moved.append(MovedDocument(name, rank, after, reason))
    return WorseQuery(result.query.id, result.query.text, before.value, result.metrics[metric], tuple(moved))


def read_earlier_run(file: Path, metric: str) -> EarlierRun:
    """Read the file that `--per-query` wrote."""
    out: dict[tuple[str, str, str], dict[str, BaselineResult]] = {}
    for where, values in read_objects(file):
        try:
            key = (str(values["collection"]), str(values["model"]), str(values["system"]))
            ranking = tuple(str(name) for name in values["ranking"])
            found = BaselineResult(float(values[metric]), ranking)
            out.setdefault(key, {})[str(values["query"])] = found
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(
                f"{where}: not a line that --per-query wrote ({json.dumps(str(error))})"
            ) from error
    return out
