"""`sennit demo`: everything once, on sample records, each step checked."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exits import OK, UNEXPECTED
from sennit.apps.cli.search import show_hit, show_why
from sennit.apps.cli.session import DATABASE_FILE, Session, common, pass_session
from sennit.apps.cli.tour import tour
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.records import Record
    from sennit.results import Result

LANGUAGES: Final = {
    "笔记本电脑丢失": "zh/backup",
    "列車の出発": "ja/train",
    "책을 빌릴": "ko/library",
    "fussgangerubergang": "de/crossing",
    "marche legumes": "fr/market",
    "http header map": "code/HTTPHeaderMap",
    "upload rate": "code/max_upload_rate",
}
"""Questions and the record that must come first: no spaces, folded accents, parts of names."""


@click.command()
@common
@pass_session
def demo(session: Session) -> int:
    """Show what sennit does, on sample data: add, search, explain, filter, change, reopen, and the five recipes.

    Works in a temporary database, or in the new one that --db names, which is kept. Checks itself: leaves
    with 1 when a step does not come out as it should.
    """
    began = time.perf_counter()
    with _folder(session) as folder:
        show = _Show(session)
        _run(folder, show)
    seconds = time.perf_counter() - began
    good = all(ok for _, _, ok in show.checked)
    if session.json:
        steps = [{"step": step, "what": what, "ok": ok} for step, what, ok in show.checked]
        missing = [{"step": step, "reason": reason} for step, reason in show.left_out]
        output.emit({"ok": good, "seconds": round(seconds, 3), "steps": steps, "left_out": missing})
    else:
        kept = f" The database is {session.db}." if session.db else ""
        said = f"All {len(show.checked)} checks hold" if good else "Something is not as it should be"
        output.say(
            click.style(f"\n{said}, after {seconds:.1f} s.{kept}", fg="green" if good else "red", bold=True)
        )
    return OK if good else UNEXPECTED


@dataclass
class _Show:
    """Tells what happens, and remembers what came out as it should."""

    session: Session
    step: str = ""
    checked: list[tuple[str, str, bool]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    @property
    def silent(self) -> bool:
        return self.session.json

    def heading(self, step: str, command: str) -> None:
        self.step = step
        if not self.silent:
            output.say(f"\n{click.style(step, bold=True, fg='cyan')}")
            output.say(click.style(f"  $ {command}", dim=True))

    def check(self, what: str, ok: bool) -> None:
        self.checked.append((self.step, what, ok))
        if not self.silent:
            mark = click.style("✓", fg="green") if ok else click.style("✗ not so:", fg="red", bold=True)
            output.say(f"  {mark} {what}")

    def leave_out(self, reason: str) -> None:
        """Say why a step is not done here."""
        self.left_out.append((self.step, reason))
        if not self.silent:
            output.say(f"  {click.style('–', fg='yellow')} left out: {reason}")

    def hits(self, result: Result) -> list[str]:
        """Show the hits of a result, and give their ids."""
        if not self.silent:
            output.warn_degraded(result.degraded)
            for hit in result:
                show_hit(hit, result.query)
        return [hit.id for hit in result]

    def search(
        self, db: Database, query: str, *, limit: int = 3, where: str = "", explain: bool = False
    ) -> list[str]:
        """Search, show the hits, and give their ids."""
        return self.hits(db.search(query, limit=limit, filters=where or None, explain=explain))


def samples() -> list[Record]:
    """The sample records, which are part of the package."""
    from sennit.exchange import read_records

    with (files("sennit") / "samples" / "demo.jsonl").open("rb") as stream:
        return list(read_records(stream))


def _run(folder: Path, show: _Show) -> None:
    import sennit

    records = samples()
    from sennit.settings import PrivacySettings

    # The demo is the same wherever it runs; one user, who sees everything.
    settings = sennit.Settings(privacy=PrivacySettings(open=True))
    with sennit.open(folder, settings=settings) as db:
        _add(db, records, show)
        _ask(db, show)
        _languages(db, show)
        _narrow(db, show)
        _change(db, show)
        before = [(hit.id, hit.score) for hit in db.search("restore a backup")]
    show.heading("Open it again", "sennit search 'restore a backup'")
    with sennit.open(folder, settings=settings) as db:
        after = [(hit.id, hit.score) for hit in db.search("restore a backup")]
        show.check(f"{len(db)} records are there", len(db) == len(records) - 1)
        show.check("the same question has the same answer, to the last digit", after == before)
        tour(db, show)


def _add(db: Database, records: list[Record], show: _Show) -> None:
    show.heading("Add records", "sennit import samples.jsonl")
    written = db.add(records)
    collections = sorted({record.collection for record in records})
    show.check(f"{written.added} records in {', '.join(collections)}", written.added == len(records))
    again = db.add(records)
    show.check("adding them again changes nothing", again.unchanged == len(records))


def _ask(db: Database, show: _Show) -> None:
    query = "how do I get my files back?"
    show.heading("Ask a question, and see why", f"sennit search '{query}' --explain")
    found = show.search(db, query, limit=2, explain=True)
    show.check("keyword and meaning agree on the answer", found[:1] == ["restore/files"])

    query = "gift for an astronomer"
    show.heading("Ask in words that are not in the text", f"sennit search '{query}'")
    found = show.search(db, query, limit=2)
    show.check("found by meaning alone", found[:1] == ["note/birthday"])


def _languages(db: Database, show: _Show) -> None:
    show.heading("Ask in any script, or for a part of a name", "sennit search '列車の出発'")
    for query, wanted in LANGUAGES.items():
        first = db.search(query, limit=1)
        show.check(f"{query} -> {wanted}", [hit.id for hit in first] == [wanted])


def _narrow(db: Database, show: _Show) -> None:
    where = 'collection = "conversation" and timestamp >= 2026-03-10 and speaker = "Ana"'
    query = "when does the plumber come?"
    show.heading("Ask only some of the records", f"sennit search '{query}' --filter '{where}'")
    found = show.search(db, query, limit=3, where=where)
    show.check("three results although most records are left out", len(found) == 3)
    show.check("the right one first", found[:1] == ["call-8/4"])

    show.heading("Ask why a record is not there", f"sennit why '{query}' note/boiler --filter '...'")
    verdict = db.why(query, "note/boiler", filters=where)
    if not show.silent:
        show_why(verdict)
    show.check("the filter kept it out", not verdict.kept and verdict.stage == "filter")
    verdict = db.why("telescope", "note/bread", limit=2)
    if not show.silent:
        show_why(verdict)
    show.check("another lost by a number", not verdict.kept and verdict.number is not None)


def _change(db: Database, show: _Show) -> None:
    show.heading("Change a record", "sennit import changed.jsonl")
    train = db.get("note/train")
    assert train is not None
    db.add(
        [replace(train, text="The night train is cancelled until autumn; there is a sleeper bus instead.")]
    )
    found = show.search(db, "sleeper bus", limit=1)
    show.check("its new words find it at once", found == ["note/train"])
    gone = db.search("platform breakfast", recipe="keyword")
    show.check("its old words do not", "note/train" not in [hit.id for hit in gone])

    show.heading("Remove a record", "sennit remove note/wifi")
    db.remove(["note/wifi"])
    found = [hit.id for hit in db.search("Gartenhaus guest network", limit=50)]
    show.check("no search finds it", "note/wifi" not in found)
    show.check("it is gone by id", db.get("note/wifi") is None)


@contextlib.contextmanager
def _folder(session: Session) -> Iterator[Path]:
    if session.db is None:
        with tempfile.TemporaryDirectory(prefix="sennit-demo-") as temporary:
            yield Path(temporary) / "demo.sennit"
        return
    if (session.db / DATABASE_FILE).exists():
        raise InvalidInput(
            f"{session.db} is a database already; the demo wants a new folder, to keep yours as it is."
        )
    yield session.db
