"""`sennit grep`: exact text in files, as passages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from sennit.apps.cli import output
from sennit.apps.cli.folders import database, named_folders
from sennit.apps.cli.session import TEXT, Session, common, pass_session

if TYPE_CHECKING:
    from sennit.folders import GrepAnswer, GrepOptions, Passage


@click.command()
@click.argument("keywords", metavar="QUERY...", type=TEXT, nargs=-1, required=True)
@click.option("-e", "--regex", is_flag=True, help="QUERY is a regular expression.")
@click.option(
    "--case",
    type=click.Choice(["smart", "sensitive", "ignore"]),
    default="smart",
    show_default=True,
    help="Smart: a QUERY without capitals is found in any case.",
)
@click.option(
    "--glob", "globs", metavar="GLOB", type=TEXT, multiple=True, help="Only such files, or !no such."
)
@click.option("--hidden", is_flag=True, help="Also files and folders whose names begin with a dot.")
@click.option("--no-ignore", is_flag=True, help="Do not heed .gitignore and .ignore.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="How many passages."
)
@named_folders("Where to search")
@common
@pass_session
def grep(
    session: Session,
    keywords: tuple[str, ...],
    regex: bool,
    case: Literal["smart", "sensitive", "ignore"],
    globs: tuple[str, ...],
    hidden: bool,
    no_ignore: bool,
    limit: int,
    folders: tuple[Path, ...],
) -> None:
    """Find exact text in files, and show it with the ten lines before and after.

    Passages with more of the QUERYs come first, then those with more matches. GLOB is a pattern as in .gitignore:
    '*.md', 'docs/**', '!build/'.
    """
    from sennit.folders import GrepOptions

    options = GrepOptions(
        regex=regex, case=case, globs=globs, hidden=hidden, ignored=no_ignore, max_passages=limit
    )
    answer = _ask(session, keywords, options, folders)
    if session.json:
        output.emit({"keywords": list(keywords), **answer.to_dict()})
        return
    for reason in answer.skipped:
        output.warn(f"not searched: {output.plain(reason)}")
    for at, passage in enumerate(answer.passages):
        if at:
            output.say()
        show(passage)
    for sentence in answer.limits:
        output.warn(output.plain(sentence))
    matches = f"{answer.matches:,} {'match' if answer.matches == 1 else 'matches'}"
    found = f"{matches} in {output.counted(answer.files, 'file')}."
    output.note(session, found if answer.files else "Nothing found.")


def show(passage: Passage) -> None:
    """A passage for people: where it is, then its lines with their numbers and a mark at those that match."""
    place = passage.citation.removeprefix(f"{Path.cwd()}{os.sep}")
    about = f"{passage.matches:,} × {', '.join(passage.keywords)}"
    output.say(
        f"{click.style(output.one_line(place), bold=True)}  {click.style(output.one_line(about), dim=True)}"
    )
    for line, (_, _, matches) in zip(passage.marked().split("\n"), passage.numbered(), strict=True):
        text = output.plain(line)
        output.say(click.style(text, fg="yellow", bold=True) if matches else text)


def _ask(
    session: Session, keywords: tuple[str, ...], options: GrepOptions, folders: tuple[Path, ...]
) -> GrepAnswer:
    if folders:
        from sennit.folders import grep as find

        return find(folders, keywords, options)
    with database(session, "search") as db:
        return db.grep(keywords, options=options)
