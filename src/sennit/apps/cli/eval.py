"""`sennit eval`: measure search quality and speed on labelled collections."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sennit.apps.cli import output
from sennit.apps.cli.options import read_ranker
from sennit.apps.cli.session import TEXT, Session, common_options, load_settings, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sennit.evaluation.comparison import Comparison
    from sennit.evaluation.datasets import Collection
    from sennit.evaluation.run import Measurement

_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("eval")
@click.argument("folders", metavar="DIR...", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-r", "--recipe", "recipes", type=TEXT, multiple=True, help="Recipe to measure; repeatable.")
@click.option(
    "-m",
    "--model",
    "models",
    type=TEXT,
    multiple=True,
    help="static, minilm or PROVIDER/MODEL; repeatable. Default: from the settings.",
)
@click.option(
    "--scope",
    "scopes",
    metavar="FIELD",
    type=TEXT,
    multiple=True,
    help="Search only records whose metadata FIELD equals the query's. NAME=FIELD applies to the folder NAME only.",
)
@click.option(
    "--now",
    metavar="TIME",
    type=TEXT,
    help="Give documents the time in their metadata, and ask at TIME: an instant; end, with the times of each scope "
    "moved so that it ended yesterday; or last, the day after the last document of the scope.",
)
@click.option("--category", metavar="FIELD", type=TEXT, help="Also report each value of the queries' FIELD.")
@click.option("--code", is_flag=True, help="The folders have the code format.")
@click.option(
    "--projects", metavar="DIR", type=_FOLDER, help="Folder of the projects' sources. Default: DIR/projects."
)
@click.option("--ablation", is_flag=True, help="With --code: measure the recipe without each of its parts.")
@click.option(
    "--limit-queries", metavar="N", type=click.IntRange(min=1), help="Use only the first N queries."
)
@click.option(
    "--per-query", metavar="FILE", type=_FILE, help="Write the figures of each query as JSON lines."
)
@click.option(
    "--compare", metavar="SYSTEM", type=TEXT, help="Compare every system with this one, query by query."
)
@click.option(
    "--against",
    metavar="FILE",
    type=_FILE,
    help="Compare with an earlier run, whose --per-query file this is.",
)
@click.option(
    "--metric", type=TEXT, default="nDCG@10", show_default=True, help="Metric to compare and to plot."
)
@click.option("--plot", metavar="FILE", type=_FILE, help="Write the metric with its intervals as SVG.")
@click.option(
    "--ranker",
    "rankers",
    metavar="FILE",
    type=_FILE,
    multiple=True,
    help="A ranker that a measured recipe names, as 'sennit learn --output' wrote it; repeatable.",
)
@click.option("--cache", metavar="DIR", type=_FOLDER, help="Keep the databases there for the next run.")
@click.option(
    "--write", metavar="FILE", type=_FILE, help="Write the tables between the markers of this page."
)
@common_options
@pass_session
def eval_(
    session: Session,
    folders: tuple[Path, ...],
    recipes: tuple[str, ...],
    models: tuple[str, ...],
    scopes: tuple[str, ...],
    now: str | None,
    category: str | None,
    code: bool,
    projects: Path | None,
    ablation: bool,
    limit_queries: int | None,
    per_query: Path | None,
    compare: str | None,
    against: Path | None,
    metric: str,
    plot: Path | None,
    rankers: tuple[Path, ...],
    cache: Path | None,
    write: Path | None,
) -> None:
    """Measure search quality and speed on BEIR-style folders.

    \b
    Example:
      sennit eval data/scifact --recipe default --model static

    A folder has corpus.jsonl, queries.jsonl and qrels.tsv. It is indexed into a temporary database. The report has
    nDCG@10, MRR@10, R@5, R@10, R@100 and the median milliseconds of a search, for each source alone, for RRF and
    for the recipe.

    With --compare or --against, it also reports the mean difference with its confidence interval, p-values of the
    paired randomisation test and t-test, corrected for several comparisons, and the queries that got worse, with why.

    With --ranker, a recipe with the stage learned is measured with and without its ranker.

    With --code, a folder has annotations/PROJECT.json: questions and the files that answer them. The report has a
    row for each project and one for all.
    """
    from sennit.evaluation.clock import parse_clock
    from sennit.evaluation.comparison import (
        check_metric,
        compare_systems,
        compare_with_run,
        read_earlier_run,
    )
    from sennit.evaluation.datasets import read_collection
    from sennit.evaluation.report import degraded_warnings, measurement_to_dict
    from sennit.evaluation.run import EvaluationOptions, evaluate, plan_evaluation
    from sennit.ranking.features import FEATURE_NAMES
    from sennit.ranking.ranker import ranker_from_json

    # Everything is checked before the first folder is read: a wrong option must not cost the time of a run.
    check_metric(metric)
    _check_outputs(per_query, plot, page=write)
    settings = load_settings()
    options = EvaluationOptions(
        models=models,
        recipes=recipes,
        max_queries=limit_queries,
        now=None if now is None else parse_clock(now),
        baseline=compare,
        explain=compare is not None or against is not None,
        rankers=[ranker_from_json(read_ranker(file), FEATURE_NAMES) for file in rankers],
        cache_dir=cache,
    )
    earlier = None if against is None else read_earlier_run(against, metric)
    if code:
        if rankers:
            raise InvalidInput("--ranker is not for --code: a ranker is learned from folders without it.")
        from sennit.evaluation.code import evaluate_code, plan_code_evaluation, read_code_collections

        evaluate = partial(evaluate_code, ablation=ablation)
        plan = plan_code_evaluation(options, settings, ablation=ablation)
        collections = [one for folder in folders for one in read_code_collections(folder, projects)]
    else:
        _check_code_options(projects, ablation=ablation)
        plan = plan_evaluation(options, settings)
        collections = [read_collection(folder) for folder in folders]
    names = [collection.name for collection in collections]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InvalidInput(f"Two folders are called {duplicate!r}; the report cannot distinguish them.")
    for collection in collections:
        for warning in collection.warnings:
            output.write_warning(sanitize_for_terminal(warning))
    _check_category(category, collections)
    if code:
        category = category or "category"
    if earlier is not None and not plan.has_any_of(names, earlier):
        raise InvalidInput(f"{against} has no system, model and collection of this run")
    options = replace(options, scopes=_parse_scopes(scopes, collections))

    def show_progress(label: str) -> AbstractContextManager[output.ProgressCallback]:
        return output.progress_bar(session, label)

    measured = evaluate(collections, options, settings, show_progress, plan=plan)
    for text in degraded_warnings(measured):
        output.write_warning(sanitize_for_terminal(text))
    if per_query is not None:
        _write_per_query(per_query, measured)
    if write is not None:
        from sennit.evaluation.quality import write_tables

        write_tables(write, measured)
    comparisons = compare_systems(measured, compare, metric) if compare is not None else []
    comparisons += compare_with_run(measured, earlier, metric) if earlier is not None else []
    if plot is not None:
        _plot(plot, measured, comparisons, metric)
    if session.json:
        warnings = [warning for collection in collections for warning in collection.warnings]
        output.write_json(
            {
                "results": [measurement_to_dict(one, category) for one in measured],
                **({"comparisons": [one.to_dict() for one in comparisons]} if comparisons else {}),
                "warnings": warnings,
            }
        )
    else:
        _show(measured, category, code=code)
        _show_comparisons(comparisons)


def _check_code_options(projects: Path | None, *, ablation: bool) -> None:
    if projects is not None or ablation:
        raise InvalidInput("--projects and --ablation need --code.")


def _check_outputs(*files: Path | None, page: Path | None) -> None:
    """Raise InvalidInput if a file cannot be written where it should be, or a page has no place for the tables."""
    for file in filter(None, files):
        if not file.parent.is_dir():
            raise InvalidInput(f"{file} cannot be written: there is no folder {file.parent}.")
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise InvalidInput(f"{file} cannot be written: permission denied.")
    if page is not None:
        from sennit.evaluation.quality import read_page

        read_page(page)


def _check_category(category: str | None, collections: Sequence[Collection]) -> None:
    """Raise InvalidInput if no query has the field."""
    fields = {name for collection in collections for query in collection.queries for name in query.metadata}
    if category is not None and category not in fields:
        raise InvalidInput(
            f"--category {category}: no query has this field; they have: {', '.join(sorted(fields)) or 'none'}."
        )


def _parse_scopes(options: Sequence[str], collections: Sequence[Collection]) -> dict[str, str]:
    """Return the scope field of each collection: as given, or the default of a known collection."""
    from sennit.evaluation.quality import KNOWN_SCOPES

    names = [collection.name for collection in collections]
    out = {name: KNOWN_SCOPES[name] for name in names if name in KNOWN_SCOPES}
    for text in options:
        name, equals, field = text.rpartition("=")
        if not field or (equals and name not in names):
            raise InvalidInput(
                f"--scope {text}: give FIELD, or NAME=FIELD with one of these folders: {', '.join(names)}."
            )
        out.update({name: field} if equals else dict.fromkeys(names, field))
    return out


def _write_per_query(file: Path, measured: Sequence[Measurement]) -> None:
    from sennit.evaluation.report import query_result_dicts

    with file.open("w", encoding="utf-8") as stream:
        for value in query_result_dicts(measured):
            stream.write(json.dumps(value, ensure_ascii=False) + "\n")


def _show(measured: Sequence[Measurement], category: str | None, *, code: bool) -> None:
    from sennit.evaluation.report import FIRST_NUMERIC_COLUMN, HEADERS, table_rows

    if code:
        from sennit.evaluation.code import code_table_rows

        rows = code_table_rows(measured, category or "category")
    else:
        rows = table_rows(measured, category)
    output.write_table(HEADERS, rows, right=range(FIRST_NUMERIC_COLUMN, len(HEADERS)))


def _plot(
    file: Path, measured: Sequence[Measurement], comparisons: Sequence[Comparison], metric: str
) -> None:
    from sennit.evaluation.plots import interval_svg
    from sennit.evaluation.report import interval_rows

    if comparisons:
        svg = interval_svg(f"Difference in {metric}", [one.to_row() for one in comparisons], 0.0)
    else:
        svg = interval_svg(metric, interval_rows(measured, metric))
    file.write_text(svg, encoding="utf-8")


def _show_comparisons(comparisons: Sequence[Comparison]) -> None:
    from sennit.evaluation.plots import interval_text

    if not comparisons:
        return
    output.write_line()
    output.write_table(
        ("collection", "comparison", "difference", "p", "p (t)", "p (Holm)", "better", "equal", "worse"),
        [
            (
                one.collection,
                f"{one.system} - {one.baseline}, {one.metric}",
                f"{one.test.difference:+.4f}",
                f"{one.test.p_randomisation:.4f}",
                f"{one.test.p_t:.4f}",
                f"{one.p_corrected:.4f}",
                *(f"{count:,}" for count in (one.test.better, one.test.equal, one.test.worse)),
            )
            for one in comparisons
        ],
        right=range(2, 9),
    )
    output.write_line()
    for line in interval_text([one.to_row() for one in comparisons], 0.0):
        output.write_line(sanitize_for_terminal(line))
    for one in comparisons:
        if one.worse:
            output.write_line(
                f"\n{output.one_line(one.system)} is worse than {output.one_line(one.baseline)} for:"
            )
        for query in one.worse:
            figures = f"{query.before:.3f} → {query.after:.3f}"
            output.write_line(f"  {figures}  {output.truncate(output.one_line(query.text), 80)}")
            for moved in query.moved:
                place = "not found" if moved.after is None else f"rank {moved.after}"
                output.write_line(
                    f"    {output.one_line(f'{moved.id}: rank {moved.before} → {place}; {moved.reason}')}"
                )
