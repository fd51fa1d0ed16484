"""Terminal output: colours and wrapping on a screen, plain text in a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from sennit.context.sanitize import escape_json, sanitize_for_terminal

if TYPE_CHECKING:
    from rich.console import Console

    from sennit.apps.cli.exit_codes import ErrorMessage
    from sennit.results import Degraded, SourceScore

PIPE_WIDTH: Final = 100_000
"""Columns assumed when the output is not a terminal, so that rich never wraps a line."""

_SPACES: Final = re.compile(r"\s+")

ProgressCallback = Callable[[int, int], None]
"""Takes the work done and the total; a total of 0 means unknown."""


class Verbosity(Protocol):
    """The options that decide which messages are shown."""

    @property
    def quiet(self) -> bool: ...

    @property
    def json(self) -> bool: ...


def write_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Write one JSON value on one line of standard output."""
    click.echo(escape_json(json.dumps(value, ensure_ascii=False)))


def write_line(text: str = "") -> None:
    """Write a line of the result to standard output."""
    click.echo(text)


def write_note(verbosity: Verbosity, text: str) -> None:
    """Write a remark to standard error, unless --quiet is given."""
    if not verbosity.quiet:
        click.echo(text, err=True)


def write_warning(text: str) -> None:
    """Write a warning to standard error."""
    click.echo(f"{click.style('Warning:', fg='yellow', bold=True)} {text}", err=True)


def warn_degraded(degraded: Sequence[Degraded]) -> None:
    """Warn about each source that did not answer."""
    for source in degraded:
        write_warning(f"the source {source.source} did not answer: {sanitize_for_terminal(source.reason)}")


def write_error(error: ErrorMessage, *, as_json: bool) -> None:
    """Write an error to standard error, as one JSON object if `as_json` is set."""
    if as_json:
        value = {"error": {"type": error.type, "message": error.message}}
        click.echo(escape_json(json.dumps(value, ensure_ascii=False)), err=True)
    else:
        click.echo(
            f"{click.style('Error:', fg='red', bold=True)} {sanitize_for_terminal(error.message)}", err=True
        )


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return sanitize_for_terminal(_SPACES.sub(" ", text)).strip()


def make_console(*, err: bool = False) -> Console:
    """Make a rich console that neither colours nor wraps output that goes into a pipe."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    is_terminal = stream.isatty()
    return Console(
        file=stream,
        force_terminal=is_terminal,
        color_system="auto" if is_terminal and not os.environ.get("NO_COLOR") else None,
        width=None if is_terminal else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def write_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: int = 0
) -> None:
    """Write rows in columns; `right` lists the columns that are aligned to the right."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, header in enumerate(headers):
        grid.add_column(header, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(one_line(cell)) for cell in row))
    console = make_console()
    with console.capture() as captured:
        console.print(Padding(grid, (0, 0, 0, indent), expand=False))
    # rich pads every column with spaces; drop them at the end of a line.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def write_source_scores(source_scores: Sequence[SourceScore], *, indent: int) -> None:
    """Write rank, score and share of a record in each source, and why the source matched."""
    has_reasons = any(source_score.match_reason for source_score in source_scores)
    write_table(
        ("source", "rank", "score", "share", *(("",) if has_reasons else ())),
        [
            (
                source_score.source,
                "-" if source_score.rank is None else str(source_score.rank),
                "-" if source_score.score is None else f"{source_score.score:.4f}",
                f"{source_score.share:.4f}",
                *((one_line(source_score.match_reason),) if has_reasons else ()),
            )
            for source_score in source_scores
        ],
        right=(1, 2, 3),
        indent=indent,
    )


@contextlib.contextmanager
def progress_bar(verbosity: Verbosity, label: str) -> Iterator[ProgressCallback]:
    """Show a progress bar on standard error, if that is a terminal and neither --quiet nor --json is given."""
    if verbosity.quiet or verbosity.json or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=make_console(err=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield update


def shown_path(path: str) -> str:
    """Return a path relative to the current folder, if it is inside; else as it is."""
    folder = f"{os.getcwd().rstrip(os.sep)}{os.sep}"  # noqa: PTH109 - compared as text, like the paths of records
    return path.removeprefix(folder) or path


def pluralize(number: int, noun: str) -> str:
    """Return `1 record` or `2,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
