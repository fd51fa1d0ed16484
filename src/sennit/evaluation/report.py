"""Figures as rows, as JSON, and as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Final

from sennit.evaluation.metrics import MEASURES, Figures, mean
from sennit.evaluation.run import Answer, Measured
from sennit.records import Json

HEADERS: Final = ("collection", "model", "system", "queries", *MEASURES, "ms")
FIRST_NUMBER: Final = 3
"""The column of `HEADERS` from which on all hold numbers."""


def rows_of(measured: Sequence[Measured], category: str | None = None) -> list[tuple[str, ...]]:
    """A row of `HEADERS` for each system, under it one for each category, and at last the means."""
    rows = []
    for one in measured:
        rows.append(_row(one, one.system, one.answers))
        if category is not None:
            for value, answers in one.by_category(category).items():
                rows.append(_row(one, f"{one.system}, {category} {value}", answers))
    return [*rows, *_mean_rows(measured)]


def to_dict(measured: Measured, category: str | None = None) -> dict[str, Json]:
    """One system's figures as JSON values."""
    out: dict[str, Json] = {
        "collection": measured.collection,
        "documents": measured.documents,
        "scope": measured.scope,
        "model": measured.model,
        "recipe": measured.recipe,
        "system": measured.system,
        **_summary(measured.answers),
    }
    if measured.degraded:
        out["degraded"] = {"queries": len(measured.degraded), "reason": measured.degraded[0]}
    if category is not None:
        groups = measured.by_category(category)
        out["categories"] = {value: _summary(answers) for value, answers in groups.items()}
    return out


def per_query(measured: Sequence[Measured]) -> Iterator[dict[str, Json]]:
    """One value for each answer, for a file of JSON lines."""
    for one in measured:
        for answer in one.answers:
            yield {
                "collection": one.collection,
                "model": one.model,
                "recipe": one.recipe,
                "system": one.system,
                "query": answer.query.id,
                "text": answer.query.text,
                **_rounded(answer.figures),
                "milliseconds": round(answer.milliseconds, 3),
                "found": list(answer.found),
                **({"degraded": answer.degraded} if answer.degraded else {}),
            }


def degraded_notes(measured: Sequence[Measured]) -> list[str]:
    """What must be said of figures that rest on incomplete answers."""
    return [
        f"{one.collection}, {one.model}, {one.system}: {len(one.degraded):,} of {len(one.answers):,} answers "
        f"lack a source ({one.degraded[0]})"
        for one in measured
        if one.degraded
    ]


def markdown_table(headers: Sequence[str], rows: Sequence[Sequence[str]], numbers_from: int) -> str:
    """A table of Markdown; columns from `numbers_from` on are aligned to the right."""
    rule = ["---" if at < numbers_from else "---:" for at in range(len(headers))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (headers, rule, *rows))


def _row(one: Measured, name: str, answers: Sequence[Answer]) -> tuple[str, ...]:
    figures = mean(answer.figures for answer in answers)
    return (
        one.collection,
        one.model,
        name,
        f"{len(answers):,}",
        *cells_of(figures),
        f"{statistics.median(answer.milliseconds for answer in answers):.2f}",
    )


def _mean_rows(measured: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    """The mean over collections, for each system that was measured on several."""
    for model, system in dict.fromkeys((one.model, one.system) for one in measured):
        same = [one for one in measured if (one.model, one.system) == (model, system)]
        if len(same) > 1:
            total = sum(len(one.answers) for one in same)
            time = statistics.fmean(one.milliseconds for one in same)
            yield (
                "mean",
                model,
                system,
                f"{total:,}",
                *cells_of(mean(one.figures for one in same)),
                f"{time:.2f}",
            )


def cells_of(figures: Figures) -> list[str]:
    """Figures to three places, in the order of the measures."""
    return [f"{figures[name]:.3f}" for name in MEASURES]


def _summary(answers: Sequence[Answer]) -> dict[str, Json]:
    return {
        "queries": len(answers),
        **_rounded(mean(answer.figures for answer in answers)),
        "milliseconds": round(statistics.median(answer.milliseconds for answer in answers), 3),
    }


def _rounded(figures: Figures) -> dict[str, Json]:
    return {name: round(figures[name], 6) for name in MEASURES}
