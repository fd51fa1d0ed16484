"""The progress of an index run: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sennit.apps.cli import output
from sennit.places import shown_path

if TYPE_CHECKING:
    from rich.progress import Task

    from sennit.ingest import IndexProgress, Progress

LOG_SECONDS: Final = 10.0
"""Without a terminal, a line is written at most this often, and none for a shorter run."""

MIN_SHARE_TO_ESTIMATE: Final = 0.05
"""Of the bytes, before the remaining time is estimated: the first files take longer, because workers start."""

LABELS: Final = {"scan": "Looking for files", "read": "Indexing", "write": "Writing", "merge": "Merging"}


@contextlib.contextmanager
def show_index_progress(verbosity: output.Verbosity) -> Iterator[Progress]:
    """Show the progress on standard error, unless --quiet or --json is given."""
    if verbosity.quiet or verbosity.json:
        yield lambda _step: None
    elif sys.stderr.isatty():
        with _bar() as update:
            yield update
    else:
        yield ProgressLog(verbosity)


class ProgressLog:
    """Writes a line to standard error at intervals."""

    def __init__(self, verbosity: output.Verbosity, seconds: float = LOG_SECONDS) -> None:
        self._verbosity = verbosity
        self._seconds = seconds
        self._last = time.monotonic()

    def __call__(self, step: IndexProgress) -> None:
        now = time.monotonic()
        if now - self._last >= self._seconds:
            self._last = now
            output.write_note(self._verbosity, describe_step(step))


def describe_step(step: IndexProgress) -> str:
    """Return a step on one line: the phase, the files and bytes that are done, and the file that is read."""
    if step.phase != "read":
        return f"{LABELS[step.phase]} …"
    done = f"{step.files:,} of {output.pluralize(step.total_files, 'file')}"
    size = f"{format_bytes(step.bytes)} of {format_bytes(step.total_bytes)}"
    return f"Indexing: {done}, {size}{f'; at {output.one_line(step.path)}' if step.path else ''}"


def format_bytes(number: float) -> str:
    """Return 512 bytes, 1.5 kB, 12 MB."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB"):
        if number < 999.5:
            break
        number, unit = number / 1000, larger
    return f"{number:.1f} {unit}" if unit != "bytes" and number < 9.95 else f"{number:.0f} {unit}"


def estimate_seconds(elapsed: float, done: float, total: float | None) -> float | None:
    """Return the remaining time at the speed so far; None if too little is done to say."""
    if not total or done < MIN_SHARE_TO_ESTIMATE * total:
        return None
    return elapsed * (total - done) / done


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Remaining(ProgressColumn):
        """The estimated time, or the time that has passed. A large file makes the estimate grow while it is read."""

        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            elapsed = task.elapsed or 0.0
            left = estimate_seconds(elapsed, task.completed, task.total)
            return Text(f"{elapsed:.0f} s" if left is None else f"{left:.0f} s left", style="dim")

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[counts]}", markup=False),
        Remaining(),
        TextColumn(
            "{task.fields[path]}",
            style="dim",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
    )
    with Progress(*columns, console=output.make_console(err=True), transient=True, expand=True) as progress:
        task = progress.add_task(LABELS["scan"], total=None, counts="", path="")

        shown = ""

        def update(step: IndexProgress) -> None:
            nonlocal shown
            counts = ""
            if step.phase == "read":
                counts = (
                    f"{step.files:,}/{step.total_files:,} files, "
                    f"{format_bytes(step.bytes)} of {format_bytes(step.total_bytes)}"
                )
            progress.update(
                task,
                description=LABELS[step.phase],
                # Bytes say more about the time than files. Other phases are of unknown length.
                total=step.total_bytes or None if step.phase == "read" else None,
                completed=step.bytes,
                counts=counts,
                path=output.one_line(shown_path(step.path)),
                refresh=step.phase != shown,
            )
            shown = step.phase

        yield update
