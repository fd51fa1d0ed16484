"""Searches with a changed recipe: what another weight, constant or stage would do, also to judged queries."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from fastapi import APIRouter, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.changed_recipes import changed_recipe
from sennit.apps.http.request_context import ReadRequest, RequestContext
from sennit.apps.http.serializers import encode_json, serialize_search
from sennit.engine.search_request import SearchRequest
from sennit.evaluation.metrics import compute_metrics
from sennit.ranking.diversity import MMR, jaccard
from sennit.recipes import Recipe, find_recipe
from sennit.results import SearchResult

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

COMPARED_RECORDS: Final = 60
"""Records whose similarity to each other is returned. A stage `mmr` looks at twenty, and sliders move others there."""

MAX_JUDGED_QUERIES: Final = 200
"""Judged queries that are measured, the latest ones."""

METRIC: Final = "nDCG@10"


@router.post("/v1/trial", summary="Try a changed recipe", responses={200: {"model": responses.TrialResponse}})
async def try_recipe(body: requests.TrialBody, context: ReadRequest) -> Response:
    """Search with another fusion or other stages, and explain. Nothing is recorded or stored.

    For a recipe with the stage `mmr`, `similarity` has how alike the first records are, which the stage uses.
    """

    def work() -> bytes:
        recipe = changed_recipe(body, context)
        result = context.db.search(body.to_request(context.caller, recipe))
        values = serialize_search(result, context.db)
        return encode_json({**values, "similarity": _similarity(recipe, result, context)})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.post(
    "/v1/trial/judged",
    summary="Measure two recipes",
    responses={200: {"model": responses.JudgedTrialResponse}},
)
async def measure_recipe(body: requests.JudgedTrialBody, context: ReadRequest) -> Response:
    """nDCG@10 of a recipe and of its changed form, or of another recipe, over the queries that the caller has judged."""

    def work() -> bytes:
        judgements = _judgements(context)
        recipe = find_recipe(body.recipe, context.db.recipes)
        if body.compare_with is None:
            other = changed_recipe(body, context)
        else:
            other = find_recipe(body.compare_with, context.db.recipes)
        before = _rank(judgements, recipe, context)
        after = before if other == recipe else _rank(judgements, other, context)
        scores = [compute_metrics(judgements, rankings) if judgements else {} for rankings in (before, after)]
        queries = [
            {
                "query": query,
                "before": scores[0][query][METRIC],
                "after": scores[1][query][METRIC],
                "first_changes": before[query][:1] != after[query][:1],
            }
            for query in judgements
        ]
        count = len(queries) or 1
        means = {name: sum(one[name] for one in queries) / count for name in ("before", "after")}  # type: ignore[misc]
        return encode_json({"queries": queries, **means})

    return Response(await context.run(work), media_type=JSON_TYPE)


def _similarity(recipe: Recipe, result: SearchResult, context: RequestContext) -> dict[str, Any] | None:
    trace = result.trace
    stage = next((one for one in recipe.stages if isinstance(one, MMR)), None)
    ranked = None if trace is None else next((one for one in trace.stages if one.name == MMR.name), None)
    if trace is None or ranked is None or stage is None or stage.similarity != "jaccard":
        return None
    ids = [trace.ids[key] for key in ranked.keys[:COMPARED_RECORDS].tolist()]
    records = {
        one: record for one in ids if (record := context.db.get(one, caller=context.caller)) is not None
    }
    values = jaccard([record.text for record in records.values()])
    return {"ids": list(records), "values": [[round(value, 6) for value in row] for row in values.tolist()]}


def _judgements(context: RequestContext) -> dict[str, dict[str, int]]:
    """The last grade of each record for each query that the caller has judged, without what it may not see now."""
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for found in context.db.feedback.read(caller=context.caller):
        for event in found.events:
            if event.grade is not None and context.db.get(event.object_id, caller=context.caller) is not None:
                grades[found.query.query][event.object_id] = event.grade
    return dict(list(grades.items())[-MAX_JUDGED_QUERIES:])


def _rank(
    judgements: dict[str, dict[str, int]], recipe: Recipe, context: RequestContext
) -> dict[str, list[str]]:
    limit = min(10, recipe.max_limit)
    return {
        query: [
            hit.id
            for hit in context.db.search(
                SearchRequest(query, recipe=recipe, limit=limit, caller=context.caller)
            )
        ]
        for query in judgements
    }
