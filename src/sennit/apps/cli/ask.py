"""`sennit ask`: an answer in sentences, with citations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, SOURCES_FAILED
from sennit.apps.cli.options import (
    choose_project,
    project_option,
    query_words,
    rewrite_options,
    search_option,
)
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.places import shown_path
from sennit.search_parameters import LIMIT

if TYPE_CHECKING:
    from sennit.engine.answers import Answer


@click.command()
@query_words
@click.option(
    "-r",
    "--recipe",
    type=TEXT,
    help="How to search; see 'sennit recipes'. Default: docs, or memory where there are only conversations.",
)
@search_option(LIMIT, "-n", "--limit", help_text="Maximum number of sections to answer from.", default=5)
@rewrite_options
@project_option
@click.option("--prompt", is_flag=True, help="Print the system prompt instead of an answer.")
@common_options
@pass_session
def ask(
    session: Session,
    query: str,
    recipe: str | None,
    limit: int,
    editor: str | None,
    language: str | None,
    transform: bool | None,
    project: str | None,
    prompt: bool,
) -> int:
    """Answer a question from the indexed documents, with citations.

    \b
    Example:
      sennit ask how often is a failed task retried

    If a language model is configured (llm.provider and llm.model), it writes the answer, and every citation is
    checked. Otherwise the answer consists of the best matching sentences.
    """
    with session.open() as db:
        stream = db.ask_stream(
            query,
            recipe=recipe,
            limit=limit,
            editor=editor,
            language=language,
            transform=transform,
            project=choose_project(session, db, project),
            write=not prompt,
        )
        if not session.json:
            for part in stream:
                click.echo(sanitize_for_terminal(part), nl=False)
        answer = stream.answer
    if session.json:
        output.write_json({**answer.to_dict(), "prompt": answer.prompt} if prompt else answer.to_dict())
    elif prompt:
        output.write_line(sanitize_for_terminal(answer.prompt))
    else:
        output.write_line()
        _show_citations(session, answer)
    return OK if answer.answered else SOURCES_FAILED


def _show_citations(session: Session, answer: Answer) -> None:
    for hint in answer.hints:
        output.write_note(session, sanitize_for_terminal(hint.message))
    if answer.citations:
        output.write_line()
        for citation in answer.citations:
            shown = replace(citation, location=shown_path(citation.location))
            output.write_line(output.one_line(str(shown)))
    for missing in answer.degraded:
        output.write_warning(f"{missing.source}: {sanitize_for_terminal(missing.reason)}")
    if answer.removed_citations:
        numbers = ", ".join(map(str, answer.removed_citations))
        output.write_warning(
            f"the answer cited passages that do not exist; these citations were removed: {numbers}"
        )
    if answer.model:
        output.write_note(
            session, f"Written by {output.one_line(answer.model)}; verify important statements."
        )
