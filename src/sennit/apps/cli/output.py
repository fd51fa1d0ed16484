"""What is written to the terminal, and how: plain into a pipe, pleasant on a screen."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

if TYPE_CHECKING:
    from rich.console import Console

    from sennit.apps.cli.exits import Complaint
    from sennit.results import Degraded, Standing

UNWRAPPED: Final = 100_000
"""The width of what is not a screen: a line stays a line."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SPACES: Final = re.compile(r"\s+")

Update = Callable[[int, int], None]
"""How much is done, of how much (0: not known)."""


class Manner(Protocol):
    """How the user wants to be spoken to."""

    @property
    def quiet(self) -> bool: ...

    @property
    def json(self) -> bool: ...


def emit(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """One JSON value on one line of standard output."""
    click.echo(_CONTROL.sub(_escaped, json.dumps(value, ensure_ascii=False)))


def say(text: str = "") -> None:
    """A line of the answer."""
    click.echo(text)


def note(manner: Manner, text: str) -> None:
    """A line beside the answer, on standard error."""
    if not manner.quiet:
        click.echo(text, err=True)


def warn(text: str) -> None:
    """What must not be overlooked, on standard error."""
    click.echo(f"{click.style('Warning:', fg='yellow', bold=True)} {text}", err=True)


def warn_degraded(degraded: Sequence[Degraded]) -> None:
    """Name the sources that did not answer."""
    for source in degraded:
        warn(f"the source {source.source} did not answer: {plain(source.reason)}")


def complain(complaint: Complaint, *, as_json: bool) -> None:
    """An error on standard error, as one JSON object where JSON is wanted."""
    if as_json:
        error = {"type": complaint.type, "message": complaint.message}
        click.echo(json.dumps({"error": error}, ensure_ascii=False), err=True)
    else:
        click.echo(f"{click.style('Error:', fg='red', bold=True)} {plain(complaint.message)}", err=True)


def plain(text: str) -> str:
    """The text without what could steer a terminal; newlines and tabs stay."""
    return _CONTROL.sub("\ufffd", text)


def one_line(text: str) -> str:
    """The text on one line, fit for a terminal."""
    return plain(_SPACES.sub(" ", text)).strip()


def console(*, err: bool = False) -> Console:
    """A rich console that neither colours nor wraps what goes into a pipe."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    screen = stream.isatty()
    return Console(
        file=stream,
        force_terminal=screen,
        color_system="auto" if screen and not os.environ.get("NO_COLOR") else None,
        width=None if screen else UNWRAPPED,
        highlight=False,
        markup=False,
        emoji=False,
    )


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: int = 0
) -> None:
    """Rows in columns; `right` says which columns hold numbers."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for at, header in enumerate(headers):
        grid.add_column(header, justify="right" if at in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(one_line(cell)) for cell in row))
    screen = console()
    with screen.capture() as drawn:
        screen.print(Padding(grid, (0, 0, 0, indent), expand=False))
    # Columns are filled up with spaces, which nobody wants at the end of a line.
    click.echo("\n".join(line.rstrip() for line in drawn.get().splitlines()))


def standings_table(standings: Sequence[Standing], *, indent: int) -> None:
    """How a record stood in each source, and what that has to say of it."""
    noted = any(standing.note for standing in standings)
    table(
        ("source", "rank", "score", "share", *(("",) if noted else ())),
        [
            (
                standing.source,
                "-" if standing.rank is None else str(standing.rank),
                "-" if standing.score is None else f"{standing.score:.4f}",
                f"{standing.share:.4f}",
                *((one_line(standing.note),) if noted else ()),
            )
            for standing in standings
        ],
        right=(1, 2, 3),
        indent=indent,
    )


@contextlib.contextmanager
def progress(manner: Manner, label: str, closing: str = "") -> Iterator[Update]:
    """A progress bar on standard error, if that is a screen and someone wants to see it.

    `closing` says what is still done when everything that is counted is."""
    if manner.quiet or manner.json or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(err=True), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            said = closing if closing and done == total else label
            bar.update(task, completed=done, total=total or None, description=said)

        yield update


def counted(number: int, noun: str) -> str:
    """`1 record`, `2,000 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
