"""`sennit plan` and `sennit introspect`: code for a prompt, and why it was chosen."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.options import choose_project, project_option, query_words, search_option
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.search_parameters import PROJECT

if TYPE_CHECKING:
    from sennit.hydration import HydrationPlan, Introspection

PREVIEW_CHARACTERS: Final = 60
"""Characters of an entity's text in a table."""

MAX_NAMED_WARNINGS: Final = 5
"""Dropped anchors that are named in warnings; a query that names a large file can drop dozens."""


@click.command()
@query_words
@click.option("--episode", type=TEXT, help="Include earlier turns of this episode, and store the plan.")
@click.option("--max-tokens", type=int, help="Token budget. Default: from the settings.")
@click.option(
    "--max-entities", type=int, help="The most entities that meaning adds. Default: from the settings."
)
@click.option(
    "--partial", is_flag=True, help="Shorten an entity that does not fit to its signature and matching lines."
)
@project_option
@common_options
@pass_session
def plan(
    session: Session,
    query: str,
    episode: str | None,
    max_tokens: int | None,
    max_entities: int | None,
    partial: bool,
    project: str | None,
) -> None:
    """Print the code that a task needs, within a token budget.

    \b
    Example:
      sennit plan "Fix the login bug in auth.go" --max-tokens 4000

    The files and symbols that QUERY names come first, then code that is similar in meaning.
    """

    from sennit.records import CODE_COLLECTION

    with session.open() as db, _no_logged_warnings():
        new_plan = db.plan(
            query,
            episode=episode,
            max_tokens=max_tokens,
            max_entities=max_entities,
            allow_partial=partial,
            project=(project := choose_project(session, db, project)),
        )
        has_code = any(one.name == CODE_COLLECTION for one in db.collections(project=project))
    _write_warnings(session, new_plan)
    if session.json:
        output.write_json(new_plan.to_dict())
        return
    if new_plan.entries:
        output.write_line(sanitize_for_terminal(new_plan.prompt).rstrip("\n"))
    else:
        output.write_note(session, _why_empty(new_plan, has_code=has_code))
    output.write_note(
        session,
        f"{output.pluralize(len(new_plan.entries), 'entity')}, {new_plan.tokens:,} of {new_plan.max_tokens:,} tokens ({new_plan.tokenizer}).",
    )


def _why_empty(plan: HydrationPlan, *, has_code: bool) -> str:
    if not plan.query.strip():
        return "The query is empty. Give a task, or names of files and functions."
    if not has_code:
        return "No code is indexed here. Install the extra 'code' if it is missing, then run: sennit index ."
    if plan.dropped:
        smallest = min(one.tokens for one in plan.dropped)
        return (
            f"Nothing fits into {output.pluralize(plan.max_tokens, 'token')}: the smallest of "
            f"{output.pluralize(len(plan.dropped), 'entity')} has {smallest:,}. Give more with --max-tokens."
        )
    return "No code matches the query. Name a file or a function; 'sennit search' finds other texts."


@contextlib.contextmanager
def _no_logged_warnings() -> Iterator[None]:
    """Suppress logged warnings: the plan contains the same warnings, and they are printed from there."""
    logger = logging.getLogger("sennit.hydration")

    def is_not_warning(record: logging.LogRecord) -> bool:
        return record.levelno != logging.WARNING

    logger.addFilter(is_not_warning)
    try:
        yield
    finally:
        logger.removeFilter(is_not_warning)


def _write_warnings(session: Session, plan: HydrationPlan) -> None:
    if session.quiet:
        return
    about_entities = [notice for notice in plan.warnings if notice.key]
    for notice in [
        *(notice for notice in plan.warnings if not notice.key),
        *about_entities[:MAX_NAMED_WARNINGS],
    ]:
        output.write_warning(output.one_line(f"{notice.code}: {notice.message}"))
    if len(about_entities) > MAX_NAMED_WARNINGS:
        listed = f"'sennit introspect {plan.episode}' lists" if plan.episode else "--json has"
        output.write_warning(
            output.one_line(
                f"{len(about_entities) - MAX_NAMED_WARNINGS:,} more are dropped; {listed} them all"
            )
        )


@click.command()
@click.argument("episode", type=TEXT)
@click.option("--turn", type=int, help="Number of the turn, from 1. Default: the last.")
@click.option("--replay", is_flag=True, help="Compare with a plan for the same query today.")
@search_option(
    PROJECT,
    "--project",
    help_text="Only code of this indexed folder, by name or path. Default: the whole plan.",
)
@common_options
@pass_session
def introspect(session: Session, episode: str, turn: int | None, replay: bool, project: str | None) -> None:
    """Show what a plan of EPISODE included, why, and what it dropped.

    \b
    Example:
      sennit introspect fix-login --turn 2
    """
    with session.open() as db:
        found = db.introspect(episode, turn, project=project, replay=replay)
    if session.json:
        output.write_json(found.to_dict())
    else:
        _show(found)


def _show(found: Introspection) -> None:
    plan = found.plan
    heading = f"{plan.episode}, turn {plan.turn} of {found.turns[-1]}"
    output.write_line(f"{click.style(output.one_line(heading), bold=True)}  {output.one_line(plan.query)}")
    limited = f", in {output.one_line(', '.join(found.project))}" if found.project else ""
    output.write_line(f"{plan.tokens:,} of {plan.max_tokens:,} tokens ({plan.tokenizer}){limited}")
    for notice in plan.warnings:
        if not notice.key:  # the others are in the table of dropped entities
            output.write_warning(output.one_line(notice.message))
    if plan.entries:
        output.write_table(
            ("", "entity", "reason", "priority", "tokens", "text"),
            [
                (
                    str(entry.position),
                    entry.key,
                    entry.reason,
                    str(entry.priority),
                    str(entry.tokens),
                    output.one_line(entry.preview)[:PREVIEW_CHARACTERS],
                )
                for entry in plan.entries
            ],
            right=(0, 3, 4),
        )
    if plan.dropped:
        output.write_line("Dropped:")
        output.write_table(
            ("entity", "selected as", "tokens", "dropped because"),
            [
                (entity.key, entity.selection_reason, str(entity.tokens), entity.reason)
                for entity in plan.dropped
            ],
            right=(2,),
            indent=2,
        )
    if found.changes is not None:
        output.write_line("The same query gives the same plan today." if not found.changes else "Today:")
        for label, keys in (
            ("added", found.changes.added),
            ("removed", found.changes.removed),
            ("changed", found.changes.changed),
        ):
            for key in keys:
                output.write_line(f"  {label:<8}{output.one_line(key)}")
