"""Runs an evaluation: index each collection once per model, then search every query with every system."""

from __future__ import annotations

import contextlib
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, get_args

import sennit
from sennit.engine.search_request import SearchRequest
from sennit.errors import AmbiguousReference, InvalidInput, NotFound, suggest
from sennit.evaluation.clock import Clock, ClockedCollection, set_clock
from sennit.evaluation.datasets import Collection, Query
from sennit.evaluation.metrics import DEEP_METRIC, MetricValues, compute_metrics, mean_metrics
from sennit.ranking.fusion import RRF, Weighted
from sennit.ranking.learned import Learned
from sennit.ranking.ranker import EVERYONE, Ranker, check_usable
from sennit.recipes import Recipe, find_recipe, load_recipes
from sennit.settings import EmbeddingSettings, Provider, Settings

SHALLOW_LIMIT: Final = 10
"""A typical search. The time, and all metrics of the first ten results, are those of such a search."""

DEEP_LIMIT: Final = 100
"""A second search for R@100, which is not timed."""

EXPLAINED_DOCUMENTS: Final = 3
"""Relevant documents of a query that are explained."""

DEADLINE_SECONDS: Final = 60.0
"""Long enough that no source times out on a busy machine. A timed-out source would lower the metrics."""

WRITE_BATCH_SIZE: Final = 1024

MODEL_ALIASES: Final = {"minilm": "onnx/minilm"}

ProgressUpdate = Callable[[int, int], None]
"""Reports how many of how many steps are done."""

Progress = Callable[[str], AbstractContextManager[ProgressUpdate]]
"""Opens a progress display with a label."""


@contextlib.contextmanager
def no_progress(_label: str) -> Iterator[ProgressUpdate]:
    """A progress display that shows nothing."""
    yield lambda _done, _total: None


@dataclass(frozen=True, slots=True)
class System:
    """What is measured: a recipe, one of its sources alone, or its sources fused by RRF."""

    name: str
    recipe: Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """What to measure. Without models or recipes: those of the settings."""

    models: Sequence[str] = ()
    """`static`, `minilm`, or `provider/model`."""
    recipes: Sequence[str] = ()
    scopes: Mapping[str, str] = field(default_factory=dict)
    """By collection, a metadata field. A search returns only records whose value equals the query's."""
    max_queries: int | None = None
    now: Clock | None = None
    """When the queries ask. None: documents have no time."""
    baseline: str | None = None
    """The system that others are compared with; one that is not measured is refused before anything is indexed."""
    explain: bool = False
    """Whether each query also has the reasons for the ranks of its relevant documents."""
    rankers: Sequence[Ranker] = ()
    """Learned rankers that recipes name; they are stored in the databases for the run."""
    cache_dir: Path | None = None
    """Where databases are kept for the next run. Without it they are temporary."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of one system for one query."""

    query: Query
    metrics: MetricValues
    milliseconds: float
    ranking: tuple[str, ...]
    degraded: str | None = None
    """The sources that failed, and why."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why each relevant document has its rank or is missing, from the trace; empty unless requested."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The results of one system on one collection."""

    collection: str
    documents: int
    scope: str | None
    model: str
    recipe: str
    system: str
    query_results: tuple[QueryResult, ...]

    @property
    def metrics(self) -> dict[str, float]:
        """The mean over all queries."""
        return mean_metrics(result.metrics for result in self.query_results)

    @property
    def milliseconds(self) -> float:
        """The median over all queries."""
        return statistics.median(result.milliseconds for result in self.query_results)

    @property
    def degraded(self) -> list[str]:
        """The reason of each degraded search."""
        return [result.degraded for result in self.query_results if result.degraded is not None]

    def by_category(self, name: str) -> dict[str, tuple[QueryResult, ...]]:
        """The results grouped by a metadata field of the queries, ordered by value. Empty if no query has the field."""
        if not any(name in result.query.metadata for result in self.query_results):
            return {}
        groups: dict[str, list[QueryResult]] = defaultdict(list)
        for result in self.query_results:
            groups[_category(result.query.metadata.get(name))].append(result)
        return {value: tuple(groups[value]) for value in sorted(groups, key=_numbers_first)}


