"""`sennit search`, `sennit why` and `sennit recipes`."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, SOURCES_FAILED
from sennit.apps.cli.options import FILTER_HELP, build_request, rewrite_options, search_option
from sennit.apps.cli.session import TEXT, Command, Session, common_options, load_settings, pass_session
from sennit.search_parameters import (
    COLLECTIONS,
    INCLUDE,
    KEYWORDS,
    LIMIT,
    LOOK_BACK,
    MIN_RELEVANCE,
    NEIGHBOURS,
    RECENCY,
    RECIPE,
)

if TYPE_CHECKING:
    from sennit.results import Hit, SearchResult, Why

SNIPPET_CHARACTERS: Final = 200
"""Characters of text shown for a hit when the output is not a terminal."""

_SEARCH_OPTIONS: Final = (
    search_option(RECIPE, "-r", "--recipe", help_text="How to search; see 'sennit recipes'."),
    search_option(
        COLLECTIONS, "-c", "--collection", "collections", help_text="Search only this collection; repeatable."
    ),
    search_option(LIMIT, "-n", "--limit"),
    click.option(
        "-f",
        "--filter",
        "filters",
        type=TEXT,
        help=FILTER_HELP,
    ),
    search_option(
        KEYWORDS, "-k", "--keyword", "keywords", help_text="Exact text for the grep source; repeatable."
    ),
    search_option(INCLUDE, "--include", help_text="Add an optional collection of the recipe; repeatable."),
    search_option(LOOK_BACK, "--look-back"),
    rewrite_options,
    search_option(MIN_RELEVANCE, "--min-relevance"),
    search_option(RECENCY, "--recency"),
)


def _search_options(command: Command) -> Command:
    """Add the options that `search` and `why` share."""
    for option in reversed(_SEARCH_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("query", type=TEXT)
@_search_options
@search_option(NEIGHBOURS, "--neighbours", default=0)
@click.option("-e", "--explain", is_flag=True, help="Show rank, score and share of every source.")
@common_options
@pass_session
def search(session: Session, /, query: str, **options: Any) -> int:
    """Search the records by keyword and by meaning, and print one ranking.

    \b
    Example:
      sennit search "how do I restore a backup?" --limit 3 --explain
    """
    with session.open() as db:
        result = db.search(build_request(query, **options))
    if session.json:
        output.write_json(result.to_dict())
    else:
        output.warn_degraded(result.degraded)
        show_result(result)
        if not result:
            output.write_note(session, "Nothing found.")
    return OK if result.answered else SOURCES_FAILED


@click.command()
@click.argument("query", type=TEXT)
@click.argument("reference", metavar="ID", type=TEXT)
@_search_options
@common_options
@pass_session
def why(session: Session, /, query: str, reference: str, **options: Any) -> int:
    """Explain why the record ID is in the result of a search, or which stage dropped it.

    \b
    Example:
      sennit why "how do I restore a backup?" docs/backup.md:3-5

    ID is what the search prints: an id or the beginning of one, or a file with lines.
    """
    with session.open() as db:
        found = db.why(build_request(query, **options), reference)
    if session.json:
        output.write_json(found.to_dict())
    else:
        output.warn_degraded(found.degraded)
        show_why(found)
    return OK if found.answered else SOURCES_FAILED


@click.command()
@common_options
@pass_session
def recipes(session: Session) -> None:
    """List the recipes: the built-in ones and those in sennit.toml.

    \b
    Example:
      sennit recipes
    """
    from sennit.recipes import find_recipe, load_recipes

    settings = load_settings()
    known = load_recipes(settings)
    default = find_recipe(settings.search.recipe, known).name
    if session.json:
        output.write_json(
            {
                "recipes": [
                    {
                        "name": name,
                        **recipe.to_dict(),
                        "default": name == default,
                        "built_in": name not in settings.recipes,
                    }
                    for name, recipe in known.items()
                ]
            }
        )
        return
    output.write_table(
        ("recipe", "sources", "about"),
        [
            (
                f"{name} *" if name == default else name,
                " + ".join(source.name for source in recipe.sources),
                recipe.about,
            )
            for name, recipe in known.items()
        ],
    )
    output.write_note(session, "* the default")


def show_result(result: SearchResult) -> None:
    """Print a result as text."""
    if result and not result.fits:
        output.write_line("Nothing fits; these are the nearest:")
    for hit in result:
        show_hit(hit, result.query)


def show_hit(hit: Hit, query: str) -> None:
    """Print rank, relevance, title, citation and a snippet, and the explanation if there is one."""
    from sennit.apps.cli.snippets import make_snippet

    title = output.one_line(hit.title)
    heading = (
        click.style(title, bold=True) if title else click.style(output.one_line(hit.citation), bold=True)
    )
    about = [output.one_line(hit.citation)] if title else []
    about += [output.one_line(hit.collection)] if hit.collection != "default" else []
    details = f"  {click.style(' · '.join(about), dim=True)}" if about else ""
    output.write_line(f"{hit.rank:>2}  {hit.relevance:.2f}  {heading}{details}")
    width = shutil.get_terminal_size().columns - 6 if sys.stdout.isatty() else SNIPPET_CHARACTERS
    text = make_snippet(
        hit.passage, query, max(width, 40), lambda word: click.style(word, fg="yellow", bold=True)
    )
    if text:
        output.write_line(f"    {text}")
    if hit.explanation is not None:
        output.write_source_scores(hit.explanation.source_scores, indent=4)
        for adjustment in hit.explanation.adjustments:
            output.write_line(
                f"    {adjustment.stage}: {adjustment.before:.4f} -> {adjustment.after:.4f} {adjustment.reason}"
            )
        if hit.explanation.displaced:
            output.write_line(f"    in place of: {output.one_line(', '.join(hit.explanation.displaced))}")


def show_why(found: Why) -> None:
    """Print the outcome for one record as text."""
    name = output.one_line(found.id)
    outcome = "is in the answer" if found.kept else f"is not in the answer; decided by: {found.stage}"
    output.write_line(f"{click.style(name, bold=True)} {outcome}")
    output.write_line(f"    {output.one_line(found.reason)}")
    if found.shortfall:
        output.write_line(f"    {found.shortfall}")
    if found.source_scores:
        output.write_source_scores(found.source_scores, indent=4)
