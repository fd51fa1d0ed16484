"""Where a ranker learns from: labelled collections, the feedback of a database, or a file in SVMlight form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Final

import numpy as np

import sennit
from sennit.engine.search_request import SearchRequest
from sennit.errors import InvalidInput, NotFound, SennitError
from sennit.evaluation.datasets import Collection
from sennit.evaluation.feedback_formats import from_svmlight, grades
from sennit.evaluation.learning import OWN_FEATURES, FeatureSet, LabelledQuery, discounted
from sennit.evaluation.position_bias import ExaminationCurve, Impression, estimate_examination
from sennit.evaluation.run import ProgressUpdate
from sennit.feedback import POSITIVE_ACTIONS, LoggedQuery
from sennit.privacy import Caller
from sennit.ranking.features import FEATURE_NAMES, FEATURES_VERSION, trace_features
from sennit.ranking.learned import RANKED_CANDIDATES, Learned
from sennit.ranking.ranker import MAX_FEATURES, RankerScope, Training
from sennit.ranking.stages import Floats, Stage
from sennit.recipes import Recipe, digest_recipe
from sennit.repositories.experiments import normalise_query
from sennit.repositories.feedback import FeedbackOwner, QueryFeedback
from sennit.stores.contract import BM25

FEEDBACK: Final = "feedback"


def base_recipe(recipe: Recipe) -> Recipe:
    """Return the part of a recipe whose candidates a ranker orders: that before the cut and before a ranker."""
    stages: tuple[Stage, ...] = (*recipe.list_stages, *recipe.ranking_stages)
    return replace(recipe, stages=tuple(takewhile(lambda stage: not isinstance(stage, Learned), stages)))


def describe_training(
    db: sennit.Database,
    recipe: Recipe,
    data: str,
    queries: int,
    scope: RankerScope,
    curve: ExaminationCurve | None,
) -> Training:
    """Return what a ranker for this recipe of this database is trained on."""
    trace = db.search("sennit", recipe=recipe, limit=1, explain=True).trace
    if trace is None:
        raise ValueError("an explained search has a trace")
    model = trace.state["model"]
    return Training(
        recipe=recipe.name,
        recipe_digest=digest_recipe(recipe, BM25(**trace.recipe["bm25"])),
        model=None if model is None else str(model),
        contract=int(str(trace.state["contract"])),
        data=data,
        queries=queries,
        scope=scope,
        examination={} if curve is None else curve.to_dict(),
    )


# Labelled collections


def label_collection(
    db: sennit.Database,
    collection: Collection,
    recipe: Recipe,
    scope: str | None = None,
    update: ProgressUpdate = lambda _done, _total: None,
) -> list[LabelledQuery]:
    """Search each query of a collection, which the database holds, and label its candidates by the judgements."""
    out = []
    for done, query in enumerate(collection.queries, 1):
        filters = None if scope is None else {f"metadata.{scope}": query.metadata[scope]}
        ids, features = _search(db, SearchRequest(query.text, recipe=recipe, filters=filters))
        judged = collection.judgements[query.id]
        out.append(_graded(normalise_query(query.text), collection.name, ids, features, judged))
        update(done, len(collection.queries))
    return out


def _search(db: sennit.Database, request: SearchRequest) -> tuple[list[str], Floats]:
    """Return the ids and features of the candidates that a ranker would order, in the recipe's order."""
    recipe = request.recipe
    highest = recipe.max_limit if isinstance(recipe, Recipe) else RANKED_CANDIDATES
    result = db.search(replace(request, limit=min(RANKED_CANDIDATES, highest), explain=True))
    rows = [] if result.trace is None else trace_features(result.trace, result.hits, request.now)
    return [hit.id for hit in result], np.array(rows).reshape(len(rows), len(FEATURE_NAMES))


def _graded(
    group: str, name: str, ids: Sequence[str], features: Floats, judged: Mapping[str, int]
) -> LabelledQuery:
    best = np.array(sorted((max(grade, 0) for grade in judged.values()), reverse=True), np.float64)
    gains = np.array([max(judged.get(one, 0), 0) for one in ids], np.float64)
    return LabelledQuery(group, name, features, gains, discounted(best))


# Feedback


def label_feedback(
    db: sennit.Database,
    feedback: Iterable[QueryFeedback],
    recipe: Recipe,
    update: ProgressUpdate = lambda _done, _total: None,
) -> tuple[list[LabelledQuery], ExaminationCurve]:
    """Label what was shown by grades where a person gave some, and else by clicks, corrected for their positions.

    Features are those that were recorded. Where there are none, the query is searched again.
    """
    found = [one for one in feedback if one.events and one.query.shown]
    curve = estimate_examination(
        Impression(normalise_query(one.query.query), one.query.object_ids, chosen_positions(one))
        for one in found
    )
    out = []
    for done, one in enumerate(found, 1):
        judged = {event.object_id for event in one.events if event.grade is not None}
        chosen = chosen_positions(one)
        if judged or chosen:
            ids, features = _features_of(db, one, recipe)
            group = normalise_query(one.query.query)
            if judged:
                labelled = _graded(group, FEEDBACK, ids, features, grades(one))
            else:
                weights = {one.query.object_ids[at]: curve.weight(at) for at in chosen}
                gains = np.array([weights.get(name, 0.0) for name in ids])
                ideal = discounted(-np.sort(-gains))
                labelled = LabelledQuery(group, FEEDBACK, features, gains, ideal, by_clicks=True)
            if labelled.gains.any():
                out.append(labelled)
        update(done, len(found))
    return out, curve


