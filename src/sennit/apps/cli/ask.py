"""`sennit ask`: an answer in words, with where each statement is from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exits import OK, SOURCES
from sennit.apps.cli.session import TEXT, Session, common, pass_session
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from sennit.engine.answering import Answer

MOST_EDITOR_BYTES: Final = 4 * 1024 * 1024
"""A larger file is not one that a person is writing."""

_FILE: Final = click.Path(path_type=Path, dir_okay=False, exists=True, allow_dash=True)


@click.command()
@click.argument("query", type=TEXT)
@click.option("-r", "--recipe", type=TEXT, default="docs", show_default=True, help="How to search.")
@click.option("-n", "--limit", type=int, default=5, show_default=True, help="How many sections to use.")
@click.option("--editor", metavar="FILE", type=_FILE, help="The code you are writing; it joins the question.")
@click.option("--language", type=TEXT, help="The language of that code. Default: by its looks.")
@click.option("--no-transform", is_flag=True, help="Search for the question as it is.")
@click.option("--prompt", is_flag=True, help="Print the system prompt, and have no answer written.")
@common
@pass_session
def ask(
    session: Session,
    query: str,
    recipe: str,
    limit: int,
    editor: Path | None,
    language: str | None,
    no_transform: bool,
    prompt: bool,
) -> int:
    """Answer a question from what is indexed, with citations.

    With a language model (llm.provider and llm.model) it writes the answer, and every citation is checked. Without
    one, the answer is put together from the best sentences that were found.
    """
    with session.open() as db:
        stream = db.ask_stream(
            query,
            recipe=recipe,
            limit=limit,
            editor=None if editor is None else _code(editor),
            language=language,
            transform=not no_transform,
            write=not prompt,
        )
        if not session.json:
            for part in stream:
                click.echo(output.plain(part), nl=False)
        answer = stream.answer
    if session.json:
        output.emit({**answer.to_dict(), "prompt": answer.prompt} if prompt else answer.to_dict())
    elif prompt:
        output.say(output.plain(answer.prompt))
    else:
        output.say()
        _show_citations(session, answer)
    return OK if answer.answered else SOURCES


def _code(file: Path) -> str:
    with click.open_file(str(file), "rb") as stream:
        content = stream.read(MOST_EDITOR_BYTES + 1)
    if len(content) > MOST_EDITOR_BYTES:
        raise InvalidInput(
            f"{file} has more than {MOST_EDITOR_BYTES >> 20} MB; --editor takes a file of code."
        )
    try:
        return str(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start}).") from error


def _show_citations(session: Session, answer: Answer) -> None:
    if answer.citations:
        output.say()
        for citation in answer.citations:
            output.say(output.one_line(str(citation)))
    for missing in answer.degraded:
        output.warn(f"{missing.source}: {output.plain(missing.reason)}")
    if answer.removed_citations:
        numbers = ", ".join(map(str, answer.removed_citations))
        output.warn(f"the answer cited what is no passage, and this was taken out: {numbers}")
    if answer.model:
        output.note(session, f"Written by {output.one_line(answer.model)}; check what matters.")
