"""`sennit feedback`: record, list, export, import and forget what people did with results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.options import read_text
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.apps.cli.suggestions import CommandGroup
from sennit.errors import InvalidInput, NotFound
from sennit.feedback import ACTIONS

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.evaluation.feedback_formats import Judged
    from sennit.repositories.feedback import QueryFeedback

_EVERYTHING: Final = click.option(
    "--everything", is_flag=True, help="That of all callers and tenants, not only of the default caller."
)
_PATH: Final = click.Path(path_type=Path)


@click.group(cls=CommandGroup)
@common_options
def feedback() -> None:
    """Record what was done with results, and list, export, import and forget it.

    \b
    Example:
      sennit feedback add click docs/backup.md:3-9 --query 'how do I restore a backup'
    """


@feedback.command()
@click.argument("action", type=click.Choice(list(ACTIONS)))
@click.argument("references", metavar="[ID]...", type=TEXT, nargs=-1)
@click.option("--query-id", type=TEXT, help="The query_id of a recorded search.")
@click.option("--query", type=TEXT, help="Search for this now; the feedback is about that search.")
@click.option("-r", "--recipe", type=TEXT, help="With --query: how to search.")
@click.option("--grade", type=int, help="For judge: from 0, not relevant, to 3, exactly right.")
@click.option("--session-id", type=TEXT, default="", help="The session of the user.")
@click.option("--message", type=TEXT, default="", help="A remark.")
@common_options
@pass_session
def add(
    session: Session,
    action: str,
    references: tuple[str, ...],
    query_id: str | None,
    query: str | None,
    recipe: str | None,
    grade: int | None,
    session_id: str,
    message: str,
) -> None:
    """Record ACTION on the records ID; without ID, on the whole answer.

    \b
    Example:
      sennit feedback add judge docs/backup.md:3-9 --grade 3 --query 'how do I restore a backup'

    --query-id needs the setting feedback.record = "all", because each command is a process of its own.
    """
    if (query is None) == (query_id is None):
        raise InvalidInput("Give --query with the text of a query, or --query-id.")
    from sennit.feedback import Feedback

    with session.open(background=False) as db:
        if query is not None:
            result = db.search(query, recipe=recipe, session_id=session_id)
            query_id = result.query_id
            shown = {hit.id: hit.id for hit in result} | {hit.citation: hit.id for hit in result}
        else:
            shown = {}
        ids = [shown.get(name) or _find(db, name) for name in references] or [""]
        given = [
            Feedback(str(query_id), action, name, grade=grade, session_id=session_id, message=message)
            for name in ids
        ]
        events = db.feedback.add_many(given)
    if session.json:
        output.write_json({"events": [event.to_ubi() for event in events]})
    else:
        output.write_note(session, f"Recorded {output.pluralize(len(events), 'event')}.")


def _find(db: Database, reference: str) -> str:
    """The id of a record; what no record has may still have been shown, such as a passage of a file."""
    try:
        return db.find(reference).id
    except NotFound:
        return reference


@feedback.command("list")
@_EVERYTHING
@common_options
@pass_session
def list_(session: Session, everything: bool) -> None:
    """List the recorded searches and what was done with their results.

    \b
    Example:
      sennit feedback list
    """
    with session.open(background=False) as db:
        found = db.feedback.read(everything=everything)
    if session.json:
        from sennit.evaluation.feedback_formats import to_ubi

        output.write_json(to_ubi(found))
        return
    if not found:
        output.write_note(
            session,
            "There is no feedback; 'sennit feedback add' records some. The page and the servers do, too.",
        )
        return
    output.write_table(
        ("time", "query", "recipe", "shown", "events"),
        [
            (
                f"{one.query.timestamp:%Y-%m-%d %H:%M}",
                output.truncate(one.query.query, 40),
                one.query.recipe,
                str(len(one.query.shown)),
                ", ".join(
                    f"{event.action_name} {event.position or '-'}"
                    + ("" if event.grade is None else f" (grade {event.grade})")
                    for event in one.events
                ),
            )
            for one in found
        ],
        right=(3,),
    )


@feedback.command()
@click.argument("target", metavar="FILE", type=_PATH)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["ubi", "run", "qrels", "beir", "svmlight"]),
    default="ubi",
    show_default=True,
    help="What to write.",
)
@_EVERYTHING
@common_options
@pass_session
def export(session: Session, target: Path, file_format: str, everything: bool) -> None:
    """Write the feedback to FILE; with --format beir, to a folder that 'sennit eval' reads.

    \b
    Example:
      sennit feedback export feedback.json

    The formats are UBI JSON, TREC run and qrels, BEIR, and SVMlight, which needs the setting feedback.features.
    """
    from sennit.evaluation import feedback_formats as formats

    with session.open(background=False) as db:
        found = db.feedback.read(everything=everything)
        if file_format == "beir":
            with db.admin.export(everything=everything) as (_, records):
                formats.write_beir(target, found, records)
        else:
            _write(target, file_format, found)
    if session.json:
        output.write_json({"format": file_format, "queries": len(found), "file": str(target)})
    else:
        queries = output.pluralize(len(found), "query")
        output.write_note(session, f"Exported {queries} to {output.one_line(str(target))}.")


def _write(target: Path, file_format: str, found: Iterable[QueryFeedback]) -> None:
    from sennit.evaluation import feedback_formats as formats

    if file_format == "ubi":
        lines: Iterable[str] = [json.dumps(formats.to_ubi(found), ensure_ascii=False), "\n"]
    else:
        write = {"run": formats.to_run, "qrels": formats.to_qrels, "svmlight": formats.to_svmlight}
        lines = write[file_format](found)
    with target.open("w", encoding="utf-8") as stream:
        stream.writelines(lines)


@feedback.command("import")
@click.argument("source", metavar="FILE", type=_PATH)
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["ubi", "run", "qrels", "beir", "svmlight"]),
    default="ubi",
    show_default=True,
    help="What to read.",
)
@click.option(
    "--queries",
    type=_PATH,
    help="With run, qrels and svmlight: queries.jsonl of BEIR, with the texts of the queries.",
)
@common_options
@pass_session
def import_(session: Session, source: Path, file_format: str, queries: Path | None) -> None:
    """Read feedback from FILE, as that of the default caller.

    \b
    Example:
      sennit feedback import feedback.json
    """
    from sennit.evaluation import feedback_formats as formats

    if file_format == "ubi":
        read = formats.from_ubi(read_text(str(source)))
    elif file_format == "beir":
        read = formats.read_beir_feedback(source)
    else:
        read = _read_with_texts(source, file_format, queries)
    with session.open(create=True, background=False) as db:
        count = db.feedback.load(read.queries, read.events)
    if session.json:
        output.write_json({"queries": count, "events": len(read.events)})
    else:
        output.write_note(
            session,
            f"Imported {output.pluralize(count, 'query')} with {output.pluralize(len(read.events), 'event')}.",
        )


def _read_with_texts(source: Path, file_format: str, queries: Path | None) -> Judged:
    from sennit.evaluation import feedback_formats as formats
    from sennit.evaluation.datasets import read_queries

    if queries is None:
        raise InvalidInput(f"A file in the format {file_format} has no texts of queries; give --queries.")
    texts = {formats.decode_token(one.id): one.text for one in read_queries(queries).values()}
    lines = read_text(str(source)).split("\n")
    if file_format == "svmlight":
        return formats.judged_from_svmlight(lines, texts)
    if file_format == "run":
        return formats.judged_queries(texts, formats.from_run(lines), {})
    return formats.judged_queries(texts, {}, formats.from_qrels(lines))


@feedback.command()
@click.option("--query-id", "query_ids", type=TEXT, multiple=True, help="Only this search; repeatable.")
@click.option("--session-id", type=TEXT, help="Only the searches of this session.")
@_EVERYTHING
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
@pass_session
def forget(
    session: Session, query_ids: tuple[str, ...], session_id: str | None, everything: bool, yes: bool
) -> None:
    """Remove recorded searches with what was done with their results.

    \b
    Example:
      sennit feedback forget --session-id tab-1 --yes
    """
    output.confirm(session, "Remove the recorded searches and their feedback?", yes=yes)
    with session.open(background=False) as db:
        removed = db.feedback.forget(query_ids or None, session_id=session_id, everything=everything)
    if session.json:
        output.write_json({"removed": removed})
    else:
        output.write_note(session, f"Removed {output.pluralize(removed, 'recorded search')}.")
