"""`sennit eval`: how good and how fast search is, on collections with judgements."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sennit.apps.cli import output
from sennit.apps.cli.session import TEXT, Session, common, load_settings, pass_session
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sennit.evaluation.datasets import Collection
    from sennit.evaluation.run import Measured

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("eval")
@click.argument("folders", metavar="DIR...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-r", "--recipe", "recipes", type=TEXT, multiple=True, help="How to search; repeatable.")
@click.option(
    "-m",
    "--model",
    "models",
    type=TEXT,
    multiple=True,
    help="static, minilm or PROVIDER/MODEL; repeatable. Default: the one in the settings.",
)
@click.option(
    "--scope",
    "scopes",
    metavar="FIELD",
    type=TEXT,
    multiple=True,
    help="Search only records whose metadata FIELD equals the query's; NAME=FIELD: in the folder NAME only.",
)
@click.option(
    "--category", metavar="FIELD", type=TEXT, help="Figures for each value of the queries' FIELD too."
)
@click.option("--code", is_flag=True, help="The folders have the code format: questions about projects.")
@click.option(
    "--projects", metavar="DIR", type=_FOLDER, help="Where the projects' sources are. Default: DIR/projects."
)
@click.option("--ablation", is_flag=True, help="With --code: what each part of the recipe is worth.")
@click.option("--limit-queries", metavar="N", type=click.IntRange(min=1), help="Only the first N queries.")
@click.option("--per-query", metavar="FILE", type=_FILE, help="Write each query's figures as JSON lines.")
@click.option("--cache", metavar="DIR", type=_FOLDER, help="Keep the built databases there for the next run.")
@click.option("--write", metavar="FILE", type=_FILE, help="Put the tables between the marks of this page.")
@common
@pass_session
def eval_(
    session: Session,
    folders: tuple[Path, ...],
    recipes: tuple[str, ...],
    models: tuple[str, ...],
    scopes: tuple[str, ...],
    category: str | None,
    code: bool,
    projects: Path | None,
    ablation: bool,
    limit_queries: int | None,
    per_query: Path | None,
    cache: Path | None,
    write: Path | None,
) -> None:
    """Measure search on BEIR-style folders: corpus.jsonl, queries.jsonl and qrels.tsv.

    Each folder becomes a database of its own, which is removed afterwards. Reported are nDCG@10, MRR@10, R@5,
    R@10, R@100 and the median milliseconds of a search, for each source alone, for RRF and for the recipe.

    With --code: annotations/PROJECT.json, questions and the files that answer them, for each project and for all.
    """
    from sennit.evaluation.datasets import read_collection
    from sennit.evaluation.report import degraded_notes, to_dict
    from sennit.evaluation.run import Options, evaluate

    if code:
        from sennit.evaluation.code import evaluate_code, read_code

        evaluate = partial(evaluate_code, ablation=ablation)
        category = category or "category"
        collections = [one for folder in folders for one in read_code(folder, projects)]
    else:
        _refuse_without_code(projects, ablation=ablation)
        collections = [read_collection(folder) for folder in folders]
    names = [collection.name for collection in collections]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"Two folders are called {twice!r}; their figures could not be told apart.")
    for collection in collections:
        for warning in collection.warnings:
            output.warn(output.plain(warning))
    options = Options(
        models=models,
        recipes=recipes,
        scopes=_scopes(scopes, collections),
        queries=limit_queries,
        cache=cache,
    )

    def watch(label: str) -> AbstractContextManager[output.Update]:
        return output.progress(session, label)

    measured = evaluate(collections, options, load_settings(), watch)
    for text in degraded_notes(measured):
        output.warn(output.plain(text))
    if per_query is not None:
        _write_per_query(per_query, measured)
    if write is not None:
        from sennit.evaluation.quality import write_tables

        write_tables(write, measured)
    if session.json:
        warnings = [warning for collection in collections for warning in collection.warnings]
        output.emit({"results": [to_dict(one, category) for one in measured], "warnings": warnings})
    else:
        _show(measured, category, code=code)


def _refuse_without_code(projects: Path | None, *, ablation: bool) -> None:
    if projects is not None or ablation:
        raise InvalidInput("--projects and --ablation go with --code.")


def _scopes(given: Sequence[str], collections: Sequence[Collection]) -> dict[str, str]:
    """The scope of each collection: as given, or what is known of the collections we measure with."""
    from sennit.evaluation.quality import SCOPES

    names = [collection.name for collection in collections]
    out = {name: SCOPES[name] for name in names if name in SCOPES}
    for text in given:
        name, equals, field = text.rpartition("=")
        if not field or (equals and name not in names):
            raise InvalidInput(
                f"--scope {text}: give FIELD, or NAME=FIELD with a folder of: {', '.join(names)}."
            )
        out.update({name: field} if equals else dict.fromkeys(names, field))
    return out


def _write_per_query(file: Path, measured: Sequence[Measured]) -> None:
    from sennit.evaluation.report import per_query

    with file.open("w", encoding="utf-8") as stream:
        for value in per_query(measured):
            stream.write(json.dumps(value, ensure_ascii=False) + "\n")


def _show(measured: Sequence[Measured], category: str | None, *, code: bool) -> None:
    from sennit.evaluation.report import FIRST_NUMBER, HEADERS, rows_of

    if code:
        from sennit.evaluation.code import code_rows

        rows = code_rows(measured, category or "category")
    else:
        rows = rows_of(measured, category)
    output.table(HEADERS, rows, right=range(FIRST_NUMBER, len(HEADERS)))