def build_systems(recipe: Recipe) -> list[System]:
    """Each source of a recipe alone, its sources fused by RRF, and the recipe itself, without duplicates.

    A learned ranker fits no other recipe, so the others are without it; so is one more, for the comparison.
    """
    plain = without_rankers(recipe)
    whole = [System(recipe.name, recipe)]
    if plain != recipe:
        whole.insert(0, System(f"{recipe.name} without ranker", plain))
    if len(recipe.sources) == 1:
        return whole
    systems = [
        System(config.name, replace(plain, sources=(config,), fusion=Weighted({config.name: 1.0}, "none")))
        for config in plain.sources
    ]
    systems.append(System("rrf", replace(plain, fusion=RRF(k=60, first_rank=1))))
    if systems[-1].recipe == plain:
        systems.pop()
    return [*systems, *whole]


def without_rankers(recipe: Recipe) -> Recipe:
    """Return a recipe without its learned rankers."""
    return replace(recipe, stages=tuple(one for one in recipe.stages if not isinstance(one, Learned)))


def check_rankers(recipes: Sequence[Recipe], rankers: Sequence[Ranker]) -> None:
    """Raise InvalidInput unless a recipe uses each ranker, and some search could."""
    used = {stage.ranker for recipe in recipes for stage in recipe.stages if isinstance(stage, Learned)}
    for ranker in rankers:
        check_usable(ranker.training)
        if ranker.name not in used:
            raise InvalidInput(
                f"No measured recipe uses the ranker {ranker.name!r}. Name a recipe whose stages have "
                f'{{ stage = "learned", ranker = "{ranker.name}" }}.'
            )


@contextlib.contextmanager
def _stored_rankers(folder: Path, settings: Settings, rankers: Sequence[Ranker]) -> Iterator[None]:
    """Keep rankers in a database for everyone, until the block ends: its queries are asked by no caller in particular."""
    if not rankers:
        yield
        return
    with sennit.open(folder, settings=settings) as db:
        for ranker in rankers:
            db.rankers.add(replace(ranker, training=replace(ranker.training, scope=EVERYONE)))
        try:
            yield
        finally:
            for ranker in rankers:
                db.rankers.remove(ranker.name, EVERYONE)


class EvaluationPlan(NamedTuple):
    """What is measured on each collection: every model, by its label, with every system."""

    models: list[tuple[str, Settings]]
    systems: list[tuple[Recipe, System]]

    def has_any_of(self, collections: Sequence[str], runs: Iterable[tuple[str, str, str]]) -> bool:
        """Return whether a collection, model and system of other runs is measured on one of these collections."""
        models, systems = {label for label, _ in self.models}, {system.name for _, system in self.systems}
        return any(run[0] in collections and run[1] in models and run[2] in systems for run in runs)

    def check_baseline(self, name: str | None) -> None:
        """Raise InvalidInput if no system has this name."""
        names = dict.fromkeys(system.name for _, system in self.systems)
        if name is not None and name not in names:
            raise InvalidInput(
                f"No system is called {name!r}. {suggest(name, names)}Systems: {', '.join(names)}"
            )


def plan_evaluation(
    options: EvaluationOptions, settings: Settings, systems: Callable[[Recipe], list[System]] = build_systems
) -> EvaluationPlan:
    """Return what an evaluation measures; raise for an option that is wrong, before anything is read or indexed."""
    known_recipes = load_recipes(settings)
    recipes = [find_recipe(name, known_recipes) for name in options.recipes or (settings.search.recipe,)]
    check_rankers(recipes, options.rankers)
    models = [
        (model or _model_label(settings), with_model(settings, model)) for model in options.models or ("",)
    ]
    plan = EvaluationPlan(models, [(made, system) for made in recipes for system in systems(made)])
    plan.check_baseline(options.baseline)
    for _, model_settings in models:
        with sennit.open(":memory:", settings=model_settings) as db:
            db.admin.select_model()  # fails here if the model cannot be used, and not after another was measured
    return plan


