"""`sennit grep`: exact text in files, shown as passages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from sennit.apps.cli import output
from sennit.apps.cli.options import choose_project, folder_option, open_for_files, project_option
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.apps.locations import file_link
from sennit.context.sanitize import sanitize_for_terminal

if TYPE_CHECKING:
    from sennit.folders import GrepOptions, GrepResult, Passage


@click.command()
@click.argument("keywords", metavar="QUERY...", type=TEXT, nargs=-1, required=True)
@click.option("-e", "--regex", is_flag=True, help="QUERY is a regular expression.")
@click.option(
    "--case",
    type=click.Choice(["smart", "sensitive", "ignore"]),
    default="smart",
    show_default=True,
    help="smart: a QUERY in lower case matches any case.",
)
@click.option(
    "--glob",
    "globs",
    metavar="GLOB",
    type=TEXT,
    multiple=True,
    help="Only these files; a leading ! excludes.",
)
@click.option("--hidden", is_flag=True, help="Include files and folders whose names begin with a dot.")
@click.option("--no-ignore", is_flag=True, help="Do not apply .gitignore and .ignore.")
@click.option(
    "-n", "--limit", type=click.IntRange(min=1), default=10, show_default=True, help="Number of passages."
)
@project_option
@folder_option("Search this folder")
@common_options
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
    project: str | None,
    folders: tuple[Path, ...],
) -> None:
    """Find exact text in files, and show ten lines before and after each match.

    \b
    Example:
      sennit grep "max_retries" --folder src --glob "*.py"

    Passages that contain more of the QUERYs come first, then those with more matches. GLOB is a pattern as in
    .gitignore: '*.md', 'docs/**', '!build/'.
    """
    from sennit.folders import GrepOptions

    options = GrepOptions(
        regex=regex, case=case, globs=globs, hidden=hidden, ignored=no_ignore, max_passages=limit
    )
    answer = _grep(session, keywords, options, folders, project)
    if session.json:
        output.write_json({"keywords": list(keywords), **answer.to_dict()})
        return
    for reason in answer.skipped:
        output.write_warning(f"not searched: {sanitize_for_terminal(reason)}")
    for index, passage in enumerate(answer.passages):
        if index:
            output.write_line()
        show_passage(passage)
    for sentence in answer.limits:
        output.write_warning(sanitize_for_terminal(sentence))
    summary = f"{output.pluralize(answer.matches, 'match')} in {output.pluralize(answer.files, 'file')}."
    output.write_note(session, summary if answer.files else "Nothing found.")


def show_passage(passage: Passage) -> None:
    """Print a passage: its citation, then its numbered lines with a mark at those that match."""
    citation = output.link(output.one_line(passage.citation), file_link(str(passage.real), passage.first))
    about = f"{passage.matches:,} × {', '.join(passage.keywords)}"
    output.write_line(f"{click.style(citation, bold=True)}  {click.style(output.one_line(about), dim=True)}")
    for line, (_, _, matches) in zip(passage.marked().split("\n"), passage.numbered(), strict=True):
        text = sanitize_for_terminal(line)
        output.write_line(click.style(text, fg="yellow", bold=True) if matches else text)


def _grep(
    session: Session,
    keywords: tuple[str, ...],
    options: GrepOptions,
    folders: tuple[Path, ...],
    project: str | None,
) -> GrepResult:
    if folders:
        from sennit.folders import grep as grep_folders

        return grep_folders(folders, keywords, options)
    with open_for_files(session, "search") as db:
        return db.files.grep(keywords, options=options, project=choose_project(session, db, project))
