"""The tables of docs/quality.md, written between two marks in a page."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sennit
from sennit.errors import InvalidInput
from sennit.evaluation.metrics import mean
from sennit.evaluation.report import FIRST_NUMBER, HEADERS, markdown_table, rows_of
from sennit.evaluation.run import Measured

BEGIN: Final = "<!-- table:begin -->"
END: Final = "<!-- table:end -->"

SCOPES: Final = {"locomo_dev": "conversation"}
"""Collections that are several bodies of text in one, and the field that tells them apart."""

HEADLINE: Final = "nDCG@10"


def write_tables(page: Path, measured: Sequence[Measured]) -> None:
    """Put the tables between the marks of a page, which has them already."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{page} cannot be read: {error.strerror or error}.") from error
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InvalidInput(f"{page} needs the lines {BEGIN} and {END}; the tables go between them.")
    page.write_text(f"{before}{BEGIN}\n\n{tables(measured)}\n{END}{after}", encoding="utf-8")


def tables(measured: Sequence[Measured]) -> str:
    """Per model a table of the headline measure, then everything, then where it was measured."""
    parts = []
    for model in dict.fromkeys(one.model for one in measured):
        parts.append(
            f"### {HEADLINE}, model `{model}`\n\n{_headline([o for o in measured if o.model == model])}"
        )
    parts.append(f"### All measures\n\n{markdown_table(HEADERS, rows_of(measured), FIRST_NUMBER)}")
    parts.append(f"{_where()}\n")
    return "\n".join(parts)


def _headline(measured: Sequence[Measured]) -> str:
    """Collections down, systems across."""
    systems = list(dict.fromkeys(one.system for one in measured))
    names = list(dict.fromkeys(one.collection for one in measured))
    found = {(one.collection, one.system): one.figures for one in measured}
    rows = [
        [name, *(f"{found[name, s][HEADLINE]:.3f}" if (name, s) in found else "" for s in systems)]
        for name in names
    ]
    if len(names) > 1:
        means = (mean(found[name, s] for name in names if (name, s) in found)[HEADLINE] for s in systems)
        rows.append(["**mean**", *(f"**{value:.3f}**" for value in means)])
    return markdown_table(["collection", *systems], rows, 1)


def _where() -> str:
    """The machine, because a time without one says nothing."""
    return (
        f"sennit {sennit.__version__}, Python {platform.python_version()}, {platform.system()} on "
        f"{_processor()}, {os.cpu_count()} cores. ms: median of one search for ten results, embedding of the "
        "question included."
    )


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
