"""Terminal output: colours and wrapping on a screen, plain text in a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import click

from sennit.context.sanitize import escape_json, sanitize_for_terminal
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from sennit.apps.cli.exit_codes import ErrorMessage
    from sennit.results import Degraded, Hint, SourceScore

PIPE_WIDTH: Final = 100_000
"""Columns assumed when the output is not a terminal, so that rich never wraps a line."""

WIDE_CELLS: Final = 120
"""From this width on, a terminal has room for bars."""

BAR_CELLS: Final = 12
"""Width of the longest bar."""

MIN_WRAPPED_CELLS: Final = 20
"""A text is wrapped to no less; in a narrower terminal, the terminal breaks it."""

CUT: Final = " …"
"""At the end of a text that goes on."""

_SPACES: Final = re.compile(r"\s+")
_ESCAPES: Final = re.compile(r"\x1b\]8;;[^\x1b]*\x1b\\|\x1b\[[0-9;]*m")

ProgressCallback = Callable[[int, int], None]
"""Takes the work done and the total; a total of 0 means unknown."""


class Verbosity(Protocol):
    """The options that decide which messages are shown."""

    @property
    def quiet(self) -> bool: ...

    @property
    def json(self) -> bool: ...


class CommandLine(Verbosity, Protocol):
    """A command line that another one can be made for."""

    def on_this_database(self, command: str) -> str: ...


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


def write_nothing_found(session: CommandLine, hints: Sequence[Hint], message: str = "Nothing found.") -> None:
    """Say that an answer is empty, why, and what would find something."""
    write_note(session, message)
    for hint in hints:
        write_note(session, sanitize_for_terminal(hint.message))
        if hint.command:
            command = one_line(session.on_this_database(hint.command))
            write_note(session, f"  {click.style(command, bold=True)}")


def write_error(error: ErrorMessage, *, as_json: bool) -> None:
    """Write an error to standard error, as one JSON object if `as_json` is set."""
    if as_json:
        value = {"error": {"type": error.type, "message": error.message}}
        click.echo(escape_json(json.dumps(value, ensure_ascii=False)), err=True)
    else:
        # An error may come before a command has a context that says so.
        label = click.style("Error:", fg="red", bold=True) if allows_colours() else "Error:"
        click.echo(f"{label} {sanitize_for_terminal(error.message)}", err=True)


def highlight(word: str) -> str:
    """Style a word that matches the query."""
    return click.style(word, fg="yellow", bold=True)


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
        color_system="auto" if is_terminal and allows_colours() else None,
        width=None if is_terminal else PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def terminal_width() -> int | None:
    """Return the columns of the terminal; None if the output goes into a pipe or a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrap(text: str, *, indent: int) -> str:
    """Return a text in lines that fit the terminal, those after the first indented; whole if there is no terminal."""
    from textwrap import wrap

    width = terminal_width()
    if width is None:
        return text
    room = max(width - indent, MIN_WRAPPED_CELLS)
    return f"\n{' ' * indent}".join(wrap(text, room, break_long_words=False, break_on_hyphens=False))


def allows_colours() -> bool:
    """Return whether the user and the kind of terminal allow colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def has_colours() -> bool:
    """Return whether the output may have colours and links: on a terminal that allows them."""
    return sys.stdout.isatty() and allows_colours()


def link(text: str, address: str | None) -> str:
    """Return a text that a terminal opens when it is clicked (OSC 8)."""
    if address is None or not has_colours() or not address.isprintable():
        return text
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def wrap_rows(text: str, width: int, rows: int) -> list[str]:
    """Return a text in at most so many rows of a terminal, broken at blanks where possible."""
    out: list[str] = []
    while text:
        end = _fitting(text, width)
        if end == len(text):
            return [*out, text]
        is_last = len(out) == rows - 1
        if is_last:
            end = _fitting(text, width - len(CUT))
        blank = text.rfind(" ", end // 2, end + 1)
        row = text[: blank if blank > 0 else end].rstrip()
        if is_last:
            return [*out, f"{row}{CUT}"]
        out.append(row)
        text = text[len(row) :].lstrip()
    return out


def _fitting(text: str, cells: int) -> int:
    """Return how many characters of a text fit so many cells; at least one."""
    if text[: cells + 1].isascii():
        return min(len(text), cells)
    from rich.cells import get_character_cell_size

    for at, character in enumerate(text):
        cells -= get_character_cell_size(character)
        if cells < 0:
            return max(at, 1)
    return len(text)


def visible_width(text: str) -> int:
    """Return how many cells a styled text takes on a terminal."""
    visible = _ESCAPES.sub("", text)
    if visible.isascii():
        return len(visible)
    from rich.cells import cell_len

    return cell_len(visible)


def bar(number: float, largest: float) -> str:
    """Return a bar for a share of the largest number, as wide for every number."""
    cells = round(BAR_CELLS * number / largest) if largest > 0 and number > 0 else 0
    return f"{click.style('━' * cells, fg='green')}{' ' * (BAR_CELLS - cells)}  "


def write_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    whole: Sequence[int] = (),
    indent: int = 0,
) -> None:
    """Write rows in columns. `right` lists the columns that are aligned to the right, `whole` those that never wrap."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, header in enumerate(headers):
        justify: Literal["right", "left"] = "right" if index in right else "left"
        grid.add_column(header, justify=justify, overflow="fold", no_wrap=index in whole)
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
    width = terminal_width()
    is_wide = width is not None and width >= WIDE_CELLS
    largest = max((source_score.share for source_score in source_scores), default=0.0)
    write_table(
        ("source", "rank", "score", "share", *(("",) if is_wide else ()), *(("",) if has_reasons else ())),
        [
            (
                source_score.source,
                "-" if source_score.rank is None else str(source_score.rank),
                "-" if source_score.score is None else f"{source_score.score:.4f}",
                f"{source_score.share:.4f}",
                *((click.unstyle(bar(source_score.share, largest)).rstrip(),) if is_wide else ()),
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


def truncate(text: str, cells: int) -> str:
    """Return the beginning of a text that fits so many cells, with an ellipsis if there is more."""
    return text if _fitting(text, cells) == len(text) else f"{text[: _fitting(text, cells - 1)]}…"


def confirm(verbosity: Verbosity, question: str, *, yes: bool) -> None:
    """Ask before something is removed. Without a terminal nobody can answer, so --yes is needed."""
    if yes:
        return
    if verbosity.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(f"{question} Give --yes to do it without a question.")
    click.confirm(sanitize_for_terminal(question), abort=True, err=True)


def pluralize(number: int, noun: str) -> str:
    """Return `1 record`, `2,000 records`, `2 queries` or `2 matches`."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{'es' if noun.endswith('ch') else 's'}"
    return f"{number:,} {plural}"
