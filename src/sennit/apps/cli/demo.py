"""`sennit demo`: the five recipes on sample data, and a check of every result."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.demo_recipes import run_recipes
from sennit.apps.cli.exit_codes import OK, UNEXPECTED
from sennit.apps.cli.session import DATABASE_FILE, Session, common_options, pass_session
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from sennit.apps.cli.demo_report import DemoReport
    from sennit.engine import Database
    from sennit.records import Record
    from sennit.settings import Settings

INTRODUCTION: Final = (
    "Five kinds of assistant, one search engine: each step runs one recipe on sample data in a temporary database, "
    "and checks the result. To type the commands yourself, copy the sample data first:"
)

QUERIES_BY_LANGUAGE: Final = {
    "笔记本电脑丢失": "zh/backup",
    "列車の出発": "ja/train",
    "책을 빌릴": "ko/library",
    "fussgangerubergang": "de/crossing",
    "marche legumes": "fr/market",
    "http header map": "code/HTTPHeaderMap",
    "upload rate": "code/max_upload_rate",
}
"""Queries and the record that must come first: scripts without spaces, folded accents, parts of identifiers."""


@click.command()
@common_options
@pass_session
def demo(session: Session) -> int:
    """Show the five recipes on sample data, step by step.

    \b
    Example:
      sennit demo

    It uses a temporary database, or creates the one that --db names and keeps it. Every step checks its result; the
    exit code is 1 if a check fails.
    """
    from sennit.apps.cli.demo_report import DemoReport

    started = time.perf_counter()
    with _database_folder(session) as folder, as_file(files("sennit") / "samples") as samples:
        report = DemoReport(is_silent=session.json, samples=samples.resolve())
        if not session.json:
            _introduce(report)
        _run(folder, report)
    seconds = time.perf_counter() - started
    is_ok = all(check.ok for check in report.checks)
    if session.json:
        steps = [{"step": check.step, "what": check.statement, "ok": check.ok} for check in report.checks]
        left_out = [{"step": step, "reason": reason} for step, reason in report.left_out]
        output.write_json({"ok": is_ok, "seconds": round(seconds, 3), "steps": steps, "left_out": left_out})
    else:
        _conclude(session, report, is_ok=is_ok, seconds=seconds)
    return OK if is_ok else UNEXPECTED


def load_samples() -> list[Record]:
    """Load the sample records of the package."""
    from sennit.jsonl import read_records

    with (files("sennit") / "samples" / "demo.jsonl").open("rb") as stream:
        return list(read_records(stream))


def _introduce(report: DemoReport) -> None:
    report.write_paragraph(INTRODUCTION)
    report.write_lines(("", f"$ cp -r {report.samples} samples && cd samples"))


def _conclude(session: Session, report: DemoReport, *, is_ok: bool, seconds: float) -> None:
    number = len(report.checks)
    summary = f"All {number} checks passed" if is_ok else "Some checks FAILED"
    output.write_line()
    output.write_line(
        click.style(f"{summary}, in {seconds:.1f} s.", fg="green" if is_ok else "red", bold=True)
    )
    report.write_paragraph(
        "They include adding, changing and removing records, filters, explanations, seven languages and spellings, "
        "and reopening the database."
    )
    if session.db:
        report.write_paragraph(f"The database is kept in {session.db}.")
    last = (
        ("sennit tui", "search, read and explain")
        if find_spec("textual")
        else ("sennit --help", "all commands")
    )
    output.write_line("\nTry next, in a folder of your own:")
    for command, purpose in (
        ("sennit index .", "index its files"),
        ('sennit search "your question" --explain', "search them, and see why"),
        last,
    ):
        report.write_lines((f"{click.style(f'{command:<42}', bold=True)}{purpose}",))


def _run(folder: Path, report: DemoReport) -> None:
    import sennit
    from sennit.settings import PrivacySettings

    # Fixed settings: the demo gives the same result everywhere, for one user who sees everything.
    settings = sennit.Settings(privacy=PrivacySettings(open=True))
    with sennit.open(folder, settings=settings) as db:
        run_recipes(db, report)
    with tempfile.TemporaryDirectory(prefix="sennit-demo-") as temporary:
        _check_engine(Path(temporary) / "records.sennit", settings, report)


def _check_engine(folder: Path, settings: Settings, report: DemoReport) -> None:
    """Check what all recipes share, on the sample records; only failures are printed."""
    import sennit

    records = load_samples()
    with sennit.open(folder, settings=settings) as db:
        _check_add(db, records, report)
        _check_search(db, report)
        _check_filter(db, report)
        _check_changes(db, report)
        before = [(hit.id, hit.score) for hit in db.search("restore a backup")]
    report.start_step("reopen")
    with sennit.open(folder, settings=settings) as db:
        after = [(hit.id, hit.score) for hit in db.search("restore a backup")]
        report.check(f"{len(db)} records are stored", len(db) == len(records) - 1, show=False)
        report.check("the same query has the same scores", after == before, show=False)


def _check_add(db: Database, records: list[Record], report: DemoReport) -> None:
    report.start_step("add")
    written = db.add(records)
    report.check(f"{written.added} records are added", written.added == len(records), show=False)
    again = db.add(records)
    report.check("adding them again changes nothing", again.unchanged == len(records), show=False)


def _check_search(db: Database, report: DemoReport) -> None:
    report.start_step("search")
    first = db.search("how do I get my files back?", limit=2, explain=True)[0]
    report.check(
        "keyword and vector agree on the best record",
        first.id == "restore/files" and {"keyword", "vector"} <= set(first.sources),
        show=False,
    )
    report.check("the result is explained", first.explanation is not None, show=False)
    found = [hit.id for hit in db.search("gift for an astronomer", limit=2)]
    report.check("a record without the words is found by meaning", found[:1] == ["note/birthday"], show=False)
    report.start_step("languages")
    for query, expected in QUERIES_BY_LANGUAGE.items():
        found = [hit.id for hit in db.search(query, limit=1)]
        report.check(f"{query} finds {expected}", found == [expected], show=False)


def _check_filter(db: Database, report: DemoReport) -> None:
    report.start_step("filter")
    condition = 'collection = "conversation" and timestamp >= 2026-03-10 and speaker = "Ana"'
    query = "when does the plumber come?"
    found = [hit.id for hit in db.search(query, limit=3, filters=condition)]
    report.check("a filtered search fills its limit", len(found) == 3, show=False)
    report.check("the right record comes first", found[:1] == ["call-8/4"], show=False)
    report.start_step("why")
    verdict = db.why(query, "note/boiler", filters=condition)
    report.check(
        "a record is absent because of the filter",
        not verdict.kept and verdict.stage == "filter",
        show=False,
    )
    verdict = db.why("telescope", "note/bread", limit=2)
    report.check("another because of its score", not verdict.kept and verdict.number is not None, show=False)


def _check_changes(db: Database, report: DemoReport) -> None:
    report.start_step("change")
    train = db.get("note/train")
    assert train is not None
    text = "The night train is cancelled until autumn; there is a sleeper bus instead."
    db.add([replace(train, text=text)])
    found = [hit.id for hit in db.search("sleeper bus", limit=1)]
    report.check("a changed record is found by its new words", found == ["note/train"], show=False)
    found = [hit.id for hit in db.search("platform breakfast", recipe="keyword")]
    report.check("but not by its old words", "note/train" not in found, show=False)
    report.start_step("remove")
    db.remove(["note/wifi"])
    found = [hit.id for hit in db.search("Gartenhaus guest network", limit=50)]
    report.check("no search finds a removed record", "note/wifi" not in found, show=False)
    report.check("its id no longer exists", db.get("note/wifi") is None, show=False)


@contextlib.contextmanager
def _database_folder(session: Session) -> Iterator[Path]:
    """The folder of the demo's database: the one of --db, which must be new, or a temporary one."""
    if session.db is None:
        with tempfile.TemporaryDirectory(prefix="sennit-demo-") as temporary:
            yield Path(temporary) / "demo.sennit"
        return
    if isinstance(session.db, str):
        raise InvalidInput("The demo needs a database of its own: give --db a new folder, or leave it out.")
    if (session.db / DATABASE_FILE).exists():
        raise InvalidInput(
            f"{session.db} is already a database. Give the demo a new folder, so that yours does not change."
        )
    yield session.db
