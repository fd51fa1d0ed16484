"""`sennit remember`, `sennit context` and `sennit facts`: what was said, and what is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sennit.apps.cli import output
from sennit.apps.cli.exits import OK, SOURCES
from sennit.apps.cli.session import TEXT, Session, common, pass_session
from sennit.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sennit.facts import Fact
    from sennit.segments import Segment

_FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.command()
@click.argument("text", type=TEXT, required=False)
@click.option(
    "--from", "file", metavar="FILE", type=_FILE, help="A conversation: JSON lines or a transcript."
)
@click.option(
    "--session", "name", type=TEXT, help="What the conversation is called. Default: the file's name."
)
@click.option("--speaker", type=TEXT, default="", help="Who said TEXT.")
@click.option("--collection", type=TEXT, default="memory", show_default=True, help="Where TEXT is kept.")
@click.option("--sensitivity", type=TEXT, help="The level of TEXT.")
@click.option("--scope", type=TEXT, help="Who may see TEXT.")
@common
@pass_session
def remember(
    session: Session,
    text: str | None,
    file: Path | None,
    name: str | None,
    speaker: str,
    collection: str,
    sensitivity: str | None,
    scope: str | None,
) -> None:
    """Keep TEXT for later, or a whole conversation --from a file; it is found at once by its words.

    A conversation is one JSON object per line ("text", "speaker", "session", "timestamp"; the names that other
    programs use are known), or a transcript such as '[2026-03-01 09:30] Rajesh: we could go in March'.
    """
    if (text is None) == (file is None):
        raise InvalidInput("Give either a TEXT to remember, or a conversation with --from FILE.")
    with session.open(create=True) as db:
        if text is not None:
            about: dict[str, str] = {"speaker": speaker} if speaker else {}
            record = db.remember(
                text,
                collection=collection,
                metadata={**about, **({"session": name} if name else {})},
                sensitivity=sensitivity,
                scope=scope,
                source="command line",
            )
            if session.json:
                output.emit(record.to_dict())
            else:
                output.note(session, f"Remembered as {record.id}.")
            return
        assert file is not None
        written = db.add_segments(_conversation(file, name))
    if session.json:
        output.emit({"added": written.added, "updated": written.updated, "unchanged": written.unchanged})
    else:
        turns = written.added + written.updated + written.unchanged
        output.note(session, f"Remembered {output.counted(turns, 'turn')}, {written.added} of them new.")


def _conversation(file: Path, name: str | None) -> list[Segment]:
    from sennit.ingest.conversation import read_conversation

    with click.open_file(str(file), "rb") as stream:
        content = stream.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start}).") from error
    return list(read_conversation(text, name or ("conversation" if str(file) == "-" else file.stem)))


@click.command()
@click.argument("query", type=TEXT, default="recent conversations and key facts")
@click.option("-r", "--recipe", type=TEXT, default="memory", show_default=True, help="How to search.")
@click.option("-n", "--limit", type=int, help="How many memories.")
@click.option("--look-back", type=float, metavar="HOURS", help="Nothing older than this.")
@click.option("--provenance", is_flag=True, help="Say of each line where it is from.")
@common
@pass_session
def context(
    session: Session,
    query: str,
    recipe: str,
    limit: int | None,
    look_back: float | None,
    provenance: bool,
) -> int:
    """Print what is remembered about QUERY as a block for a system prompt; nothing when there is nothing."""
    from sennit.context.briefing import briefing, memory_of

    with session.open() as db:
        result = db.search(
            query, recipe=recipe, limit=limit, look_back=False if look_back is None else look_back
        )
    block = briefing([memory_of(hit.record) for hit in result], provenance=provenance)
    if session.json:
        output.emit({**result.to_dict(), "block": block})
    else:
        output.warn_degraded(result.degraded)
        if block:
            output.say(block)
        else:
            output.note(session, "Nothing is remembered about that.")
    return OK if result.answered else SOURCES


@click.group()
@common
def facts() -> None:
    """Say what is known, list it, and take it back: 'Rajesh -> Goa: planning a trip in March'."""


@facts.command()
@click.argument("subject", type=TEXT)
@click.argument("relation", type=TEXT)
@click.argument("object_", metavar="OBJECT", type=TEXT)
@click.option("--text", type=TEXT, default="", help="The relation in words.")
@click.option("--weight", type=float, default=1.0, show_default=True, help="How much it counts.")
@click.option("--since", type=TEXT, help="When it began to be true, e.g. 2026-03-01.")
@click.option("--replace", is_flag=True, help="End what else is said of SUBJECT in this RELATION.")
@common
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
    """Keep the fact that SUBJECT stands in RELATION to OBJECT."""
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
        output.emit(fact.to_record().to_dict())
    else:
        output.note(session, f"{fact.line}  ({fact.id})")


@facts.command("list")
@click.argument("name", type=TEXT, required=False)
@click.option("--history", is_flag=True, help="What is no longer true, too.")
@common
@pass_session
def list_(session: Session, name: str | None, history: bool) -> None:
    """List the facts, or those about NAME."""
    from sennit.facts import Fact, ended_at, is_fact

    wanted = None if name is None else name.casefold()
    with session.open() as db:
        found: list[Fact] = [
            Fact.from_record(record)
            for record in db
            if is_fact(record) and (history or ended_at(record) is None)
        ]
    if wanted is not None:
        found = [fact for fact in found if wanted in (fact.subject.casefold(), fact.object.casefold())]
    if session.json:
        output.emit({"facts": [fact.to_record().to_dict() for fact in found]})
        return
    output.table(
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
@common
@pass_session
def import_(session: Session, file: Path) -> None:
    """Keep facts from FILE: one JSON object per line with subject, relation, object and what else is known."""
    from sennit.facts import Fact

    batch = []
    with click.open_file(str(file), encoding="utf-8-sig") as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    batch.append(Fact(**json.loads(line)))
                except (TypeError, ValueError) as error:
                    raise InvalidInput(f"{file}, line {number}: {error}") from error
    with session.open(create=True) as db:
        written = db.add_facts(batch)
    if session.json:
        output.emit({"added": written.added, "updated": written.updated, "unchanged": written.unchanged})
    else:
        output.note(session, f"Kept {output.counted(len(batch), 'fact')}.")


@facts.command()
@click.argument("ids", metavar="[ID]...", type=TEXT, nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only show what would be kept.")
@common
@pass_session
def extract(session: Session, ids: tuple[str, ...], dry_run: bool) -> None:
    """Read facts out of the records ID, or all: by the language model of the settings, or by plain statements.

    What a model says is kept only if its names stand in the text. A fact knows the record it is from.
    """
    with session.open() as db:
        records = [record for record in (map(db.get, ids) if ids else db) if record is not None]
        if len(records) < len(ids):
            raise NotFound("One of the records is not there; nothing was read.")
        found = db.extract_facts(records, keep=not dry_run)
    for problem in found.problems:
        output.warn(output.plain(problem))
    if session.json:
        listed = [fact.to_record().to_dict() for fact in found.facts]
        output.emit({"by": found.by, "facts": listed, "problems": list(found.problems)})
        return
    for fact in found.facts:
        output.say(output.one_line(fact.line))
    output.note(
        session,
        f"{output.counted(len(found.facts), 'fact')} from {output.counted(len(records), 'record')}, by {found.by}.",
    )


@facts.command()
@click.argument("fact_id", metavar="ID", type=TEXT)
@common
@pass_session
def remove(session: Session, fact_id: str) -> None:
    """Take back the fact ID, as if it had never been said."""
    with session.open() as db:
        if not db.remove([fact_id], caller=db.caller):
            raise NotFound(f"There is no fact {fact_id!r}.")
    if session.json:
        output.emit({"removed": fact_id})
    else:
        output.note(session, f"Took back {fact_id}.")
