"""`sennit plan` and `sennit introspect`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Session, common, pass_session

if TYPE_CHECKING:
    from sennit.hydration import HydrationPlan, Introspection

BEGINNING: Final = 60
"""Characters of an entity in a table."""

SHOWN: Final = 5
"""Anchors that were left out, by name; who names a large file leaves out dozens."""


@click.command()
@click.argument("query", type=TEXT)
@click.option("--episode", type=TEXT, help="Build on the earlier turns of this episode, and keep the plan.")
@click.option("--max-tokens", type=int, help="The budget in tokens; default: the settings.")
@click.option("--max-entities", type=int, help="The budget in entities; default: the settings.")
@click.option("--partial", is_flag=True, help="Shorten what does not fit to its signature and telling lines.")
@common
@pass_session
def plan(
    session: Session,
    query: str,
    episode: str | None,
    max_tokens: int | None,
    max_entities: int | None,
    partial: bool,
) -> None:
    """Print the code that belongs into a prompt for QUERY, within a budget.

    What the query names comes first, then what is near in meaning.
    """
    from sennit.hydration import rendered

    with session.open() as db, _unlogged():
        made = db.plan(
            query,
            episode=episode,
            max_tokens=max_tokens,
            max_entities=max_entities,
            allow_partial=partial,
        )
    _warn(session, made)
    if session.json:
        output.emit(made.to_dict())
        return
    output.say(output.plain(rendered(made)).rstrip("\n"))
    number = len(made.entries)
    noun = "entity" if number == 1 else "entities"
    output.note(
        session, f"{number:,} {noun}, {made.tokens:,} of {made.max_tokens:,} tokens ({made.tokenizer})."
    )


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """What the log warns of stands in the plan, and is said from there."""
    log = logging.getLogger("sennit.hydration")

    def is_no_warning(record: logging.LogRecord) -> bool:
        return record.levelno != logging.WARNING

    log.addFilter(is_no_warning)
    try:
        yield
    finally:
        log.removeFilter(is_no_warning)


def _warn(session: Session, plan: HydrationPlan) -> None:
    if session.quiet:
        return
    of_one = [notice for notice in plan.warnings if notice.key]
    for notice in [*(notice for notice in plan.warnings if not notice.key), *of_one[:SHOWN]]:
        output.warn(output.one_line(f"{notice.code}: {notice.message}"))
    if len(of_one) > SHOWN:
        listed = f"'sennit introspect {plan.episode}' lists" if plan.episode else "--json has"
        output.warn(output.one_line(f"{len(of_one) - SHOWN:,} more are left out; {listed} them all"))


@click.command()
@click.argument("episode", type=TEXT)
@click.option("--turn", type=int, help="Which turn, from 1; default: the last.")
@click.option("--replay", is_flag=True, help="Compare it with what the same query would bring today.")
@common
@pass_session
def introspect(session: Session, episode: str, turn: int | None, replay: bool) -> None:
    """Show what was planned in EPISODE: each entity, why it is there, and what was dropped."""
    with session.open() as db:
        found = db.introspect(episode, turn, replay=replay)
    if session.json:
        output.emit(found.to_dict())
    else:
        _show(found)


def _show(found: Introspection) -> None:
    plan = found.plan
    heading = f"{plan.episode}, turn {plan.turn} of {found.turns[-1]}"
    output.say(f"{click.style(output.one_line(heading), bold=True)}  {output.one_line(plan.query)}")
    output.say(f"{plan.tokens:,} of {plan.max_tokens:,} tokens ({plan.tokenizer})")
    for notice in plan.warnings:
        if not notice.key:  # the others are in the list of what was dropped
            output.warn(output.one_line(notice.message))
    if plan.entries:
        output.table(
            ("", "entity", "reason", "priority", "tokens", "begins"),
            [
                (
                    str(entry.position),
                    entry.key,
                    entry.reason,
                    str(entry.priority),
                    str(entry.tokens),
                    output.one_line(entry.preview)[:BEGINNING],
                )
                for entry in plan.entries
            ],
            right=(0, 3, 4),
        )
    if plan.dropped:
        output.say("Dropped:")
        output.table(
            ("entity", "wanted as", "tokens", "reason"),
            [(one.key, one.wanted, str(one.tokens), one.reason) for one in plan.dropped],
            right=(2,),
            indent=2,
        )
    if found.changes is not None:
        output.say("Today the same." if not found.changes else "Today:")
        for label, keys in (
            ("added", found.changes.added),
            ("removed", found.changes.removed),
            ("changed", found.changes.changed),
        ):
            for key in keys:
                output.say(f"  {label:<8}{output.one_line(key)}")
