"""`sennit tui`: the full-screen terminal interface."""

from __future__ import annotations

import os
import sys

import click

from sennit.apps.cli.options import current_project, project_option
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.errors import InvalidInput, MissingExtra


@click.command()
@click.argument("query", metavar="[QUERY]...", type=TEXT, nargs=-1)
@click.option("-r", "--recipe", type=TEXT, help="Initial recipe: one of 'sennit recipes', or grep.")
@project_option
@common_options
@pass_session
def tui(session: Session, query: tuple[str, ...], recipe: str | None, project: str | None) -> None:
    """Search, read and explain in a full-screen terminal interface.

    \b
    Example:
      sennit tui "how do I restore a backup?"
    """
    try:
        from sennit.apps.tui.app import SennitApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise MissingExtra("The terminal interface", "tui") from error
    from sennit.apps.tui.items import GREP
    from sennit.recipes import find_recipe

    if session.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("sennit tui needs a terminal. In a pipe or for JSON, use 'sennit search'.")
    for stale in ("COLUMNS", "LINES"):
        # If exported, they hold the size of the window at that time, which Textual would trust.
        os.environ.pop(stale, None)
    with session.open() as db:
        name = recipe or db.settings.search.recipe
        if name != GREP:
            find_recipe(name, db.recipes)
        if project is None:
            project = current_project(db)
        db.audience(project=project)  # an unknown project is an error before the screen changes
        SennitApp(db, recipe=name, project=project, query=" ".join(query)).run()
