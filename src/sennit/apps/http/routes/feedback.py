"""Feedback: what people did with the results of searches."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import HttpError
from sennit.apps.http.request_context import ReadRequest, RequestContext
from sennit.apps.http.serializers import encode_json
from sennit.feedback import LoggedQuery
from sennit.records import Json

router: Final = APIRouter(
    tags=["feedback"],
    route_class=StrictRoute,
    responses={
        **responses.ERROR_RESPONSES,
        403: {"model": responses.ErrorResponse, "description": "forbidden"},
    },
)

Everything = Annotated[
    bool, Query(description="That of all callers of the tenant, for a caller who sees everything.")
]


@router.post("/v1/feedback", summary="Give feedback", responses={200: {"model": responses.FeedbackResponse}})
async def give_feedback(body: requests.OneOrMany[requests.FeedbackBody], context: ReadRequest) -> Response:
    """Record what was done with results, all or none. Needs no write access.

    A search that this caller did not make gives 404, like one that does not exist.
    """
    _check_recording(context)

    def work() -> bytes:
        given = [one.to_feedback() for one in requests.as_list(body)]
        return encode_json({"recorded": len(context.db.feedback.add_many(given, caller=context.caller))})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get(
    "/v1/feedback", summary="Read feedback", responses={200: {"model": responses.FeedbackExportResponse}}
)
async def read_feedback(context: ReadRequest, everything: Everything = False) -> Response:
    """The recorded searches of the caller and what was done with their results, as User Behavior Insights has them."""

    def work() -> bytes:
        found = context.db.feedback.read(everything=everything, caller=context.caller)
        queries = [_query(one.query, whole=everything) for one in found]
        events = [event.to_ubi() for one in found for event in one.events]
        return encode_json({"queries": queries, "events": events})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.delete(
    "/v1/feedback", summary="Forget feedback", responses={200: {"model": responses.ForgottenResponse}}
)
async def forget_feedback(
    context: ReadRequest,
    query_id: requests.QueryId | None = None,
    session_id: Annotated[requests.SessionId, Query(min_length=1)] | None = None,
    everything: Everything = False,
) -> Response:
    """Remove recorded searches of the caller: all, one, or those of a session."""
    _check_recording(context)

    def work() -> bytes:
        removed = context.db.feedback.forget(
            None if query_id is None else [query_id],
            session_id=session_id,
            everything=everything,
            caller=context.caller,
        )
        return encode_json({"removed": removed})

    return Response(await context.run(work), media_type=JSON_TYPE)


def _check_recording(context: RequestContext) -> None:
    if not context.principal.can_give_feedback:
        raise HttpError(403, "This service is read-only; it records no feedback.")


def _query(query: LoggedQuery, *, whole: bool) -> dict[str, Json]:
    """A recorded search. Its sides of an experiment are for whoever evaluates it, and not for its subject."""
    if not whole:
        query = replace(query, experiment="", shown=tuple(replace(hit, team="") for hit in query.shown))
    return replace(query, tenant="").to_ubi()
