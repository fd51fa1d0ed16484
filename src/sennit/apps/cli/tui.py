"""`sennit tui`: the terminal interface."""

from __future__ import annotations

import os
import sys

import click

from sennit.apps.cli.session import TEXT, Session, common, pass_session
from sennit.errors import InvalidInput, MissingExtra


@click.command()
@click.argument("query", type=TEXT, required=False, default="")
@click.option("-r", "--recipe", type=TEXT, help="How to search at first: one of 'sennit recipes', or grep.")
@common
@pass_session
def tui(session: Session, query: str, recipe: str | None) -> None:
    """Search, read and explain in the terminal, with the keyboard."""
    try:
        from sennit.apps.tui.app import SennitApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise MissingExtra("The terminal interface", "tui") from error
    from sennit.apps.tui.items import GREP
    from sennit.recipes import find_recipe

    if session.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("sennit tui needs a terminal. Into a pipe or as JSON, use 'sennit search'.")
    for stale in ("COLUMNS", "LINES"):
        # Where they are exported, they are the size of a window that may have changed since.
        os.environ.pop(stale, None)
    with session.open() as db:
        name = recipe or db.settings.search.recipe
        if name != GREP:
            find_recipe(name, db.recipes)
        SennitApp(db, recipe=name, query=query).run()
