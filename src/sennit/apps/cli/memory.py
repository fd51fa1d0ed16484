"""`sennit remember`, `sennit context` and `sennit facts`: the memory of an assistant."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, SOURCES_FAILED
from sennit.apps.cli.options import build_request, choose_project, project_option, read_text, search_option
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.apps.cli.suggestions import CommandGroup
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import InvalidInput, NotFound
from sennit.search_parameters import LIMIT, LOOK_BACK, MIN_RELEVANCE, RECENCY

if TYPE_CHECKING:
    from sennit.facts import Fact
    from sennit.turns import Turn

REQUIRED_OF_A_FACT: Final = {"subject", "relation", "object"}

_FILE = click.Path(path_type=Path, allow_dash=True)


@click.command()
@click.argument("text", type=TEXT, required=False)
@click.option(
    "--from", "file", metavar="FILE", type=_FILE, help="A conversation, as JSON lines or a transcript."
)
@click.option("--session", "name", type=TEXT, help="Name of the conversation. Default: the name of FILE.")
@click.option("--speaker", type=TEXT, default="", help="Who said TEXT.")
@click.option("--time", type=TEXT, help="When TEXT was said, e.g. 2026-03-01T09:30. Default: now.")
@click.option("--collection", type=TEXT, default="memory", show_default=True, help="Collection of TEXT.")
@click.option("--sensitivity", type=TEXT, help="Sensitivity level of TEXT.")
@click.option("--scope", type=TEXT, help="Scope of TEXT: who may see it.")
@common_options
@pass_session
def remember(
    session: Session,
    text: str | None,
    file: Path | None,
    name: str | None,
    speaker: str,
    time: str | None,
    collection: str,
    sensitivity: str | None,
    scope: str | None,
) -> None:
    """Store a TEXT, or a conversation from a file, so that a search can recall it.

    \b
    Example:
      sennit remember "Priya prefers the aisle seat" --speaker Rajesh
      sennit remember --from call.txt

    A conversation has one JSON object per line ("text", "speaker", "session", "timestamp"; common other names are
    recognised), or it is a transcript with lines such as '[2026-03-01 09:30] Rajesh: we could go in March'.
    """
    if (text is None) == (file is None) or (text is not None and not text.strip()):
        raise InvalidInput("Give either a TEXT to remember, or a conversation with --from FILE.")
    from sennit.records import as_utc

    timestamp = None if time is None else as_utc(time)
    with session.open(create=True) as db:
        if text is not None:
            metadata: dict[str, str] = {"speaker": speaker} if speaker else {}
            record = db.remember(
                text,
                collection=collection,
                metadata={**metadata, **({"session": name} if name else {})},
                sensitivity=sensitivity,
                scope=scope,
                source="command line",
                timestamp=timestamp,
            )
            if session.json:
                output.write_json(record.to_dict())
            else:
                output.write_note(session, f"Remembered as {record.id}.")
            return
        assert file is not None
        written = db.add_turns(_read_turns(file, name))
    if session.json:
        output.write_json(
            {"added": written.added, "updated": written.updated, "unchanged": written.unchanged}
        )
    else:
        turns = written.added + written.updated + written.unchanged
        output.write_note(session, f"Remembered {output.pluralize(turns, 'turn')}, {written.added} new.")


def _read_turns(file: Path, name: str | None) -> list[Turn]:
    from sennit.ingest.conversation import read_conversation

    return list(
        read_conversation(read_text(str(file)), name or ("conversation" if str(file) == "-" else file.stem))
    )


@click.command()
@click.argument("query", metavar="[QUERY]...", type=TEXT, nargs=-1)
@click.option(
    "-r",
    "--recipe",
    type=TEXT,
    default="memory",
    show_default=True,
    help="How to search; see 'sennit recipes'.",
)
@search_option(LIMIT, "-n", "--limit")
@search_option(LOOK_BACK, "--look-back")
@search_option(MIN_RELEVANCE, "--min-relevance")
@search_option(RECENCY, "--recency")
@project_option
@click.option("--provenance", is_flag=True, help="Add the source of each line.")
@common_options
@pass_session
def context(
    session: Session,
    query: tuple[str, ...],
    recipe: str,
    limit: int | None,
    look_back: float | None,
    min_relevance: float | None,
    recency: str | None,
    project: str | None,
    provenance: bool,
) -> int:
    """Print the memories about QUERY as a block for a system prompt.

    \b
    Example:
      sennit context "What did Rajesh say about the vacation?" --limit 5

    Without QUERY, it looks for recent conversations and key facts.
    """
    from sennit.engine.groups import CONTEXT_QUERY

    with session.open() as db:
        request = build_request(
            " ".join(query) or CONTEXT_QUERY,
            recipe=recipe,
            limit=limit,
            look_back=look_back,
            min_relevance=min_relevance,
            recency=recency,
            project=choose_project(session, db, project),
        )
        found = db.memory.context(request, provenance=provenance)
    result, block = found.result, found.block
    if session.json:
        output.write_json({**result.to_dict(), "block": block})
    else:
        output.warn_degraded(result.degraded)
        if block:
            output.write_line(block)
        else:
            output.write_nothing_found(session, result.hints, "Nothing is remembered about that.")
    return OK if result.answered else SOURCES_FAILED


@click.group(cls=CommandGroup)
@common_options
def facts() -> None:
    """Add, list, import, extract and remove facts.

    \b
    Example:
      sennit facts add Rajesh planning Goa --text "planning a trip in March"

    A fact relates a subject to an object: 'Rajesh -> Goa: planning a trip in March'.
    """


@facts.command()
@click.argument("subject", type=TEXT)
@click.argument("relation", type=TEXT)
@click.argument("object_", metavar="OBJECT", type=TEXT)
@click.option("--text", type=TEXT, default="", help="The relation as a phrase.")
@click.option("--weight", type=float, default=1.0, show_default=True, help="Weight in the ranking.")
@click.option("--since", type=TEXT, help="Date from which it is true, e.g. 2026-03-01.")
@click.option("--replace", is_flag=True, help="End other facts of SUBJECT with this RELATION.")
@common_options
@pass_session
def add(
    session: Session,
    subject: str,
    relation: str,
    object_: str,
    text: str,
    weight: float,
    since: str | None,
    replace: bool,
) -> None:
    """Add a fact: SUBJECT has a RELATION to OBJECT.

    \b
    Example:
      sennit facts add Priya lives_in Pune --since 2026-03-01 --replace
    """
    from sennit.facts import Fact
    from sennit.records import as_utc

    with session.open(create=True) as db:
        fact = Fact(
            subject=subject,
            relation=relation,
            object=object_,
            text=text,
            weight=weight,
            timestamp=None if since is None else as_utc(since),
            tenant=db.caller.tenant,
        )
        db.add_facts([fact], same_relation=replace)
    if session.json:
        output.write_json(fact.to_record().to_dict())
    else:
        output.write_note(session, f"{fact.line}  ({fact.id})")


@facts.command("list")
@click.argument("name", type=TEXT, required=False)
@click.option("--history", is_flag=True, help="Include facts that are no longer true.")
@common_options
@pass_session
def list_(session: Session, name: str | None, history: bool) -> None:
    """List all facts, or those about NAME.

    \b
    Example:
      sennit facts list Rajesh --history
    """
    from sennit.facts import Fact, ended_at, is_fact

    folded_name = None if name is None else name.casefold()
    with session.open() as db:
        found: list[Fact] = [
            Fact.from_record(record)
            for record in db
            if is_fact(record) and (history or ended_at(record) is None)
        ]
    if folded_name is not None:
        found = [fact for fact in found if folded_name in (fact.subject.casefold(), fact.object.casefold())]
    if session.json:
        output.write_json({"facts": [fact.to_record().to_dict() for fact in found]})
        return
    if not found:
        about = "" if name is None else f" about {output.one_line(name)}"
        output.write_note(
            session, f"There are no facts{about}; 'sennit facts add' and 'sennit facts extract' store some."
        )
        return
    output.write_table(
        ("fact", "weight", "since", "id"),
        [
            (
                fact.line,
                f"{fact.weight:g}",
                fact.timestamp.date().isoformat() if fact.timestamp else "",
                fact.id,
            )
            for fact in found
        ],
    )


@facts.command("import")
@click.argument("file", type=_FILE)
@common_options
@pass_session
def import_(session: Session, file: Path) -> None:
    """Add facts from FILE, one JSON object per line.

    \b
    Example:
      sennit facts import facts.jsonl

    An object has "subject", "relation" and "object", and may have the other fields of a fact.
    """
    lines = read_text(str(file)).split("\n")
    batch = [_read_fact(line, number) for number, line in enumerate(lines, 1) if line.strip()]
    with session.open(create=True) as db:
        written = db.add_facts(batch)
    if session.json:
        output.write_json(
            {"added": written.added, "updated": written.updated, "unchanged": written.unchanged}
        )
    else:
        output.write_note(session, f"Imported {output.pluralize(len(batch), 'fact')}.")


def _read_fact(line: str, number: int) -> Fact:
    from sennit.facts import Fact

    try:
        values = json.loads(line)
        if not isinstance(values, dict) or not set(values) >= REQUIRED_OF_A_FACT:
            raise InvalidInput("a fact is an object with subject, relation and object")
        unknown = set(values).difference(one.name for one in fields(Fact))
        if unknown:
            raise InvalidInput(f"a fact has no field {min(unknown)!r}")
        return Fact(**values)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"Line {number}: {error}") from error


@facts.command()
@click.argument("ids", metavar="[ID]...", type=TEXT, nargs=-1)
@click.option("--dry-run", is_flag=True, help="Show the facts without storing them.")
@common_options
@pass_session
def extract(session: Session, ids: tuple[str, ...], dry_run: bool) -> None:
    """Extract facts from the records ID, or from all records.

    \b
    Example:
      sennit facts extract --dry-run

    The configured language model extracts them; without one, simple statements and Markdown links are recognised.
    A fact from a model is stored only if the record's text contains its names. Each fact refers to its record. What a
    statement says is over ("I left Acme") ends the stored fact.
    """
    with session.open() as db:
        records = [record for record in (map(db.get, ids) if ids else db) if record is not None]
        if len(records) < len(ids):
            raise NotFound("One of the records does not exist; nothing was extracted.")
        found = db.memory.extract_facts(records, keep=not dry_run)
    for problem in found.problems:
        output.write_warning(sanitize_for_terminal(problem))
    if session.json:
        listed = [fact.to_record().to_dict() for fact in found.facts]
        ended = [one.to_dict() for one in found.endings]
        output.write_json({"by": found.by, "facts": listed, "ended": ended, "problems": list(found.problems)})
        return
    for fact in found.facts:
        sure = fact.metadata.get("confidence")
        output.write_line(
            output.one_line(fact.line) + (f" ({sure:.0%} sure)" if isinstance(sure, float) else "")
        )
    for ending in found.endings:
        output.write_line(f"over: {output.one_line(ending.line)}")
    output.write_note(
        session,
        f"{output.pluralize(len(found.facts), 'fact')} from {output.pluralize(len(records), 'record')}, by {found.by}.",
    )


@facts.command()
@click.argument("fact_id", metavar="ID", type=TEXT)
@common_options
@pass_session
def remove(session: Session, fact_id: str) -> None:
    """Remove the fact ID, also from the history.

    \b
    Example:
      sennit facts remove fact:1f3a97c2
    """
    with session.open() as db:
        if not db.remove([fact_id], caller=db.caller):
            raise NotFound(f"There is no fact {fact_id!r}.")
    if session.json:
        output.write_json({"removed": fact_id})
    else:
        output.write_note(session, f"Removed {fact_id}.")
