"""Measurements as table rows, as JSON, and as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from sennit.evaluation.metrics import METRICS, MetricValues, mean_metrics
from sennit.evaluation.plots import IntervalRow
from sennit.evaluation.run import Measurement, QueryResult
from sennit.evaluation.statistics import bootstrap_interval
from sennit.records import Json

HEADERS: Final = ("collection", "model", "system", "queries", *METRICS, "ms")
FIRST_NUMERIC_COLUMN: Final = 3
"""The index of the first numeric column in `HEADERS`."""


def table_rows(measurements: Sequence[Measurement], category: str | None = None) -> list[tuple[str, ...]]:
    """A row of `HEADERS` for each system and for each of its categories, and the means over collections at the end."""
    rows = []
    for measurement in measurements:
        rows.append(_row(measurement, measurement.system, measurement.query_results))
        if category is not None:
            for value, results in measurement.by_category(category).items():
                rows.append(_row(measurement, f"{measurement.system}, {category} {value}", results))
    return [*rows, *_mean_rows(measurements)]


def measurement_to_dict(measurement: Measurement, category: str | None = None) -> dict[str, Json]:
    """The metrics of one system as JSON."""
    out: dict[str, Json] = {
        "collection": measurement.collection,
        "documents": measurement.documents,
        "scope": measurement.scope,
        "model": measurement.model,
        "recipe": measurement.recipe,
        "system": measurement.system,
        **_summary(measurement.query_results),
    }
    if measurement.degraded:
        out["degraded"] = {"queries": len(measurement.degraded), "reason": measurement.degraded[0]}
    if category is not None:
        groups = measurement.by_category(category)
        out["categories"] = {value: _summary(results) for value, results in groups.items()}
    return out


def query_result_dicts(measurements: Sequence[Measurement]) -> Iterator[dict[str, Json]]:
    """The result of each query as JSON, for a file of JSON lines."""
    for measurement in measurements:
        for result in measurement.query_results:
            yield {
                "collection": measurement.collection,
                "model": measurement.model,
                "recipe": measurement.recipe,
                "system": measurement.system,
                "query": result.query.id,
                "text": result.query.text,
                **_rounded(result.metrics),
                "milliseconds": round(result.milliseconds, 3),
                "ranking": list(result.ranking),
                **({"degraded": result.degraded} if result.degraded else {}),
                **({"reasons": dict(result.reasons)} if result.reasons else {}),
            }


def interval_rows(measurements: Sequence[Measurement], metric: str) -> list[IntervalRow]:
    """The mean of a metric with its confidence interval, for a plot of the systems."""
    rows = []
    for one in measurements:
        values = [result.metrics[metric] for result in one.query_results]
        low, high = bootstrap_interval(values)
        rows.append(IntervalRow(f"{one.collection} {one.system}", low, sum(values) / len(values), high))
    return rows


def degraded_warnings(measurements: Sequence[Measurement]) -> list[str]:
    """Warnings about measurements in which some searches were degraded."""
    return [
        f"{measurement.collection}, {measurement.model}, {measurement.system}: "
        f"{len(measurement.degraded):,} of {len(measurement.query_results):,} searches were degraded "
        f"({measurement.degraded[0]})"
        for measurement in measurements
        if measurement.degraded
    ]


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]], first_numeric_column: int) -> str:
    """A Markdown table. Numeric columns are aligned to the right."""
    rule = ["---" if column < first_numeric_column else "---:" for column in range(len(headers))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (headers, rule, *rows))


def _row(measurement: Measurement, name: str, results: Sequence[QueryResult]) -> tuple[str, ...]:
    return (
        measurement.collection,
        measurement.model,
        name,
        f"{len(results):,}",
        *format_metrics(mean_metrics(result.metrics for result in results)),
        f"{statistics.median(result.milliseconds for result in results):.2f}",
    )


def _mean_rows(measurements: Sequence[Measurement]) -> Iterator[tuple[str, ...]]:
    """The mean over collections, for each system that was measured on several."""
    for model, system in dict.fromkeys(
        (measurement.model, measurement.system) for measurement in measurements
    ):
        same = [
            measurement
            for measurement in measurements
            if (measurement.model, measurement.system) == (model, system)
        ]
        if len(same) > 1:
            queries = sum(len(measurement.query_results) for measurement in same)
            milliseconds = statistics.fmean(measurement.milliseconds for measurement in same)
            yield (
                "mean",
                model,
                system,
                f"{queries:,}",
                *format_metrics(mean_metrics(measurement.metrics for measurement in same)),
                f"{milliseconds:.2f}",
            )


def format_metrics(values: MetricValues) -> list[str]:
    """The metrics to three decimal places, in the order of `METRICS`."""
    return [f"{values[name]:.3f}" for name in METRICS]


def _summary(results: Sequence[QueryResult]) -> dict[str, Json]:
    return {
        "queries": len(results),
        **_rounded(mean_metrics(result.metrics for result in results)),
        "intervals": {
            name: [
                round(bound, 6) for bound in bootstrap_interval([result.metrics[name] for result in results])
            ]
            for name in METRICS
        },
        "milliseconds": round(statistics.median(result.milliseconds for result in results), 3),
    }


def _rounded(values: MetricValues) -> dict[str, Json]:
    return {name: round(values[name], 6) for name in METRICS}
