"""Reading: search, context for a prompt, and why."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from sennit.apps.http import forms, shapes
from sennit.apps.http.answers import context_answer, dumped, search_answer, why_answer
from sennit.apps.http.bodies import JSON, StrictRoute
from sennit.apps.http.visits import Reader
from sennit.context.briefing import briefing, memory_of

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=shapes.PROBLEMS)

PLAIN: Final = "text/plain"

_BLOCK: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "model": shapes.ContextAnswer,
        "content": {PLAIN: {"schema": {"type": "string"}}},
        "description": "What is remembered; with `format=prompt`, the block for a system prompt, empty where "
        "there is nothing.",
    }
}


@router.post("/v1/search", summary="Search", responses={200: {"model": shapes.SearchAnswer}})
async def search(asked: forms.Search, visit: Reader) -> Response:
    """The best records for a question, by several sources at once, in one ranking.

    A source that does not answer is named in `degraded`, and the others answer.
    """

    def work() -> bytes:
        result = visit.db.search(
            asked.query,
            recipe=asked.recipe,
            limit=asked.limit,
            filters=asked.filters,
            include=asked.include,
            keywords=asked.keywords,
            neighbours=asked.neighbours,
            explain=asked.explain,
            caller=visit.caller,
        )
        visit.searched(result)
        return dumped(search_answer(result, visit.db))

    return _json(await visit.run(work))


@router.get("/v1/context", summary="Context for a prompt", responses=_BLOCK)
async def context(
    visit: Reader,
    query: forms.Query,
    limit: forms.Limit | None = None,
    recipe: forms.Recipe = "memory",
    look_back: Annotated[
        float | Literal["default"] | None,
        Query(description="Nothing older than so many hours; `default`: as the settings say."),
    ] = None,
    answer_as: Annotated[Literal["json", "prompt"], Query(alias="format")] = "json",
    provenance: Annotated[bool, Query(description="With `format=prompt`: where each line is from.")] = False,
) -> Response:
    """What was said and what is known that bears on a question, as JSON or as the ready block for a system prompt."""

    def work() -> Response:
        result = visit.db.search(
            query,
            recipe=recipe,
            limit=limit,
            look_back=True if look_back == "default" else look_back or False,
            caller=visit.caller,
        )
        visit.searched(result)
        if answer_as == "json":
            return _json(dumped(context_answer(result, visit.db)))
        block = briefing((memory_of(hit.record) for hit in result), provenance=provenance)
        missing = ", ".join(quote(one.source) for one in result.degraded)
        return Response(block, media_type=PLAIN, headers={"x-sennit-degraded": missing} if missing else None)

    return await visit.run(work)


@router.get("/v1/why", summary="Why a record is found, or not", responses={200: {"model": shapes.WhyAnswer}})
async def why(
    visit: Reader,
    query: forms.Query,
    record_id: Annotated[str, Query(alias="id", min_length=1, max_length=4096)],
    recipe: forms.Recipe | None = None,
    limit: forms.Limit | None = None,
    filters: Annotated[str, Query(max_length=forms.MAX_QUERY, description="As text.")] = "",
    keywords: Annotated[list[str], Query(max_length=forms.MAX_KEYWORDS)] = [],  # noqa: B006 - FastAPI copies it
    include: Annotated[list[forms.Name], Query(max_length=100)] = [],  # noqa: B006
) -> Response:
    """The stage and the number that put a record into the answer to a question, or kept it out.

    Takes what the search took. A record that the caller may not see is not found, as one that is not there.
    """

    def work() -> bytes:
        found = visit.db.why(
            query,
            record_id,
            recipe=recipe,
            limit=limit,
            filters=filters or None,
            keywords=keywords or None,
            include=include,
            caller=visit.caller,
        )
        return dumped(why_answer(found, visit.db))

    return _json(await visit.run(work))


def _json(body: bytes) -> Response:
    return Response(body, media_type=JSON)
