"""`sennit judge`: grade search results by hand, as judgements that `sennit eval` reads."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.options import TextFile
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import InvalidInput
from sennit.feedback import MAX_GRADE, check_grade

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.evaluation.judging import JudgingFolder, JudgingTask

UNDO_KEYS: Final = ("u", "\x7f", "\b")
SKIP_KEYS: Final = ("s", " ")
QUIT_KEYS: Final = ("q", "\x03", "\x04", "")
SHOWN_CHARACTERS: Final = 1500
"""Characters of a passage that are shown at once; enough to judge it, and it fits into a terminal."""

KEYS: Final = (
    "0 not relevant · 1 related · 2 relevant · 3 exactly right · s skip · n next query · u undo · q quit"
)


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("-r", "--recipe", "recipes", type=TEXT, multiple=True, help="Judge results of it; repeatable.")
@click.option(
    "-n",
    "--limit",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Results of each recipe.",
)
@click.option(
    "--query", "queries", type=TEXT, multiple=True, help="Add this query to the folder; repeatable."
)
@click.option(
    "--from",
    "source",
    type=TextFile(),
    metavar="FILE",
    help="Read grades; - is stdin.",
)
@common_options
@pass_session
def judge(
    session: Session,
    folder: Path,
    recipes: tuple[str, ...],
    limit: int,
    queries: tuple[str, ...],
    source: str | None,
) -> None:
    """Grade results of the queries in DIR/queries.jsonl, one key each, into DIR/qrels.tsv.

    \b
    Example:
      sennit judge mine --query 'how do I restore a backup'

    Results of several recipes are pooled, and shown in random order without their recipe. A grade is saved at once, so
    you can quit and go on later. With --json, the ungraded results are printed as JSON lines; --from reads lines with
    `query`, `id` and `grade`.
    """
    from sennit.evaluation.judging import JudgingFolder

    with session.open() as db:
        judging = JudgingFolder(folder)
        judging.add_queries(queries)
        if source is not None:
            count = judging.add_all(_read_grades(source.split("\n")))
            _finish(session, db, judging, count)
            return
        tasks = judging.tasks(db, recipes or (db.settings.search.recipe,), limit)
        if session.json:
            for task in tasks:
                output.write_json(task.to_dict())
            return
        if not sys.stdin.isatty() or not sys.stdout.isatty():
            raise InvalidInput("Judging needs a terminal; without one, use --json and --from.")
        _finish(session, db, judging, _walk(judging, list(tasks)))


def _finish(session: Session, db: Database, judging: JudgingFolder, count: int) -> None:
    judging.write_corpus(db)
    if session.json:
        output.write_json({"graded": count, "judgements": judging.count, "folder": str(judging.folder)})
    else:
        output.write_note(
            session,
            f"{output.pluralize(count, 'result')} graded, {judging.count:,} in "
            f"{output.one_line(str(judging.folder))}. 'sennit eval' reads it.",
        )


def _walk(judging: JudgingFolder, tasks: list[JudgingTask]) -> int:
    """Show one result after the other, and save a grade for each; return how many were graded."""
    graded: dict[int, None] = {}
    # Ctrl+C ends the walk; what was graded is saved.
    with _key_reader() as read_key, contextlib.suppress(KeyboardInterrupt):
        _walk_with(read_key, judging, tasks, graded)
    return len(graded)


def _walk_with(
    read_key: Callable[[], str], judging: JudgingFolder, tasks: list[JudgingTask], graded: dict[int, None]
) -> None:
    at = 0
    while at < len(tasks):
        task = tasks[at]
        _show(task, at, len(tasks))
        key = read_key()
        if key in QUIT_KEYS:
            break
        if key.isdecimal() and key.isascii() and int(key) <= MAX_GRADE:
            judging.add(task.query.id, task.id, int(key))
            graded[at] = None
            at += 1
        elif key in SKIP_KEYS:
            at += 1
        elif key == "n":
            at = next((n for n in range(at, len(tasks)) if tasks[n].query != task.query), len(tasks))
        elif key in UNDO_KEYS and at:
            at = max(graded, default=at - 1)
            graded.pop(at, None)
            judging.remove(tasks[at].query.id, tasks[at].id)


@contextlib.contextmanager
def _key_reader() -> Iterator[Callable[[], str]]:
    """Yield a function that reads a key. The terminal stays in one mode, so that no key pressed in between is lost."""
    try:
        import termios
        import tty
    except ImportError:  # Windows
        yield click.getchar
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSANOW)
    try:
        yield lambda: os.read(descriptor, 1).decode("latin-1")
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _show(task: JudgingTask, at: int, total: int) -> None:
    click.clear()
    output.write_line(
        f"{click.style(output.one_line(task.query.text), bold=True)}   ({at + 1:,} of {total:,})\n"
    )
    output.write_line(click.style(output.one_line(task.citation), fg="cyan"))
    if task.title:
        output.write_line(click.style(output.one_line(task.title), bold=True))
    output.write_line(sanitize_for_terminal(output.truncate(task.text, SHOWN_CHARACTERS)))
    output.write_line(f"\n{KEYS}")


def _read_grades(lines: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values: Any = json.loads(line)
            yield str(values["query"]), str(values["id"]), check_grade(values["grade"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise InvalidInput(f"Line {number}: {error}") from error
            raise InvalidInput(f"Line {number}: needs an object with query, id and grade") from error
