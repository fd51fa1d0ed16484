"""`sennit learn`: train a ranker on judgements or feedback, and refuse it if it is not better than the recipe."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import NOT_CONFIRMED, OK
from sennit.apps.cli.inventory import unreadable_ranker
from sennit.apps.cli.options import read_ranker
from sennit.apps.cli.session import (
    OUTPUT_FILE,
    TEXT,
    Command,
    Session,
    common_options,
    load_settings,
    pass_session,
)
from sennit.apps.cli.suggestions import CommandGroup
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sennit.engine import Database
    from sennit.evaluation.learning import FeatureSet, LabelledQuery, LearningReport
    from sennit.ranking.ranker import Ranker, Training
    from sennit.recipes import Recipe
    from sennit.repositories.rankers import UnreadableRanker

_FILE = click.Path(path_type=Path, dir_okay=False)
_SHOWN_FEATURES = 8


class _Learning(NamedTuple):
    """What to learn from."""

    queries: Sequence[LabelledQuery]
    features: FeatureSet
    training: Training


@click.command()
@click.argument("folders", metavar="[DIR]...", type=click.Path(path_type=Path, file_okay=False), nargs=-1)
@click.option("--svmlight", metavar="FILE", type=_FILE, help="Learn from a file with features and grades.")
@click.option("-r", "--recipe", type=TEXT, help="Recipe to improve. Default: from the settings.")
@click.option("--name", type=TEXT, default="learned", show_default=True, help="Name of the ranker.")
@click.option("-m", "--model", type=TEXT, default="", help="With DIR: static, minilm or PROVIDER/MODEL.")
@click.option(
    "--scope",
    metavar="FIELD",
    type=TEXT,
    help="With DIR: search only records whose FIELD equals the query's.",
)
@click.option("--caller", metavar="NAME", type=TEXT, help="Only the feedback of this caller.")
@click.option("--tenant", metavar="NAME", type=TEXT, help="The feedback of all callers of this tenant.")
@click.option("--everything", is_flag=True, help="The feedback of all callers and tenants.")
@click.option(
    "-o", "--output", "target", metavar="FILE", type=OUTPUT_FILE, help="Write the ranker to FILE as JSON."
)
@click.option("--dry-run", is_flag=True, help="Store nothing.")
@common_options
@pass_session
def learn(
    session: Session,
    folders: tuple[Path, ...],
    svmlight: Path | None,
    recipe: str | None,
    name: str,
    model: str,
    scope: str | None,
    caller: str | None,
    tenant: str | None,
    everything: bool,
    target: Path | None,
    dry_run: bool,
) -> int:
    """Train a ranker, which orders the results of a recipe better than the recipe does.

    \b
    Example:
      sennit learn

    It learns from the feedback of the database: your own, or that of --caller, --tenant or --everything. A DIR has
    corpus.jsonl, queries.jsonl and qrels.tsv; --svmlight is a file with features. Clicks count by their position: one far
    down says more than one at the top.

    The ranker is compared with the recipe on queries that it was not trained on. If it is not significantly better, it
    is refused, and the exit code is 8. Otherwise it is stored in the database, or with --output in FILE, which 'sennit
    rankers add' stores. It needs the extra sennit[learn].
    """
    from sennit.evaluation.learning import learn_trees, make_ranker
    from sennit.ranking.ranker import check_ranker_name, check_usable

    check_ranker_name(name)
    by_feedback = bool(caller is not None or tenant is not None or everything)
    if sum((bool(folders), svmlight is not None, by_feedback)) > 1:
        raise InvalidInput("Give folders, --svmlight, or one of --caller, --tenant and --everything.")
    if not folders and (model or scope):
        raise InvalidInput("--model and --scope need DIR; a database is searched as it is.")
    with ExitStack() as stack:
        stored_in = (
            None if dry_run or target is not None else stack.enter_context(session.open(background=False))
        )
        if folders:
            learning = _from_folders(session, folders, recipe, model, scope)
        elif svmlight is not None:
            learning = _from_svmlight(svmlight)
        else:
            db = stored_in or stack.enter_context(session.open(background=False))
            learning = _from_feedback(session, db, recipe, caller, tenant, everything=everything)
        if stored_in is not None:
            check_usable(learning.training)
        with output.progress_bar(session, "Learning") as update:
            trees, report = learn_trees(learning.queries, learning.features, update)
        ranker = make_ranker(name, trees, learning.features, learning.training, report)
        kept = not report.refusal and not dry_run
        if kept and stored_in is not None:
            stored_in.rankers.add(ranker)
        if kept and target is not None:
            target.write_text(ranker.to_json(), encoding="utf-8")
    if session.json:
        output.write_json(
            {
                "name": name,
                "refused": report.refusal or None,
                "stored": kept,
                "trees": len(trees.trees),
                "training": learning.training.to_dict(),
                **report.to_dict(),
            }
        )
    else:
        _show(session, ranker, report, target, kept=kept)
    return NOT_CONFIRMED if report.refusal else OK


def _find_recipe(db: Database, name: str | None) -> Recipe:
    from sennit.evaluation.learning_data import base_recipe
    from sennit.recipes import find_recipe

    return base_recipe(find_recipe(name or db.settings.search.recipe, db.recipes))


def _from_folders(
    session: Session, folders: Sequence[Path], recipe: str | None, model: str, scope: str | None
) -> _Learning:
    import sennit
    from sennit.evaluation.datasets import read_collection
    from sennit.evaluation.learning import OWN_FEATURES
    from sennit.evaluation.learning_data import describe_training, label_collection
    from sennit.evaluation.quality import KNOWN_SCOPES
    from sennit.evaluation.run import check_scope, database_folder, index_collection, with_model
    from sennit.ranking.ranker import EVERYONE

    settings = with_model(load_settings(), model)
    queries: list[LabelledQuery] = []
    training = None
    for collection in [read_collection(folder) for folder in folders]:
        field = scope or KNOWN_SCOPES.get(collection.name)
        check_scope(collection, field)
        with database_folder(collection, settings, None) as folder:
            index_collection(
                collection,
                settings,
                folder,
                lambda label: output.progress_bar(session, label),
                collection.name,
            )
            with (
                sennit.open(folder, settings=settings) as db,
                output.progress_bar(session, f"Searching {collection.name}") as update,
            ):
                chosen = _find_recipe(db, recipe)
                queries += label_collection(db, collection, chosen, field, update)
                data = "judgements of " + ", ".join(folder.name for folder in folders)
                training = describe_training(db, chosen, data, len(queries), EVERYONE, None)
    if training is None:
        raise InvalidInput("Give at least one folder.")
    return _Learning(queries, OWN_FEATURES, training)


def _from_feedback(
    session: Session,
    db: Database,
    recipe: str | None,
    caller: str | None,
    tenant: str | None,
    *,
    everything: bool,
) -> _Learning:
    from sennit.evaluation.learning import OWN_FEATURES
    from sennit.evaluation.learning_data import describe_training, label_feedback, select_feedback

    feedback, scope = select_feedback(db, tenant=tenant, caller=caller, everything=everything)
    chosen = _find_recipe(db, recipe)
    with output.progress_bar(session, "Reading feedback") as update:
        queries, curve = label_feedback(db, feedback, chosen, update)
    training = describe_training(db, chosen, f"feedback of {scope.about}", len(queries), scope, curve)
    return _Learning(queries, OWN_FEATURES, training)


def _from_svmlight(file: Path) -> _Learning:
    from sennit.evaluation.learning_data import read_svmlight
    from sennit.pipeline import CONTRACT_VERSION
    from sennit.ranking.ranker import Training

    queries, features = read_svmlight(file)
    # The file does not say which recipe and model its features come from, so no search uses the ranker.
    training = Training(
        recipe="",
        recipe_digest="",
        model=None,
        contract=CONTRACT_VERSION,
        data=f"the file {file.name}",
        queries=len(queries),
    )
    return _Learning(queries, features, training)


def _show(
    session: Session, ranker: Ranker, report: LearningReport, target: Path | None, *, kept: bool
) -> None:
    from sennit.evaluation.learning import METRIC
    from sennit.evaluation.plots import IntervalRow, interval_text

    training = ranker.training
    output.write_line(
        output.one_line(f"Learned from {training.data}: {output.pluralize(training.queries, 'query')}")
    )
    if training.examination:
        output.write_line(output.one_line(f"Position bias: {training.examination['method']}"))
    compared = (*report.collections, report.whole) if len(report.collections) > 1 else (report.whole,)
    output.write_table(
        ("collection", "queries", report.baseline, "learned", "difference", "p", "better", "equal", "worse"),
        [
            (
                one.collection,
                f"{one.test.queries:,}",
                f"{one.recipe:.4f}",
                f"{one.learned:.4f}",
                f"{one.test.difference:+.4f}",
                f"{one.p_corrected:.4f}",
                *(f"{count:,}" for count in (one.test.better, one.test.equal, one.test.worse)),
            )
            for one in compared
        ],
        right=range(1, 9),
    )
    rows = [
        IntervalRow(
            f"{METRIC}, {one.collection}", one.test.interval.low, one.test.difference, one.test.interval.high
        )
        for one in compared
    ]
    for line in interval_text(rows, 0.0):
        output.write_line(output.one_line(line))
    shares = list(report.importance.items())[:_SHOWN_FEATURES]
    if shares:
        output.write_line(
            "Features, by the mean size of their share: " + ", ".join(f"{n} {v:.3f}" for n, v in shares)
        )
    if report.refusal:
        output.write_line(output.one_line(f"Refused: {report.refusal}. Nothing was stored."))
    elif not kept:
        output.write_line("The ranker is significantly better. Nothing was stored.")
    elif target is not None:
        output.write_note(session, f"Wrote the ranker to {output.one_line(str(target))}.")
    else:
        output.write_note(
            session,
            f"Stored the ranker {output.one_line(ranker.name)}, for the searches of {training.scope.about}. To use it, "
            f'put {{ stage = "learned", ranker = "{output.one_line(ranker.name)}" }} into the stages of a recipe.',
        )


@click.group(cls=CommandGroup)
@common_options
def rankers() -> None:
    """List, store, write and remove learned rankers.

    \b
    Example:
      sennit rankers list
    """


@rankers.command("list")
@common_options
@pass_session
def list_(session: Session) -> None:
    """List the rankers of the database, and whose feedback they are made of.

    \b
    Example:
      sennit rankers list
    """
    with session.open(background=False) as db:
        found = db.rankers.all()
        unreadable = db.rankers.unreadable()
    if session.json:
        output.write_json(
            {
                "rankers": [one.summary() for one in found],
                "unreadable": [one.summary() for one in unreadable],
            }
        )
        return
    for one in unreadable:
        output.write_warning(unreadable_ranker(one.name, one.reason))
    if not (found or unreadable):
        output.write_note(session, "There are no rankers; 'sennit learn' trains one.")
    if not found:
        return
    output.write_table(
        ("ranker", "recipe", "learned from", "ranks for", "queries", "difference", "created"),
        [
            (
                one.name,
                one.training.recipe,
                one.training.data,
                one.training.scope.about,
                f"{one.training.queries:,}",
                f"{one.difference:+.4f}",
                one.created[:10],
            )
            for one in found
        ],
        right=(4, 5),
    )


@rankers.command()
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path))
@common_options
@pass_session
def add(session: Session, source: Path) -> None:
    """Store the ranker in FILE, which 'sennit learn --output' wrote.

    \b
    Example:
      sennit rankers add ranker.json
    """
    text = read_ranker(source)
    with session.open(create=True, background=False) as db:
        ranker = db.rankers.add(text)
    if session.json:
        output.write_json(ranker.summary())
    else:
        output.write_note(session, f"Stored the ranker {output.one_line(ranker.name)}.")


def _whose(command: Command) -> Command:
    """Add the options that tell rankers of one name apart."""
    for option in (
        click.option("--everything", is_flag=True, help="The one that ranks for everyone."),
        click.option("--tenant", metavar="NAME", type=TEXT, help="The one for all callers of this tenant."),
        click.option(
            "--caller", metavar="NAME", type=TEXT, help="The one of this caller; '' for the default caller."
        ),
    ):
        command = option(command)
    return command


def _one(
    db: Database, name: str, *, caller: str | None, tenant: str | None, everything: bool
) -> Ranker | UnreadableRanker:
    """The ranker of a name; where there are several, the options must leave one."""
    from sennit.errors import NotFound
    from sennit.repositories.feedback import FeedbackOwner

    if everything and (caller is not None or tenant is not None):
        raise InvalidInput("--everything is the ranker for everyone; give neither --caller nor --tenant.")
    every: list[Ranker | UnreadableRanker] = [*db.rankers.all(), *db.rankers.unreadable()]
    named = [one for one in every if one.name == name]
    if not named:
        known = ", ".join(sorted({one.name for one in every})) or "none"
        raise NotFound(f"There is no ranker {name!r}. Rankers: {known}")

    def is_meant(one: Ranker | UnreadableRanker) -> bool:
        scope = one.scope
        if everything:
            return scope.tenant is None
        if tenant is not None and scope.tenant != tenant:
            return False
        if caller is None:
            return tenant is None or scope.caller is None
        return scope.caller is not None and FeedbackOwner(scope.tenant or "", scope.caller).name == caller

    found = [one for one in named if is_meant(one)]
    about = ", ".join(one.scope.about for one in named)
    if not found:
        raise NotFound(f"There is no such ranker {name!r}; those of the name rank for: {about}.")
    if len(found) > 1:
        raise InvalidInput(
            f"There are {len(found)} rankers {name!r}, which rank for: {about}. Choose one with --everything, "
            "--tenant or --caller."
        )
    return found[0]


@rankers.command()
@click.argument("name", type=TEXT)
@click.argument("target", metavar="FILE", type=_FILE)
@_whose
@common_options
@pass_session
def export(
    session: Session, name: str, target: Path, caller: str | None, tenant: str | None, everything: bool
) -> None:
    """Write the ranker NAME to FILE.

    \b
    Example:
      sennit rankers export learned ranker.json
    """
    from sennit.ranking.ranker import Ranker

    with session.open(background=False) as db:
        ranker = _one(db, name, caller=caller, tenant=tenant, everything=everything)
    if not isinstance(ranker, Ranker):
        raise InvalidInput(unreadable_ranker(ranker.name, ranker.reason))
    target.write_text(ranker.to_json(), encoding="utf-8")
    if session.json:
        output.write_json({**ranker.summary(), "file": str(target)})
    else:
        output.write_note(session, f"Wrote the ranker to {output.one_line(str(target))}.")


@rankers.command()
@click.argument("name", type=TEXT)
@_whose
@common_options
@pass_session
def remove(session: Session, name: str, caller: str | None, tenant: str | None, everything: bool) -> None:
    """Remove the ranker NAME. Recipes that use it rank without it, and say so.

    \b
    Example:
      sennit rankers remove learned
    """
    with session.open(background=False) as db:
        ranker = _one(db, name, caller=caller, tenant=tenant, everything=everything)
        db.rankers.remove(name, ranker.scope)
    if session.json:
        output.write_json(ranker.summary())
    else:
        output.write_note(session, f"Removed the ranker {output.one_line(name)} of {ranker.scope.about}.")
