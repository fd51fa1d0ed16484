"""`sennit search` and `sennit why`."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exits import OK, SOURCES
from sennit.apps.cli.session import TEXT, Session, common, pass_session

if TYPE_CHECKING:
    from sennit.filters import Filter
    from sennit.results import Hit, Result, Why

SNIPPET: Final = 200
"""Characters of text shown for a hit where there is no screen to measure."""

_options: Final = (
    click.option("-r", "--recipe", type=TEXT, help="How to search; 'sennit recipes' lists them."),
    click.option(
        "-c", "--collection", "collections", type=TEXT, multiple=True, help="Only this; repeatable."
    ),
    click.option("-n", "--limit", type=int, help="How many results."),
    click.option(
        "-f",
        "--filter",
        "where",
        type=TEXT,
        help="Only what passes, e.g. 'kind = \"note\" and timestamp >= 2026-01-01'.",
    ),
    click.option(
        "-k", "--keyword", "keywords", type=TEXT, multiple=True, help="Exact text for grep; repeatable."
    ),
    click.option(
        "--include", type=TEXT, multiple=True, help="A collection that the recipe has on request; repeatable."
    ),
)


def _asking(function: click.decorators.FC) -> click.decorators.FC:
    for option in reversed(_options):
        function = option(function)
    return function


@click.command()
@click.argument("query", type=TEXT)
@_asking
@click.option("--neighbours", type=int, default=0, help="Show this many chunks around a found one.")
@click.option("-e", "--explain", is_flag=True, help="Show what every source said about each result.")
@common
@pass_session
def search(
    session: Session,
    query: str,
    recipe: str | None,
    collections: tuple[str, ...],
    limit: int | None,
    where: str | None,
    keywords: tuple[str, ...],
    include: tuple[str, ...],
    neighbours: int,
    explain: bool,
) -> int:
    """Find the best records for a question, in one ranking of keyword and meaning."""
    with session.open() as db:
        result = db.search(
            query,
            recipe=recipe,
            limit=limit,
            filters=_filter(collections, where),
            keywords=keywords or None,
            include=include,
            neighbours=neighbours,
            explain=explain,
        )
    if session.json:
        output.emit(result.to_dict())
    else:
        output.warn_degraded(result.degraded)
        show(result)
        if not result:
            output.note(session, "Nothing found.")
    return OK if result.answered else SOURCES


@click.command()
@click.argument("query", type=TEXT)
@click.argument("record_id", metavar="ID", type=TEXT)
@_asking
@common
@pass_session
def why(
    session: Session,
    query: str,
    record_id: str,
    recipe: str | None,
    collections: tuple[str, ...],
    limit: int | None,
    where: str | None,
    keywords: tuple[str, ...],
    include: tuple[str, ...],
) -> int:
    """Say why the record ID is in the answer to a question, or which stage and number kept it out."""
    with session.open() as db:
        found = db.why(
            query,
            record_id,
            recipe=recipe,
            limit=limit,
            filters=_filter(collections, where),
            keywords=keywords or None,
            include=include,
        )
    if session.json:
        output.emit(found.to_dict())
    else:
        output.warn_degraded(found.degraded)
        show_why(found)
    return OK if found.answered else SOURCES


def show(result: Result) -> None:
    """A result for people."""
    for hit in result:
        show_hit(hit, result.query)


def show_hit(hit: Hit, query: str) -> None:
    """Rank, score, what it is and where, a piece of its text, and its explanation if it has one."""
    from sennit.apps.cli.snippets import snippet

    title = output.one_line(hit.title)
    heading = (
        click.style(title, bold=True) if title else click.style(output.one_line(hit.citation), bold=True)
    )
    about = [output.one_line(hit.citation)] if title else []
    about += [output.one_line(hit.collection)] if hit.collection != "default" else []
    behind = f"  {click.style(' · '.join(about), dim=True)}" if about else ""
    output.say(f"{hit.rank:>2}  {hit.score:.4f}  {heading}{behind}")
    width = shutil.get_terminal_size().columns - 6 if sys.stdout.isatty() else SNIPPET
    text = snippet(hit.passage, query, max(width, 40), lambda word: click.style(word, fg="yellow", bold=True))
    if text:
        output.say(f"    {text}")
    if hit.explanation is not None:
        output.standings_table(hit.explanation.standings, indent=4)
        for adjustment in hit.explanation.adjustments:
            output.say(
                f"    {adjustment.stage}: {adjustment.before:.4f} -> {adjustment.after:.4f} {adjustment.reason}"
            )
        if hit.explanation.displaced:
            output.say(f"    in place of: {output.one_line(', '.join(hit.explanation.displaced))}")


def show_why(found: Why) -> None:
    """A verdict for people."""
    name = output.one_line(found.id)
    verdict = "is in the answer" if found.kept else f"is not in the answer; decided by: {found.stage}"
    output.say(f"{click.style(name, bold=True)} {verdict}")
    output.say(f"    {output.one_line(found.reason)}")
    if not found.kept and found.number is not None and found.needed is not None:
        output.say(f"    it has {found.number:.4f} and would need {found.needed:.4f}")
    if found.standings:
        output.standings_table(found.standings, indent=4)


def _filter(collections: tuple[str, ...], where: str | None) -> Filter:
    from sennit.filters import EVERYTHING, In, parse_filter

    wanted = parse_filter(where)
    if not collections:
        return wanted
    inside = In("collection", collections)
    return inside if wanted == EVERYTHING else inside & wanted
