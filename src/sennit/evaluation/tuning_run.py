"""Runs a tuning on databases: the sources of each query once, then as many rankings of their candidates as it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

import sennit
from sennit.engine.search_request import SearchRequest
from sennit.errors import SourceError
from sennit.evaluation.clock import Clock, ClockedCollection, set_clock
from sennit.evaluation.datasets import Collection
from sennit.evaluation.run import (
    Progress,
    check_scope,
    database_folder,
    index_collection,
    no_progress,
    with_model,
)
from sennit.evaluation.search_space import CANDIDATE_FACTORS, scale_candidates
from sennit.evaluation.tuning import ALPHA, DEPTH, OUTER_FOLDS, TuningReport, Values, ndcg, tune
from sennit.evaluation.tuning_queries import QueriesFrom
from sennit.pipeline import CONTRACT_VERSION, Replay
from sennit.privacy import Caller
from sennit.recipes import Recipe, find_recipe
from sennit.records import Json
from sennit.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions:
    """What to tune, and how."""

    recipe: str = ""
    """Empty for the recipe of the settings."""
    model: str = ""
    """`static`, `minilm`, or `provider/model`; empty for that of the settings. For folders only."""
    scopes: Mapping[str, str] = field(default_factory=dict)
    """By collection, a metadata field. A search returns only records whose value equals the query's."""
    folds: int = OUTER_FOLDS
    alpha: float = ALPHA
    queries_from: QueriesFrom = "judgements"
    max_queries: int | None = None
    now: Clock | None = None
    """When the queries of folders ask. None: documents have no time."""
    cache_dir: Path | None = None
    """Where databases of folders are kept for the next run."""
    caller: Caller | None = None
    """Who asks the queries about a database; None for its default caller."""


class _Labelled(NamedTuple):
    """A query of a collection, ready to be ranked."""

    replay: Replay
    grades: Mapping[str, int]
    collection: str


def tune_folders(
    collections: Sequence[Collection],
    options: TuningOptions,
    settings: Settings,
    progress: Progress = no_progress,
) -> TuningReport:
    """Tune a recipe on collections that have documents; each is indexed into a database of its own."""
    chosen = with_model(settings, options.model)
    with ExitStack() as stack:
        pairs = []
        started = datetime.now(UTC)
        for collection in collections:
            clocked = _without_clock(collection)
            if options.now is not None:
                clocked = set_clock(collection, options.now, options.scopes.get(collection.name), started)
            folder = stack.enter_context(database_folder(clocked.collection, chosen, options.cache_dir))
            index_collection(clocked.collection, chosen, folder, progress, collection.name)
            pairs.append((stack.enter_context(sennit.open(folder, settings=chosen)), clocked))
        return _tune(pairs, options, progress)


def _without_clock(collection: Collection) -> ClockedCollection:
    return ClockedCollection(collection, None, {}, None)


def tune_database(
    db: sennit.Database,
    collection: Collection,
    options: TuningOptions = TuningOptions(),  # noqa: B008 - a frozen value
    progress: Progress = no_progress,
) -> TuningReport:
    """Tune a recipe on queries about the records of a database, as the caller of the options sees them."""
    return _tune([(db, _without_clock(collection))], options, progress)


def _tune(
    pairs: Sequence[tuple[sennit.Database, ClockedCollection]], options: TuningOptions, progress: Progress
) -> TuningReport:
    first = pairs[0][0]
    recipe = find_recipe(options.recipe or first.settings.search.recipe, first.recipes)
    with ExitStack() as stack:
        labelled: list[_Labelled] = []
        for db, clocked in pairs:
            labelled += _search(stack, db, clocked, recipe, options, progress)

        def measure(candidate: Recipe) -> Values:
            return np.array([ndcg(one.grades, one.replay.rank(candidate)) for one in labelled])

        with progress("Tuning") as update:
            return tune(
                recipe,
                measure,
                [one.collection for one in labelled],
                folds=options.folds,
                alpha=options.alpha,
                progress=update,
                queries_from=options.queries_from,
                evidence=_evidence(first, [clocked.collection for _, clocked in pairs]),
            )


def _search(
    stack: ExitStack,
    db: sennit.Database,
    clocked: ClockedCollection,
    recipe: Recipe,
    options: TuningOptions,
    progress: Progress,
) -> list[_Labelled]:
    """Run the sources of each query, with as many candidates as any tuned recipe may ask for."""
    collection = clocked.collection
    selected = collection.with_first_queries(options.max_queries)
    scope = options.scopes.get(collection.name)
    check_scope(selected, scope)
    widest = scale_candidates(recipe, max(CANDIDATE_FACTORS))
    requests = [
        SearchRequest(
            query.text,
            recipe=widest,
            limit=min(DEPTH, recipe.max_limit),
            filters=None if scope is None else {f"metadata.{scope}": query.metadata[scope]},
            now=clocked.time_of(query),
            caller=options.caller,
        )
        for query in selected.queries
    ]
    out = []
    replays = stack.enter_context(db.admin.replays(requests))
    with progress(f"Searching {collection.name}") as update:
        for done, (query, replay) in enumerate(zip(selected.queries, replays, strict=True), 1):
            if replay.degraded:
                source, reason = replay.degraded[0]
                raise SourceError(
                    f"The source {source} did not answer for {query.text!r}: {reason}. A recipe tuned without it would "
                    "not fit; repair it, and tune again."
                )
            out.append(_Labelled(replay, collection.judgements[query.id], collection.name))
            update(done, len(requests))
    return out


def _evidence(db: sennit.Database, collections: Sequence[Collection]) -> dict[str, Json]:
    models = db.admin.current_models()
    return {
        "collections": [collection.name for collection in collections],
        "model": models[0].name if models else "none",
        "contract": CONTRACT_VERSION,
        "sennit": sennit.__version__,
        "date": datetime.now(UTC).date().isoformat(),
    }
