"""Plans of code for a prompt, and introspection of stored plans."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import HttpError, redact_locations
from sennit.apps.http.request_context import ReadRequest, RequestContext
from sennit.apps.http.serializers import encode_json
from sennit.records import MAX_ID_BYTES

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

_FORBIDDEN: Final = {"model": responses.ErrorResponse, "description": "forbidden"}


@router.post(
    "/v1/plan",
    summary="Plan code for a prompt",
    responses={200: {"model": responses.PlanResponse}, 403: _FORBIDDEN},
)
async def plan(body: requests.PlanBody, context: ReadRequest) -> Response:
    """Choose the code entities that belong in a prompt: those that the query names, then those close in meaning.

    Within an episode, the plan includes what earlier turns selected, and it is stored.
    """
    if body.episode is not None and not context.principal.can_write:
        raise HttpError(
            403,
            "This token has no write access, and a plan within an episode is stored. Leave `episode` out.",
        )

    def work() -> bytes:
        hydration_plan = context.db.plan(
            body.query,
            project=body.project,
            episode=body.episode,
            max_tokens=body.max_tokens,
            max_entities=body.max_entities,
            allow_partial=body.allow_partial,
            caller=context.caller,
        )
        values = _redact_warnings(hydration_plan.to_dict(), context)
        return encode_json(values | {"prompt": hydration_plan.prompt})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get("/v1/episodes", summary="List episodes", responses={200: {"model": responses.EpisodesResponse}})
async def list_episodes(context: ReadRequest) -> Response:
    """The episodes of callers who see the same, the latest first, with the tokens and entities of each turn."""

    def work() -> bytes:
        found = context.db.code.episodes(caller=context.caller)
        return encode_json({"episodes": [one.to_dict() for one in found]})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get(
    "/introspect/hydration/{episode_id:path}",
    summary="Inspect a stored plan",
    responses={200: {"model": responses.IntrospectionResponse}},
)
async def introspect(
    context: ReadRequest,
    episode_id: Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES)],
    turn: Annotated[
        int | None, Query(ge=1, le=requests.MAX_INT64, description="Default: the last turn.")
    ] = None,
    project: Annotated[
        requests.Project | None,
        Query(description="Only code of this project, by its name or path. Default: all of the plan."),
    ] = None,
    replay: Annotated[
        bool, Query(description="Compare the plan with what the query would select today.")
    ] = False,
) -> Response:
    """Each entity with its reason, priority, tokens, position and content, and each dropped entity with the reason."""

    def work() -> bytes:
        introspection = context.db.introspect(
            episode_id, turn, project=project, caller=context.caller, replay=replay
        )
        return encode_json(_redact_warnings(introspection.to_dict(), context))

    return Response(await context.run(work), media_type=JSON_TYPE)


def _redact_warnings(values: dict[str, Any], context: RequestContext) -> dict[str, Any]:
    """Remove the paths and URLs of the server from the warnings of a plan."""
    database_path = None if context.db.path is None else str(context.db.path)
    values["warnings"] = [
        # A warning about an entity contains the entity's key, which is in the rest of the response too.
        warning
        if warning["key"]
        else {**warning, "message": redact_locations(warning["message"], database_path)}
        for warning in values["warnings"]
    ]
    return values
