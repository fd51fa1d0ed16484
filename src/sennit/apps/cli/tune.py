"""`sennit tune`: better numbers for a recipe, confirmed on queries that the tuning has not seen."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import NOT_CONFIRMED, OK
from sennit.apps.cli.session import OUTPUT_FILE, TEXT, Session, common_options, load_settings, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import InvalidInput
from sennit.user_cache import expand_home

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.evaluation.datasets import Collection
    from sennit.evaluation.run import Progress
    from sennit.evaluation.tuning import TuningReport
    from sennit.evaluation.tuning_run import TuningOptions
    from sennit.privacy import Caller
    from sennit.ranking.ranker import RankerScope

DEADLINE_SECONDS: Final = 60.0
"""Long enough that no source times out; without one of its lists, a query would count for the wrong weights."""

ORIGINS: Final = {
    "judgements": "judged queries",
    "feedback": "queries with feedback",
    "documents": "queries made from your documents, which nobody judged",
    "model": "queries that a language model wrote about your documents, which nobody judged",
}


@click.command()
@click.argument("folders", metavar="[DIR]...", type=click.Path(path_type=Path), nargs=-1)
@click.option("-r", "--recipe", type=TEXT, default="", help="Recipe to tune. Default: from the settings.")
@click.option("--name", type=TEXT, default="tuned", show_default=True, help="Name of the tuned recipe.")
@click.option(
    "--queries-from",
    type=click.Choice(["feedback", "documents", "model"]),
    help="Without DIR: where queries come from. Default: feedback, or documents if there is too little.",
)
@click.option("--caller", metavar="NAME", type=TEXT, help="Without DIR: only the feedback of this caller.")
@click.option(
    "--tenant", metavar="NAME", type=TEXT, help="Without DIR: the feedback of all callers of this tenant."
)
@click.option("-m", "--model", type=TEXT, default="", help="With DIR: static, minilm or PROVIDER/MODEL.")
@click.option(
    "--scope",
    metavar="FIELD",
    type=TEXT,
    help="With DIR: search only records whose metadata FIELD equals the query's.",
)
@click.option(
    "--now",
    metavar="TIME",
    type=TEXT,
    help="With DIR: give documents the time in their metadata, and ask at TIME: an instant, end or last, as for "
    "'sennit eval'.",
)
@click.option("--folds", type=int, default=5, show_default=True, help="Parts that are held out in turn.")
@click.option(
    "--alpha", type=float, default=0.05, show_default=True, help="Chance of confirming what is chance."
)
@click.option("--limit-queries", metavar="N", type=click.IntRange(min=1), help="Use only N queries.")
@click.option(
    "--write",
    metavar="FILE",
    type=OUTPUT_FILE,
    help="Settings file to write to. Default: the nearest sennit.toml, or a new one here.",
)
@click.option("--replace", is_flag=True, help="Replace a recipe of this name that was not tuned.")
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@click.option(
    "--cache",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the databases of folders there for the next run.",
)
@common_options
@pass_session
def tune(
    session: Session,
    folders: tuple[Path, ...],
    recipe: str,
    name: str,
    queries_from: str | None,
    caller: str | None,
    tenant: str | None,
    model: str,
    scope: str | None,
    now: str | None,
    folds: int,
    alpha: float,
    limit_queries: int | None,
    write: Path | None,
    replace: bool,
    dry_run: bool,
    cache: Path | None,
) -> int:
    """Find better weights, constants and pools for a recipe on your own queries.

    \b
    Example:
      sennit tune mine --recipe rrf --name tuned

    DIR has corpus.jsonl, queries.jsonl and qrels.tsv, as 'sennit judge' and 'sennit feedback export' write them. Without
    DIR, queries come from your own feedback in the database, or that of --caller or --tenant, and are searched as its
    caller; where there is too little of your own, they are made from the documents.

    Queries are held out in turn, and a paired test over all of them decides. A gain that they do not confirm is refused
    with exit code 8. A confirmed recipe is written to the settings as [recipes.NAME], with its evidence.
    """
    from sennit.evaluation.clock import parse_clock
    from sennit.evaluation.tuning_run import TuningOptions

    settings = load_settings()
    if not dry_run:
        _check_name(settings.recipes, name, replace=replace)
    options = TuningOptions(
        recipe=recipe,
        model=model,
        folds=folds,
        alpha=alpha,
        max_queries=limit_queries,
        now=None if now is None else parse_clock(now),
        cache_dir=cache,
    )
    if (caller is not None or tenant is not None) and (folders or queries_from not in (None, "feedback")):
        raise InvalidInput("--caller and --tenant choose the feedback of a database.")
    if folders:
        if queries_from is not None:
            raise InvalidInput("--queries-from is for a database; the queries of DIR are in its files.")
        report = _tune_folders(session, folders, scope, options)
    else:
        if model or scope or now:
            raise InvalidInput("--model, --scope and --now need DIR; a database is searched as it is.")
        report = _tune_database(session, queries_from, caller, tenant, options)
    file = None if dry_run or not report.is_confirmed else _write(report, settings.recipes, name, write)
    if session.json:
        output.write_json({**report.to_dict(), "name": name, "written": None if file is None else str(file)})
    else:
        _show(session, report, name, file)
    return OK if report.is_confirmed else NOT_CONFIRMED


def _show_progress(session: Session) -> Progress:
    def show(label: str) -> AbstractContextManager[output.ProgressCallback]:
        return output.progress_bar(session, label)

    return show


def _tune_folders(
    session: Session, folders: tuple[Path, ...], scope: str | None, options: TuningOptions
) -> TuningReport:
    from dataclasses import replace

    from sennit.evaluation.datasets import read_collection
    from sennit.evaluation.quality import KNOWN_SCOPES
    from sennit.evaluation.tuning_run import tune_folders

    collections = [read_collection(folder) for folder in folders]
    for collection in collections:
        for warning in collection.warnings:
            output.write_warning(sanitize_for_terminal(warning))
    names = [collection.name for collection in collections]
    scopes = {one: field for one in names if (field := scope or KNOWN_SCOPES.get(one))}
    return tune_folders(
        collections, replace(options, scopes=scopes), load_settings(), _show_progress(session)
    )


def _tune_database(
    session: Session,
    queries_from: str | None,
    caller: str | None,
    tenant: str | None,
    options: TuningOptions,
) -> TuningReport:
    from dataclasses import replace

    from sennit.evaluation.learning_data import select_feedback
    from sennit.evaluation.tuning import MIN_QUERIES
    from sennit.evaluation.tuning_queries import from_documents, from_feedback
    from sennit.evaluation.tuning_run import tune_database, tune_folders

    progress = _show_progress(session)
    with session.open(background=False, search__deadline=DEADLINE_SECONDS) as db:
        if queries_from in (None, "feedback"):
            feedback, whose = select_feedback(db, tenant=tenant, caller=caller)
            found = from_feedback(feedback)
            is_chosen = queries_from or caller is not None or tenant is not None
            if is_chosen or len(found.queries) >= MIN_QUERIES:
                asked = replace(options, queries_from="feedback", caller=_asker(whose))
                return tune_database(db, found, asked, progress)
            output.write_note(
                session,
                f"There is feedback on {output.pluralize(len(found.queries), 'query')}, "
                f"and tuning needs {MIN_QUERIES}; queries are made from the documents instead.",
            )
        if queries_from == "model":
            return tune_database(
                db, _from_model(db, progress), replace(options, queries_from="model"), progress
            )
        with db.admin.export() as (_, records):
            made = from_documents(records)
    return tune_folders([made], replace(options, queries_from="documents"), load_settings(), progress)


def _asker(whose: RankerScope) -> Caller:
    """Return as whom the queries are searched: the caller whose feedback it is, or an owner of the tenant."""
    from sennit.privacy import Caller
    from sennit.repositories.feedback import FeedbackOwner

    tenant = whose.tenant or ""
    if whose.caller is None:
        return Caller(tenant=tenant, everything=True)
    return FeedbackOwner(tenant, whose.caller).caller


def _from_model(db: Database, progress: Progress) -> Collection:
    from sennit.engine.query_rewriter import ConfiguredModel
    from sennit.evaluation.tuning_queries import from_model

    configured = ConfiguredModel(db.settings.llm)
    model = configured.get()
    if model is None:
        raise InvalidInput(
            "No language model is configured; set llm.provider, or use --queries-from documents."
        )
    try:
        with db.admin.export() as (_, records), progress("Writing queries") as update:
            return from_model(records, model, timeout=db.settings.llm.timeout, progress=update)
    finally:
        configured.close()


def _check_name(recipes: Mapping[str, Mapping[str, object]], name: str, *, replace: bool) -> None:
    """Refuse a name whose recipe somebody wrote by hand."""
    from sennit.recipes.builtin import BUILTIN_RECIPES

    if name in BUILTIN_RECIPES:
        raise InvalidInput(f"{name!r} is a built-in recipe; choose another --name.")
    if name in recipes and "evidence" not in recipes[name] and not replace:
        raise InvalidInput(
            f"The settings have a recipe {name!r} that was not tuned; choose another --name, or give --replace."
        )


def _write(
    report: TuningReport, recipes: Mapping[str, Mapping[str, object]], name: str, given: Path | None
) -> Path:
    """Write the recipe and its evidence to the settings file, and leave the rest of it as it is."""
    from sennit.apps.install.edits import find_entry, load, remove_entry, write_entry
    from sennit.settings import FILE_NAME, find_nearest

    named = os.environ.get("SENNIT_CONFIG")
    file = given or (expand_home(named) if named else find_nearest()) or Path(FILE_NAME)
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    path = ("recipes", name)
    evidence_path = (*path, "evidence")
    try:
        if find_entry(load(text, "toml"), evidence_path) is not None:
            text = remove_entry(text, "toml", evidence_path).apply(text)
            text = f"{text.rstrip()}\n"
        text = write_entry(text, "toml", path, _table(report, recipes)).apply(text)
        text = write_entry(text, "toml", evidence_path, report.to_evidence()).apply(text)
    except ValueError as error:
        raise InvalidInput(f"{file} cannot be changed: {error}. Give another file with --write.") from error
    file.write_text(text, encoding="utf-8")
    return file


def _table(report: TuningReport, recipes: Mapping[str, Mapping[str, object]]) -> dict[str, Any]:
    """Return the table of the tuned recipe: what it is based on, and the parts that changed."""
    base, own = report.recipe, recipes.get(report.recipe.name)
    start = {"base": base.name} if own is None else {key: _thaw(value) for key, value in own.items()}
    start.pop("evidence", None)
    tuned = report.tuned
    parts = tuned.to_dict()
    changed = {
        part: parts[part]
        for part in ("sources", "fusion", "stages")
        if getattr(tuned, part) != getattr(base, part)
    }
    return {**start, "about": f"{base.name}, tuned on {ORIGINS[report.queries_from]}.", **changed}


def _thaw(value: object) -> Any:
    """Return a value of the settings as plain dicts and lists."""
    if isinstance(value, Mapping):
        return {key: _thaw(item) for key, item in value.items()}
    return [_thaw(item) for item in value] if isinstance(value, tuple) else value


def _show(session: Session, report: TuningReport, name: str, file: Path | None) -> None:
    from sennit.evaluation.plots import IntervalRow, interval_text
    from sennit.evaluation.tuning import METRIC

    test = report.test
    output.write_line(
        f"{output.one_line(report.recipe.name)} on {test.queries:,} {ORIGINS[report.queries_from]}, "
        f"{report.folds} folds"
    )
    if report.changes:
        output.write_table(
            ("number", "before", "after"),
            [(one.name, f"{one.before:g}", f"{one.after:g}") for one in report.changes],
            right=(1, 2),
        )
        row = IntervalRow(f"{METRIC}, difference", test.interval.low, test.difference, test.interval.high)
        output.write_line(interval_text([row], 0.0)[0])
    output.write_line(output.one_line(report.verdict))
    if file is not None:
        output.write_note(
            session,
            f"Wrote [recipes.{output.one_line(name)}] to {output.one_line(str(file))}. Use it with --recipe {name}.",
        )