def evaluate(
    collections: Sequence[Collection],
    options: EvaluationOptions,
    settings: Settings,
    progress: Progress = no_progress,
    systems: Callable[[Recipe], list[System]] = build_systems,
    *,
    plan: EvaluationPlan | None = None,
) -> list[Measurement]:
    """Measure every collection with every model and the systems of every recipe: the `plan`, if it was made already."""
    if plan is None:
        plan = plan_evaluation(options, settings, systems)
    for collection in collections:
        check_scope(collection, options.scopes.get(collection.name))
    out: list[Measurement] = []
    now = datetime.now(UTC)
    clocked = [
        ClockedCollection(collection, None, {}, None)
        if options.now is None
        else set_clock(collection, options.now, options.scopes.get(collection.name), now)
        for collection in collections
    ]
    for model, model_settings in plan.models:
        for one in clocked:
            collection = one.collection
            with database_folder(collection, model_settings, options.cache_dir) as folder:
                index_collection(collection, model_settings, folder, progress, f"{collection.name}, {model}")
                with _stored_rankers(folder, model_settings, options.rankers):
                    for recipe, system in plan.systems:
                        if any(m.system == system.name and _is_of(m, collection, model) for m in out):
                            continue  # a source alone is the same system in every recipe
                        out.append(
                            _measure(one, model_settings, folder, model, recipe, system, options, progress)
                        )
    return out


def parse_model(text: str) -> tuple[Provider, str]:
    """The provider and the model of a name such as `minilm` or `openai/text-embedding-3-small`."""
    provider, _, model = MODEL_ALIASES.get(text, text).partition("/")
    for known in get_args(Provider):
        if known == provider:
            return known, model
    raise InvalidInput(
        f"There is no model {text!r}: give static, minilm, or PROVIDER/MODEL with a provider of "
        f"{', '.join(get_args(Provider))}."
    )


def _is_of(measurement: Measurement, collection: Collection, model: str) -> bool:
    return measurement.collection == collection.name and measurement.model == model


def _model_label(settings: Settings) -> str:
    embedding = settings.embedding
    return f"{embedding.provider}/{embedding.model}" if embedding.model else embedding.provider


def with_model(settings: Settings, model: str) -> Settings:
    """The settings with another model. URL and credentials are kept only for the same provider."""
    embedding = settings.embedding
    if model:
        provider, name = parse_model(model)
        if provider == embedding.provider:
            embedding = replace(embedding, model=name)
        else:
            embedding = EmbeddingSettings(provider=provider, model=name)
    return replace(
        settings,
        embedding=embedding,
        search=replace(settings.search, deadline=DEADLINE_SECONDS),
        # As if the user had given the model, so that a cached database changes to it instead of keeping its own.
        origins={**settings.origins, "embedding.provider": "argument"},
    )


@contextlib.contextmanager
def database_folder(collection: Collection, settings: Settings, cache_dir: Path | None) -> Iterator[Path]:
    if cache_dir is None:
        with tempfile.TemporaryDirectory(prefix="sennit-eval-") as folder:
            yield Path(folder) / "db"
        return
    cache_dir.mkdir(parents=True, exist_ok=True)
    yield cache_dir / re.sub(
        r"[^\w.-]+", "-", f"{collection.name}-{collection.digest}-{_model_label(settings)}"
    )


def index_collection(
    collection: Collection, settings: Settings, folder: Path, progress: Progress, label: str
) -> None:
    """Write the documents and build all vectors. What the database already has is not built again."""
    documents = collection.documents
    with sennit.open(folder, settings=settings) as db:
        db.admin.select_model()
        with progress(f"Indexing {label}") as update:
            for start in range(0, len(documents), WRITE_BATCH_SIZE):
                db.add(documents[start : start + WRITE_BATCH_SIZE])
                update(min(start + WRITE_BATCH_SIZE, len(documents)), len(documents))
        with progress(f"Embedding {label}") as update:
            db.wait(progress=update)
        db.admin.optimise()


