"""Search, context for a prompt, and explanations."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.limits import MAX_URL_QUERY_CHARACTERS
from sennit.apps.http.request_context import ReadRequest
from sennit.apps.http.serializers import encode_json, serialize_context, serialize_search, serialize_why

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

TEXT_TYPE: Final = "text/plain"

_CONTEXT_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": responses.ContextResponse,
        "content": {TEXT_TYPE: {"schema": {"type": "string"}}},
        "description": "What is remembered. With `format=prompt`, the block for a system prompt, which is empty if "
        "nothing is found.",
    }
}


@router.post("/v1/search", summary="Search", responses={200: {"model": responses.SearchResponse}})
async def search(body: requests.SearchBody, context: ReadRequest) -> Response:
    """Search several sources at once and return one ranking.

    A source that fails is listed in `degraded`, and the other sources still answer.
    """

    def work() -> bytes:
        result = context.db.search(body.to_request(context.caller))
        context.record_search(result)
        return encode_json(serialize_search(result, context.db, excerpts=body.excerpts))

    return _json(await context.run(work))


@router.get("/v1/context", summary="Get context for a prompt", responses=_CONTEXT_RESPONSES)
async def get_context(
    context: ReadRequest,
    query: requests.UrlQuery,
    limit: requests.Limit | None = None,
    recipe: requests.Recipe = "memory",
    project: requests.Project | None = None,
    where: requests.FilterParameter = "",
    collection: Annotated[requests.Collections, Query(description="Only these collections.")] = [],  # noqa: B006
    look_back: requests.LookBackParameter | None = None,
    min_relevance: requests.MinRelevance = 0.0,
    recency: requests.Recency | None = None,
    response_format: Annotated[Literal["json", "prompt"], Query(alias="format")] = "json",
    provenance: Annotated[bool, Query(description="Add the source of each line of the block.")] = False,
) -> Response:
    """Relevant conversation turns and facts, as JSON or as a ready-made block for a system prompt."""

    def work() -> Response:
        found = context.db.memory.context(
            query,
            provenance=provenance,
            recipe=recipe,
            limit=limit,
            project=project,
            filters=where or None,
            collections=collection,
            look_back=requests.look_back_hours(look_back),
            min_relevance=min_relevance,
            recency=recency,
            caller=context.caller,
        )
        result = found.result
        context.record_search(result)
        if response_format == "json":
            return _json(encode_json(serialize_context(found, context.db)))
        failed = ", ".join(quote(failure.source) for failure in result.degraded)
        return Response(
            found.block, media_type=TEXT_TYPE, headers={"x-sennit-degraded": failed} if failed else None
        )

    return await context.run(work)


@router.get(
    "/v1/why",
    summary="Explain why a record is found or not",
    responses={200: {"model": responses.WhyResponse}},
)
async def why(
    context: ReadRequest,
    query: requests.UrlQuery,
    record_id: Annotated[str, Query(alias="id", min_length=1, max_length=4096)],
    recipe: requests.Recipe | None = None,
    limit: requests.Limit | None = None,
    project: requests.Project | None = None,
    filters: Annotated[str, Query(max_length=MAX_URL_QUERY_CHARACTERS, description="As text.")] = "",
    collections: Annotated[requests.Collections, Query()] = [],  # noqa: B006 - FastAPI copies it
    keywords: Annotated[requests.Keywords, Query()] = [],  # noqa: B006
    include: Annotated[requests.Include, Query()] = [],  # noqa: B006
    look_back: requests.LookBackParameter | None = None,
    min_relevance: requests.MinRelevance = 0.0,
    recency: requests.Recency | None = None,
) -> Response:
    """The stage and the number that put a record into the result or kept it out.

    Takes the parameters of the search. A record that the caller may not see gives 404, like one that does not exist.
    """

    def work() -> bytes:
        explanation = context.db.why(
            query,
            record_id,
            recipe=recipe,
            limit=limit,
            project=project,
            filters=filters or None,
            collections=collections,
            keywords=keywords or None,
            include=include,
            look_back=requests.look_back_hours(look_back),
            min_relevance=min_relevance,
            recency=recency,
            caller=context.caller,
        )
        return encode_json(serialize_why(explanation, context.db))

    return _json(await context.run(work))


def _json(body: bytes) -> Response:
    return Response(body, media_type=JSON_TYPE)
