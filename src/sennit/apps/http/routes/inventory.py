"""What the database holds, as the caller may see it: status, collections, records and sessions."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import redact_locations
from sennit.apps.http.request_context import ReadRequest, RequestContext
from sennit.apps.http.serializers import encode_json, serialize_record
from sennit.engine.validation import PAGE_RECORDS
from sennit.records import MAX_ID_BYTES

router: Final = APIRouter(tags=["inventory"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)


@router.get("/v1/status", summary="Show the status", responses={200: {"model": responses.StatusResponse}})
async def status(context: ReadRequest) -> Response:
    """What the database holds, its indexed folders and models, and what is left to do."""

    def work() -> bytes:
        return encode_json(describe_status(context))

    return Response(await context.run(work), media_type=JSON_TYPE)


def describe_status(context: RequestContext) -> dict[str, Any]:
    """The status as the caller may see it."""
    values: dict[str, Any] = context.db.status(caller=context.caller).to_dict()
    if context.caller.everything and not context.caller.tenant:
        # Numbers about all records, also those of other tenants: for the operator.
        values["behind"] = context.db.admin.behind()
        values["pending_vectors"] = context.db.admin.pending_vectors()
    # Where the database is concerns the operator alone; the vectors that files have left are of all tenants.
    del values["database"], values["unused_vectors"]
    for folder in values["folders"]:
        del folder["changes"]
    if values["last_error"] is not None:
        values["last_error"] = redact_locations(values["last_error"])
    return values


@router.get(
    "/v1/collections", summary="List collections", responses={200: {"model": responses.CollectionsResponse}}
)
async def collections(context: ReadRequest, project: requests.Project | None = None) -> Response:
    """Each collection with its number of records, the largest first."""

    def work() -> bytes:
        found = context.db.collections(project=project, caller=context.caller)
        return encode_json({"collections": [one.to_dict() for one in found]})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get("/v1/projects", summary="List projects", responses={200: {"model": responses.ProjectsResponse}})
async def projects(context: ReadRequest) -> Response:
    """Each indexed folder that a search can be limited to, with its git revision."""

    def work() -> bytes:
        found = context.db.files.projects(caller=context.caller)
        return encode_json({"projects": [one.to_dict() for one in found]})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get("/v1/sessions", summary="List sessions", responses={200: {"model": responses.SessionsResponse}})
async def sessions(context: ReadRequest) -> Response:
    """Each session with its number of turns and memories."""

    def work() -> bytes:
        found = context.db.memory.sessions(caller=context.caller)
        return encode_json({"sessions": [one.to_dict() for one in found]})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get("/v1/records", summary="List records", responses={200: {"model": responses.RecordsResponse}})
async def list_records(
    context: ReadRequest,
    where: requests.FilterParameter = "",
    collection: Annotated[requests.Collections, Query(description="Only these collections.")] = [],  # noqa: B006
    project: requests.Project | None = None,
    limit: Annotated[requests.Limit, Query(description="Records of one page.")] = PAGE_RECORDS,
    after: Annotated[
        str | None, Query(max_length=2 * MAX_ID_BYTES, description="The `next` of the page before.")
    ] = None,
) -> Response:
    """The records that match a filter, in the order of their ids, page by page."""

    def work() -> bytes:
        page = context.db.records(
            where or None,
            collections=collection,
            limit=limit,
            after=after,
            project=project,
            caller=context.caller,
        )
        listed = [serialize_record(record) for record in page]
        return encode_json({"records": listed, "total": page.total, "next": page.next})

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get(
    "/v1/records/{id:path}", summary="Get a record", responses={200: {"model": responses.RecordResponse}}
)
async def get_record(reference: Annotated[str, Path(alias="id")], context: ReadRequest) -> Response:
    """A record by its id, a unique beginning of the id, or `path:lines` as a citation has it.

    A record that the caller may not see gives 404, like one that does not exist.
    """

    def work() -> bytes:
        return encode_json(serialize_record(context.db.find(reference, caller=context.caller)))

    return Response(await context.run(work), media_type=JSON_TYPE)