def chosen_positions(one: QueryFeedback) -> frozenset[int]:
    """Return the positions from 0 of the results that helped."""
    chosen = {event.object_id for event in one.events if event.action_name in POSITIVE_ACTIONS}
    return frozenset(at for at, name in enumerate(one.query.object_ids) if name in chosen)


def _features_of(db: sennit.Database, one: QueryFeedback, recipe: Recipe) -> tuple[list[str], Floats]:
    """Return what was shown with its features, in the recipe's order."""
    query = one.query
    if _has_features(query, recipe):
        rows = np.array([hit.features for hit in query.shown])
        return list(query.object_ids), rows
    # As the one who asked: what others may see has no part in the ranks and statistics that a ranker learns from.
    request = SearchRequest(query.query, recipe=recipe, caller=one.owner.caller, now=query.timestamp)
    try:
        ids, features = _search(db, request)
    except SennitError as error:
        raise InvalidInput(
            f"The recorded query {query.query_id!r} cannot be searched again: {error}"
        ) from error
    shown = frozenset(query.object_ids)
    kept = [at for at, name in enumerate(ids) if name in shown]
    return [ids[at] for at in kept], features[kept]


def _has_features(query: LoggedQuery, recipe: Recipe) -> bool:
    """Whether the recorded features are those of the recipe. An experiment shows results of two."""
    return (
        query.recipe == recipe.name
        and not query.experiment
        and query.features_version == FEATURES_VERSION
        and all(len(hit.features) == len(FEATURE_NAMES) for hit in query.shown)
    )


def select_feedback(
    db: sennit.Database, *, tenant: str | None = None, caller: str | None = None, everything: bool = False
) -> tuple[tuple[QueryFeedback, ...], RankerScope]:
    """Return feedback and whose it is: the default caller's, a named caller's, a tenant's, or everyone's."""
    if everything:
        if tenant is not None or caller is not None:
            raise InvalidInput("everything is the feedback of all callers and tenants; give neither of them")
        return db.feedback.read(everything=True), RankerScope()
    if tenant is None and caller is None:
        own = db.feedback.read()
        owner = FeedbackOwner.of(db.caller)
        return own, RankerScope(owner.tenant, owner.identity)
    of_tenant = tenant if tenant is not None else db.caller.tenant
    found = db.feedback.read(everything=True, caller=Caller(tenant=of_tenant, everything=True))
    if caller is None:
        return found, RankerScope(of_tenant)
    own = tuple(one for one in found if one.query.user_id == caller)
    identities = {one.owner.identity for one in own}
    if len(identities) != 1:
        raise NotFound(
            f"There is no feedback of a caller {caller!r}"
            if not identities
            else f"{len(identities)} callers are called {caller!r}, with different rights; a ranker serves only one"
        )
    return own, RankerScope(of_tenant, identities.pop())


# SVMlight


def read_svmlight(file: Path) -> tuple[list[LabelledQuery], FeatureSet]:
    """Read labelled queries with features. A file without qid needs FILE.query, with the rows of each query.

    `sennit feedback export --format svmlight` writes such files; the features are then those of sennit.
    """
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {file}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is not UTF-8 text (byte {error.start}).") from error
    header = f"# sennit features {FEATURES_VERSION}: {' '.join(FEATURE_NAMES)}"
    is_own = bool(lines) and lines[0].strip() == header
    sizes = file.with_name(f"{file.name}.query")
    rows = list(from_svmlight(_with_queries(lines, sizes) if sizes.is_file() else lines))
    count = max((max(row.features, default=0) for row in rows), default=0)
    count = len(FEATURE_NAMES) if is_own else count
    if not 1 <= count <= MAX_FEATURES:
        raise InvalidInput(f"{file} has {count:,} features; a ranker takes from 1 to {MAX_FEATURES:,}")
    # A public collection leaves out features that are 0; sennit leaves out what is unknown.
    missing = np.nan if is_own else 0.0
    by_query: dict[str, list[int]] = {}
    matrix = np.full((len(rows), count), missing)
    for at, row in enumerate(rows):
        by_query.setdefault(row.query, []).append(at)
        for number, value in row.features.items():
            matrix[at, number - 1] = value
    gains = np.array([max(row.grade, 0.0) for row in rows])
    features = OWN_FEATURES if is_own else FeatureSet(tuple(f"feature_{at}" for at in range(1, count + 1)))
    queries = [
        LabelledQuery(name, file.name, matrix[own], gains[own], discounted(-np.sort(-gains[own])))
        for name, own in by_query.items()
    ]
    return queries, features


def _with_queries(lines: Sequence[str], sizes: Path) -> list[str]:
    """Return lines without qid with the number of their query, from the file of sizes that LightGBM's examples have."""
    try:
        counts = [int(line) for line in sizes.read_text(encoding="utf-8").split()]
    except ValueError as error:
        raise InvalidInput(f"{sizes} must have one whole number in each line ({error})") from error
    rows = [line for line in lines if line.strip() and not line.startswith("#")]
    if min(counts, default=0) < 1 or sum(counts) != len(rows):
        raise InvalidInput(f"{sizes} counts {sum(counts):,} rows, and the file has {len(rows):,}")
    numbers = [number for number, count in enumerate(counts, 1) for _ in range(count)]
    out = []
    for number, row in zip(numbers, rows, strict=True):
        grade, _, rest = row.partition(" ")
        out.append(f"{grade} qid:{number} {rest}")
    return out
