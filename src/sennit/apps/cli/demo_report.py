"""What `sennit demo` prints, and the results of its checks."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.excerpts import best_sentence_line, find_matches, highlight_spans

if TYPE_CHECKING:
    from pathlib import Path

    from sennit.results import SearchResult

MAX_COLUMNS: Final = 80
MIN_COLUMNS: Final = 40

INDENT: Final = "  "

INSTALL_LABEL: Final = "Install it with: "
"""What MissingExtra puts before the command that installs an extra."""


@dataclass(frozen=True)
class Check:
    """A statement that the demo verifies."""

    step: str
    statement: str
    ok: bool


@dataclass
class DemoReport:
    """Prints the steps of the demo, unless it is silent, and collects the checks."""

    is_silent: bool
    samples: Path
    """The folder of the sample data; citations are shown relative to it."""
    step: str = ""
    checks: list[Check] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def start_step(self, step: str) -> None:
        """Begin a step that prints nothing but its failed checks."""
        self.step = step

    def start_recipe(self, number: str, name: str, purpose: str, commands: Iterable[str]) -> None:
        """Begin the step of a recipe: print its purpose and the commands that a user would type."""
        self.step = name
        if self.is_silent:
            return
        output.write_line()
        output.write_line(click.style(f"{number}  {name}", bold=True, fg="cyan"))
        self.write_paragraph(purpose)
        output.write_line()
        for command in commands:
            output.write_line(f"{INDENT}{click.style(f'$ {command}', bold=True)}")
        output.write_line()

    def check(self, statement: str, ok: bool, *, show: bool = True) -> None:
        """Record a check, and print it; with `show=False` only if it failed."""
        self.checks.append(Check(self.step, statement, ok))
        if self.is_silent or (ok and not show):
            return
        mark = click.style("ok", fg="green") if ok else click.style("FAILED", fg="red", bold=True)
        where = "" if show else f"{self.step}: "
        output.write_line(f"{INDENT}{mark}  {where}{statement}")

    def leave_out(self, reason: str) -> None:
        """Record that a part of the step cannot run here, and print the reason."""
        self.left_out.append((self.step, reason))
        if self.is_silent:
            return
        why, label, command = reason.partition(INSTALL_LABEL)
        self.write_paragraph(f"Left out: {why}{label}")
        # On a line of its own, so that the command can be copied.
        self.write_lines([f"  {command}"] if command else [])

    def write_paragraph(self, text: str) -> None:
        """Print wrapped and indented text."""
        self.write_lines(textwrap.wrap(text, columns() - len(INDENT), break_long_words=False))

    def write_lines(self, lines: Iterable[str]) -> None:
        """Print indented lines."""
        if not self.is_silent:
            for line in lines:
                output.write_line(f"{INDENT}{line}".rstrip())

    def write_hits(self, result: SearchResult, limit: int) -> list[str]:
        """Print the first hits, and return the ids of all."""
        for hit in result[:limit]:
            title = output.one_line(hit.title)
            citation = output.one_line(hit.citation).removeprefix(f"{self.samples}{os.sep}")
            found_by = " and ".join(dict.fromkeys(source.partition(":")[0] for source in hit.sources))
            excerpt = best_sentence_line(hit.passage, result.query, columns() - 10)
            self.write_lines(
                (
                    f"{hit.rank}  {click.style(title or citation, bold=True)}",
                    f"   {citation if title else ''}{', ' if title else ''}found by {found_by}",
                    f"   {highlight_spans(excerpt, find_matches(excerpt, result.query), output.highlight)}",
                )
            )
        return [hit.id for hit in result]


def columns() -> int:
    """Return the width of the text: that of the terminal, but at most 80 columns."""
    return max(MIN_COLUMNS, min(MAX_COLUMNS, shutil.get_terminal_size().columns))
