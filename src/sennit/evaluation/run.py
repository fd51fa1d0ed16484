"""Measure: index a collection once per model, then ask every question of every system."""

from __future__ import annotations

import contextlib
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, get_args

import sennit
from sennit.errors import EmbeddingError, InvalidInput
from sennit.evaluation.datasets import Collection, Query
from sennit.evaluation.metrics import DEEP, Figures, figures_of, mean
from sennit.ranking.fusion import RRF, Weighted
from sennit.recipes import BUILT_IN, Recipe, find_recipe, recipe_from_dict
from sennit.settings import EmbeddingSettings, Provider, Settings

SHALLOW_LIMIT: Final = 10
"""What people ask for: time and all measures of the first ten are those of such a search."""

DEEP_LIMIT: Final = 100
"""A second search, which is not timed, for R@100."""

DEADLINE: Final = 60.0
"""Seconds. A source that is late on a busy machine would be missing from the answer, and not from its time."""

WRITE_BATCH: Final = 1024
POLL_SECONDS: Final = 0.1
STALLED_SECONDS: Final = 300.0
"""Without one new vector for this long, the model will give none."""

SHORT_NAMES: Final = {"minilm": "onnx/minilm"}

Update = Callable[[int, int], None]
Watch = Callable[[str], AbstractContextManager[Update]]
"""Shows how far something with a label is."""


@contextlib.contextmanager
def unwatched(_label: str) -> Iterator[Update]:
    """For those who do not want to see it."""
    yield lambda _done, _total: None


@dataclass(frozen=True, slots=True)
class System:
    """What is measured: a recipe, one of its sources alone, or its sources by reciprocal rank."""

    name: str
    recipe: Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to measure. No models and no recipes: those of the settings."""

    models: Sequence[str] = ()
    """`static`, `minilm`, or `provider/model`."""
    recipes: Sequence[str] = ()
    scopes: Mapping[str, str] = field(default_factory=dict)
    """By collection: search only records whose metadata field equals the query's."""
    queries: int | None = None
    cache: Path | None = None
    """Where built databases stay for the next run; without it they are temporary."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one system gave for one question."""

    query: Query
    figures: Figures
    milliseconds: float
    found: tuple[str, ...]
    degraded: str | None = None
    """The sources that did not answer, and why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One system on one collection."""

    collection: str
    documents: int
    scope: str | None
    model: str
    recipe: str
    system: str
    answers: tuple[Answer, ...]

    @property
    def figures(self) -> dict[str, float]:
        return mean(answer.figures for answer in self.answers)

    @property
    def milliseconds(self) -> float:
        """The median."""
        return statistics.median(answer.milliseconds for answer in self.answers)

    @property
    def degraded(self) -> list[str]:
        """Why answers were incomplete; one entry for each that was."""
        return [answer.degraded for answer in self.answers if answer.degraded is not None]

    def by_category(self, name: str) -> dict[str, tuple[Answer, ...]]:
        """The answers by a metadata field of their questions, in the order of its values; none has it: nothing."""
        if not any(name in answer.query.metadata for answer in self.answers):
            return {}
        groups: dict[str, list[Answer]] = defaultdict(list)
        for answer in self.answers:
            groups[_category(answer.query.metadata.get(name))].append(answer)
        return {value: tuple(groups[value]) for value in sorted(groups, key=_numbers_first)}


def systems_of(recipe: Recipe) -> list[System]:
    """Each source of a recipe alone, its sources by RRF, and itself; what would be the same only once."""
    systems = [
        System(use.name, replace(recipe, sources=(use,), fusion=Weighted({use.name: 1.0}, "none")))
        for use in recipe.sources
    ]
    systems.append(System("rrf", replace(recipe, fusion=RRF(k=60, first_rank=1))))
    if len(recipe.sources) == 1:
        return [System(recipe.name, recipe)]
    if systems[-1].recipe == recipe:
        systems.pop()
    return [*systems, System(recipe.name, recipe)]


def evaluate(
    collections: Sequence[Collection],
    options: Options,
    settings: Settings,
    watch: Watch = unwatched,
    systems: Callable[[Recipe], list[System]] = systems_of,
) -> list[Measured]:
    """Measure every collection with every model and the systems of every recipe."""
    own_recipes = {name: recipe_from_dict(name, table) for name, table in settings.recipes.items()}
    known = {**BUILT_IN, **own_recipes}
    recipes = [find_recipe(name, known) for name in options.recipes or (settings.search.recipe,)]
    chosen = [(model or _label(settings), _with_model(settings, model)) for model in options.models or ("",)]
    for collection in collections:
        _check_scope(collection, options.scopes.get(collection.name))
    out: list[Measured] = []
    for model, own in chosen:
        for collection in collections:
            with _folder(collection, own, options.cache) as folder:
                _index(collection, own, folder, watch, f"{collection.name}, {model}")
                for recipe in recipes:
                    for system in systems(recipe):
                        if any(m.system == system.name and _same(m, collection, model) for m in out):
                            continue  # a source alone is the same in another recipe of one call
                        out.append(_measure(collection, own, folder, model, recipe, system, options, watch))
    return out


