"""Why a search found nothing, and which search would. Runs only after a search without results.

It reads the snapshot of the search, so it counts and names nothing that the caller may not see.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from sennit.engine.projects import NO_PROJECT
from sennit.engine.search_request import SearchRequest, build_filter
from sennit.filters import EVERYTHING, Range, parse_filter
from sennit.pipeline import SearchPlan
from sennit.places import ALL_PROJECTS
from sennit.ranking.calibration import Background
from sennit.recipes import DISTANCES, Recipe, SourceConfig
from sennit.results import Hint, SearchResult
from sennit.stores.contract import Snapshot

MAX_NAMED_COLLECTIONS: Final = 8
"""Collections that a hint names."""

GENERAL_RECIPE: Final = "default"
"""The recipe that searches every collection."""

RunPlan = Callable[[SearchPlan], SearchResult]
RunRequest = Callable[[SearchRequest], SearchResult]


def explain_empty(
    request: SearchRequest,
    plan: SearchPlan,
    snapshot: Snapshot,
    recipes: Mapping[str, Recipe],
    run_plan: RunPlan,
    run_request: RunRequest,
) -> tuple[Hint, ...]:
    """Return the reasons why a search found nothing, and the nearest search that finds something."""
    held = snapshot.text_counts("collection")
    elsewhere = search_command(replace(request, project=ALL_PROJECTS))
    if not held and request.project not in NO_PROJECT:
        holds = f"The project {request.project!r} holds no records that you may see."
        return (Hint("project", f"{holds} To search all projects:", elsewhere),)
    if not held:
        return (Hint("nothing_stored", "The database holds no records that you may see.", "sennit index ."),)
    if not request.query.strip():
        return (Hint("empty_query", "The query is empty. Give a question or a few words."),)
    reasons = list(_reasons(request, plan, snapshot, held, run_plan))
    reasons = reasons or [Hint("no_match", "No record matches the words or the meaning of the query.")]
    hints = (*reasons, *_suggestion(request, recipes, run_request))
    if request.project in NO_PROJECT:
        return hints
    return (*hints, Hint("project", f"Only the project {request.project!r} was searched.", elsewhere))


def _reasons(
    request: SearchRequest,
    plan: SearchPlan,
    snapshot: Snapshot,
    held: Mapping[str, int],
    run_plan: RunPlan,
) -> Iterator[Hint]:
    searched = request.collections or _recipe_collections(plan, request)
    if searched and not any(name in held for name in searched):
        listed = ", ".join(searched)
        where = f"Records are in {_name_counts(held)}."
        if request.collections:
            yield Hint("collection", f"There are no records in {listed}. {where}")
        else:
            yield Hint(
                "recipe", f"The recipe {plan.recipe.name!r} searches {listed}, which hold no records. {where}"
            )
        return
    condition = parse_filter(request.filters)
    inside = build_filter(condition, searched)
    if condition != EVERYTHING and not snapshot.count(inside):
        also = f" in {', '.join(searched)}" if searched and snapshot.count(condition) else ""
        yield Hint("filter", f"No record{also} passes the filter: {condition}")
        return
    if plan.since is not None and not snapshot.count(Range("timestamp", plan.since.timestamp()) & inside):
        yield Hint(
            "look_back",
            f"No record is newer than {plan.since:%Y-%m-%d %H:%M} UTC, where the look-back begins.",
        )
        return
    if plan.min_relevance:
        nearest = run_plan(replace(plan, min_relevance=0.0, limit=1))
        if nearest:
            yield Hint(
                "min_relevance",
                f"Nothing reaches a relevance of {plan.min_relevance:g}. The nearest is {nearest[0].citation}, with "
                f"{nearest[0].relevance:.2f}.",
            )
            return
    yield from _threshold(plan, run_plan)


def _threshold(plan: SearchPlan, run_plan: RunPlan) -> Iterator[Hint]:
    """Say that a threshold discarded everything, and name the nearest record."""
    strict = [config for config in plan.sources if config.has_threshold]
    if not strict:
        return
    sources = tuple(replace(config, min_score=None, max_distance=None) for config in plan.sources)
    nearest = run_plan(replace(plan, sources=sources, limit=1, explain=True))
    explanation = nearest[0].explanation if nearest else None
    if explanation is None or nearest.trace is None:
        return
    background = Background(nearest.trace.background)
    scores = {one.source: one.score for one in explanation.source_scores}
    bounds = [
        _describe_threshold(config, score, background)
        for config in strict
        if (score := scores[config.name]) is not None
    ]
    yield Hint(
        "threshold",
        f"Nothing passes the threshold of the recipe {plan.recipe.name!r}. The nearest is {nearest[0].citation}: "
        f"{'; '.join(bounds)}.",
    )


def _describe_threshold(config: SourceConfig, score: float, background: Background) -> str:
    if config.max_distance is None:
        return f"its {config.name} score is {score:.4f} and would have to be at least {config.min_score:g}"
    distance = float(DISTANCES[config.metric](np.array([score]), background)[0])
    return (
        f"its {config.metric} distance is {distance:.4f} and would have to be below {config.max_distance:g}"
    )


def _suggestion(
    request: SearchRequest, recipes: Mapping[str, Recipe], run_request: RunRequest
) -> Iterator[Hint]:
    """Return the search with the fewest changes that finds something."""
    for change, relaxed in _relaxations(request, recipes):
        found = len(run_request(relaxed))
        if found:
            results = "there is 1 result" if found == 1 else f"there are {found:,} results"
            yield Hint("try", f"{change} {results}.", search_command(relaxed))
            return


def _relaxations(
    request: SearchRequest, recipes: Mapping[str, Recipe]
) -> Iterator[tuple[str, SearchRequest]]:
    plain = replace(request, explain=False, neighbours=0)
    if request.filters is not None:
        plain = replace(plain, filters=None)
        yield "Without the filter", plain
    if request.look_back is not False:
        plain = replace(plain, look_back=False)
        yield "Without the look-back", plain
    if request.collections:
        plain = replace(plain, collections=())
        yield "In all collections", plain
    name = request.recipe.name if isinstance(request.recipe, Recipe) else request.recipe
    if name not in (None, GENERAL_RECIPE) and GENERAL_RECIPE in recipes:
        # Collections to include belong to the recipe, and so may the limit.
        yield (
            f"With the recipe {GENERAL_RECIPE!r}",
            replace(plain, recipe=GENERAL_RECIPE, include=(), limit=None),
        )


def search_command(request: SearchRequest) -> str:
    """Return the command that runs a request."""
    # A query that begins with a dash would be an option, so it comes last, behind two dashes.
    query = ["--", request.query] if request.query.startswith("-") else []
    words = ["sennit", "search", *([] if query else [request.query])]
    recipe = request.recipe.name if isinstance(request.recipe, Recipe) else request.recipe
    words += [] if recipe is None else ["--recipe", recipe]
    words += [] if request.project is None else ["--project", request.project]
    for option, values in (
        ("--collection", request.collections),
        ("--include", request.include),
        ("--keyword", request.keywords or ()),
    ):
        words += [word for value in values for word in (option, value)]
    condition = parse_filter(request.filters)
    words += [] if condition == EVERYTHING else ["--filter", str(condition)]
    return shlex.join([*words, *query])


def _recipe_collections(plan: SearchPlan, request: SearchRequest) -> Sequence[str]:
    return (
        tuple(dict.fromkeys((*plan.recipe.collections, *request.include))) if plan.recipe.collections else ()
    )


def _name_counts(counts: Mapping[str, int]) -> str:
    named = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    listed = [f"{name} ({number:,})" for name, number in named[:MAX_NAMED_COLLECTIONS]]
    more = len(named) - len(listed)
    return ", ".join([*listed, *([f"and {more} more"] if more else [])])