def _measure(
    clocked: ClockedCollection,
    settings: Settings,
    folder: Path,
    model: str,
    recipe: Recipe,
    system: System,
    options: EvaluationOptions,
    progress: Progress,
) -> Measurement:
    collection = clocked.collection
    scope = options.scopes.get(collection.name)
    selected = collection.with_first_queries(options.max_queries)
    shallow, deep = (min(limit, system.recipe.max_limit) for limit in (SHALLOW_LIMIT, DEEP_LIMIT))
    shallow_rankings: dict[str, list[str]] = {}
    deep_rankings: dict[str, list[str]] = {}
    milliseconds: dict[str, float] = {}
    degraded: dict[str, str] = {}
    reasons: dict[str, dict[str, str]] = {}
    # The database is opened anew for each system, so that no system finds the query vectors of another in the cache.
    with (
        sennit.open(folder, settings=settings) as db,
        progress(f"{collection.name}, {model}, {system.name}") as update,
    ):
        db.search("warm up", recipe=system.recipe, limit=shallow)
        for done, query in enumerate(selected.queries, 1):
            filters = None if scope is None else {f"metadata.{scope}": query.metadata[scope]}
            now = clocked.time_of(query)
            started = time.perf_counter()
            result = db.search(query.text, recipe=system.recipe, limit=shallow, filters=filters, now=now)
            milliseconds[query.id] = (time.perf_counter() - started) * 1000
            shallow_rankings[query.id] = selected.ranking(query, result)
            if result.degraded:
                degraded[query.id] = "; ".join(map(str, result.degraded))
            result = db.search(query.text, recipe=system.recipe, limit=deep, filters=filters, now=now)
            deep_rankings[query.id] = selected.ranking(query, result)
            if options.explain:
                request = SearchRequest(
                    query.text, recipe=system.recipe, limit=shallow, filters=filters, now=now
                )
                reasons[query.id] = _explain_relevant(db, request, selected.judgements[query.id])
            update(done, len(selected.queries))
    shallow_metrics = compute_metrics(selected.judgements, shallow_rankings)
    deep_metrics = compute_metrics(selected.judgements, deep_rankings)
    query_results = tuple(
        QueryResult(
            query,
            {**shallow_metrics[query.id], DEEP_METRIC: deep_metrics[query.id][DEEP_METRIC]},
            milliseconds[query.id],
            tuple(shallow_rankings[query.id]),
            degraded.get(query.id),
            reasons.get(query.id, {}),
        )
        for query in selected.queries
    )
    return Measurement(
        collection.name, len(collection.documents), scope, model, recipe.name, system.name, query_results
    )


def _explain_relevant(
    db: sennit.Database, request: SearchRequest, judgements: Mapping[str, int]
) -> dict[str, str]:
    """Why each of the most relevant documents has its rank, or is missing."""
    relevant = sorted(
        (name for name, grade in judgements.items() if grade > 0), key=lambda name: -judgements[name]
    )
    out = {}
    for name in relevant[:EXPLAINED_DOCUMENTS]:
        # In some formats the judgements name files and not records.
        with contextlib.suppress(NotFound, AmbiguousReference):
            why = db.why(request, name)
            ranks = ", ".join(
                f"{one.source} {'-' if one.rank is None else one.rank}" for one in why.source_scores
            )
            because = "" if why.kept else f"; {why.stage}: {why.reason}"
            out[name] = f"ranks: {ranks or 'none'}{because}"
    return out


def check_scope(collection: Collection, scope: str | None) -> None:
    """Raise InvalidInput if a query lacks the metadata field that limits what it searches."""
    if scope is None:
        return
    for query in collection.queries:
        if query.metadata.get(scope) is None:
            fields = ", ".join(sorted(query.metadata)) or "none"
            raise InvalidInput(
                f"{collection.name}: query {query.id!r} has no metadata field {scope!r} to scope by; it has: {fields}."
            )


def _category(value: object) -> str:
    return "(none)" if value is None else str(value)


def _numbers_first(value: str) -> tuple[bool, float, str]:
    number = float(value) if re.fullmatch(r"-?\d{1,15}(\.\d+)?", value) else None
    return number is None, number or 0.0, value
