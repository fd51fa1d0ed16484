"""Writes the tables of docs/quality.md between two markers of the page."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sennit
from sennit.errors import InvalidInput
from sennit.evaluation.metrics import mean_metrics
from sennit.evaluation.report import FIRST_NUMERIC_COLUMN, HEADERS, markdown_table, table_rows
from sennit.evaluation.run import Measurement

BEGIN_MARKER: Final = "<!-- table:begin -->"
END_MARKER: Final = "<!-- table:end -->"

KNOWN_SCOPES: Final = {"locomo_dev": "conversation"}
"""Collections that hold several separate corpora, and the metadata field that names the corpus."""

HEADLINE_METRIC: Final = "nDCG@10"


def write_tables(page: Path, measurements: Sequence[Measurement]) -> None:
    """Replace what is between the markers of a page by the tables."""
    before, after = read_page(page)
    page.write_text(
        f"{before}{BEGIN_MARKER}\n\n{render_tables(measurements)}\n{END_MARKER}{after}", encoding="utf-8"
    )


def read_page(page: Path) -> tuple[str, str]:
    """Return what is before and after the markers of a page; raise InvalidInput if it lacks them."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{page} cannot be read: {error.strerror or error}.") from error
    before, begin, rest = text.partition(BEGIN_MARKER)
    _, end, after = rest.partition(END_MARKER)
    if not begin or not end:
        raise InvalidInput(
            f"{page} needs the lines {BEGIN_MARKER} and {END_MARKER}; the tables go between them."
        )
    return before, after


def render_tables(measurements: Sequence[Measurement]) -> str:
    """A table of the headline metric for each model, a table of all metrics, and the machine."""
    parts = []
    for model in dict.fromkeys(measurement.model for measurement in measurements):
        parts.append(
            f"## {HEADLINE_METRIC}, model `{model}`\n\n{_headline_table([m for m in measurements if m.model == model])}"
        )
    parts.append(
        f"## All metrics\n\n{markdown_table(HEADERS, table_rows(measurements), FIRST_NUMERIC_COLUMN)}"
    )
    parts.append(f"{_environment()}\n")
    return "\n".join(parts)


def _headline_table(measurements: Sequence[Measurement]) -> str:
    """A row for each collection, a column for each system."""
    systems = list(dict.fromkeys(measurement.system for measurement in measurements))
    names = list(dict.fromkeys(measurement.collection for measurement in measurements))
    metrics = {
        (measurement.collection, measurement.system): measurement.metrics for measurement in measurements
    }
    rows = [
        [name, *(f"{metrics[name, s][HEADLINE_METRIC]:.3f}" if (name, s) in metrics else "" for s in systems)]
        for name in names
    ]
    if len(names) > 1:
        means = (
            mean_metrics(metrics[name, s] for name in names if (name, s) in metrics)[HEADLINE_METRIC]
            for s in systems
        )
        rows.append(["**mean**", *(f"**{value:.3f}**" for value in means)])
    return markdown_table(["collection", *systems], rows, 1)


def _environment() -> str:
    """The versions and the machine, which the times depend on."""
    return (
        f"sennit {sennit.__version__}, Python {platform.python_version()}, {platform.system()} on "
        f"{_processor()}, {os.cpu_count()} cores. ms: median of one search for ten results, including the embedding "
        "of the query."
    )


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