def parse_model(text: str) -> tuple[Provider, str]:
    """The provider and the model that a name stands for."""
    provider, _, model = SHORT_NAMES.get(text, text).partition("/")
    for known in get_args(Provider):
        if known == provider:
            return known, model
    raise InvalidInput(
        f"There is no model {text!r}: give static, minilm, or PROVIDER/MODEL with a provider of "
        f"{', '.join(get_args(Provider))}."
    )


def _same(measured: Measured, collection: Collection, model: str) -> bool:
    return measured.collection == collection.name and measured.model == model


def _label(settings: Settings) -> str:
    own = settings.embedding
    return f"{own.provider}/{own.model}" if own.model else own.provider


def _with_model(settings: Settings, model: str) -> Settings:
    """The settings with another model; an address and a credential stay with their own provider."""
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
        search=replace(settings.search, deadline=DEADLINE),
        # As if the user had named it: a kept database changes to this model instead of staying with its own.
        origins={**settings.origins, "embedding.provider": "argument"},
    )


@contextlib.contextmanager
def _folder(collection: Collection, settings: Settings, cache: Path | None) -> Iterator[Path]:
    if cache is None:
        with tempfile.TemporaryDirectory(prefix="sennit-eval-") as folder:
            yield Path(folder) / "db"
        return
    cache.mkdir(parents=True, exist_ok=True)
    yield cache / re.sub(r"[^\w.-]+", "-", f"{collection.name}-{collection.digest}-{_label(settings)}")


def _index(collection: Collection, settings: Settings, folder: Path, watch: Watch, label: str) -> None:
    """Bring the database to hold the documents with all their vectors; what it has is not made again."""
    documents = collection.documents
    with sennit.open(folder, settings=settings) as db:
        db.vectors.settle()  # a model that cannot be used is an error here, and not a degraded answer later
        with watch(f"Indexing {label}") as update:
            for at in range(0, len(documents), WRITE_BATCH):
                db.add(documents[at : at + WRITE_BATCH])
                update(min(at + WRITE_BATCH, len(documents)), len(documents))
        with watch(f"Embedding {label}") as update:
            _await_vectors(db, update)
        db.optimise()


def _await_vectors(db: sennit.Database, update: Update) -> None:
    """Wait until every record has its vector; the database's own background work makes them."""
    least = total = None
    since = time.monotonic()
    while True:
        states = db.store.models.progress()
        waiting = sum(state.pending for state in states)
        if not waiting and len(states) <= 1:
            return
        if total is None:
            total = waiting
        if db.keeper.last_error is not None:
            raise EmbeddingError(db.keeper.last_error)
        if least is None or waiting < least:
            least, since = waiting, time.monotonic()
        elif time.monotonic() - since > STALLED_SECONDS:
            raise EmbeddingError(f"{waiting:,} records still wait for a vector, and the model gives none.")
        update(total - waiting, total)
        time.sleep(POLL_SECONDS)


def _measure(
    collection: Collection,
    settings: Settings,
    folder: Path,
    model: str,
    recipe: Recipe,
    system: System,
    options: Options,
    watch: Watch,
) -> Measured:
    scope = options.scopes.get(collection.name)
    asked = collection.first(options.queries)
    shallow, deep = (min(limit, system.recipe.max_limit) for limit in (SHALLOW_LIMIT, DEEP_LIMIT))
    first: dict[str, list[str]] = {}
    further: dict[str, list[str]] = {}
    times: dict[str, float] = {}
    degraded: dict[str, str] = {}
    # Opened anew for each system, so that none profits from the question's vector that another has cached.
    with (
        sennit.open(folder, settings=settings) as db,
        watch(f"{collection.name}, {model}, {system.name}") as update,
    ):
        db.search("warm up", recipe=system.recipe, limit=shallow)
        for at, query in enumerate(asked.queries, 1):
            filters = None if scope is None else {f"metadata.{scope}": query.metadata[scope]}
            began = time.perf_counter()
            result = db.search(query.text, recipe=system.recipe, limit=shallow, filters=filters)
            times[query.id] = (time.perf_counter() - began) * 1000
            first[query.id] = asked.ranking(query, result)
            if result.degraded:
                degraded[query.id] = "; ".join(map(str, result.degraded))
            result = db.search(query.text, recipe=system.recipe, limit=deep, filters=filters)
            further[query.id] = asked.ranking(query, result)
            update(at, len(asked.queries))
    figures = figures_of(asked.judgements, first)
    deeper = figures_of(asked.judgements, further)
    answers = tuple(
        Answer(
            query,
            {**figures[query.id], DEEP: deeper[query.id][DEEP]},
            times[query.id],
            tuple(first[query.id]),
            degraded.get(query.id),
        )
        for query in asked.queries
    )
    return Measured(
        collection.name, len(collection.documents), scope, model, recipe.name, system.name, answers
    )


def _check_scope(collection: Collection, scope: str | None) -> None:
    if scope is None:
        return
    for query in collection.queries:
        if query.metadata.get(scope) is None:
            have = ", ".join(sorted(query.metadata)) or "none"
            raise InvalidInput(
                f"{collection.name}: query {query.id!r} has no metadata field {scope!r} to scope by; it has: {have}."
            )


def _category(value: object) -> str:
    return "(none)" if value is None else str(value)


def _numbers_first(value: str) -> tuple[bool, float, str]:
    number = float(value) if re.fullmatch(r"-?\d{1,15}(\.\d+)?", value) else None
    return number is None, number or 0.0, value
