"""Writes: records, facts, and turns of conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import HttpError
from sennit.apps.http.request_context import RequestContext, WriteRequest
from sennit.apps.http.serializers import encode_json
from sennit.apps.http.write_requests import build_facts, build_records, build_turns
from sennit.records import MAX_ID_BYTES, Record
from sennit.stores.contract import WriteResult

router: Final = APIRouter(
    tags=["write"],
    route_class=StrictRoute,
    responses={
        **responses.ERROR_RESPONSES,
        403: {"model": responses.ErrorResponse, "description": "forbidden"},
    },
)

_WRITE_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": responses.WriteResponse},
    409: {"model": responses.ErrorResponse, "description": "an id is taken"},
}


@router.post("/v1/records", summary="Add or replace records", responses=_WRITE_RESPONSES)
async def add_records(body: requests.OneOrMany[requests.NewRecord], context: WriteRequest) -> Response:
    """Store a record or a list of records, all or none. After the response they are durable and searchable."""

    def write() -> tuple[WriteResult, Sequence[Record]]:
        records = build_records(requests.as_list(body), context.caller)
        return context.db.add(records, caller=context.caller), records

    return await _respond(context, write)


@router.post("/v1/turns", summary="Add conversation turns", responses=_WRITE_RESPONSES)
async def add_turns(body: requests.OneOrMany[requests.NewTurn], context: WriteRequest) -> Response:
    """Store a turn of a conversation or a list of turns, all or none. Keyword search finds them at once."""

    def write() -> tuple[WriteResult, Sequence[Record]]:
        turns = build_turns(requests.as_list(body), context.caller)
        return context.db.add_turns(turns, caller=context.caller), [turn.to_record() for turn in turns]

    return await _respond(context, write)


@router.post("/v1/facts", summary="Add facts", responses=_WRITE_RESPONSES)
async def add_facts(body: requests.OneOrMany[requests.NewFact], context: WriteRequest) -> Response:
    """Store a fact or a list of facts, all or none. A superseded fact ends where the new one begins, and stays in history."""

    def write() -> tuple[WriteResult, Sequence[Record]]:
        facts = build_facts(requests.as_list(body), context.caller)
        return context.db.add_facts(facts, caller=context.caller), [fact.to_record() for fact in facts]

    return await _respond(context, write)


@router.delete(
    "/v1/records",
    summary="Remove records by a filter",
    responses={200: {"model": responses.DeleteResponse}},
)
async def remove_records(context: WriteRequest, where: requests.FilterParameter) -> Response:
    """Remove all records that match a filter, with their chunks, all or none."""

    def work() -> bytes:
        return _encode_removed(context, context.db.remove(where=where, caller=context.caller))

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.delete(
    "/v1/sessions/{session:path}",
    summary="Forget a session",
    responses={200: {"model": responses.DeleteResponse}},
)
async def forget_session(
    session: Annotated[str, Path(min_length=1, max_length=MAX_ID_BYTES)], context: WriteRequest
) -> Response:
    """Remove the turns and memories of a session, and the facts that have no other source."""

    def work() -> bytes:
        removed = context.db.memory.forget(session, caller=context.caller)
        if not removed:
            raise HttpError(404, f"There is no session {session!r}")
        return _encode_removed(context, removed)

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.delete(
    "/v1/records/{id:path}", summary="Remove a record", responses={200: {"model": responses.DeleteResponse}}
)
async def remove_record(record_id: Annotated[str, Path(alias="id")], context: WriteRequest) -> Response:
    """Remove a record and its chunks, by its id or short id, or by `path:lines`; a path alone means the whole file."""

    def work() -> bytes:
        found = context.db.find_removable([record_id], caller=context.caller)
        removed = context.db.remove([record.id for record in found], caller=context.caller)
        if not removed:
            raise HttpError(404, f"There is no record {record_id!r}")
        return _encode_removed(context, removed)

    return Response(await context.run(work), media_type=JSON_TYPE)


def _encode_removed(context: RequestContext, removed: int) -> bytes:
    context.metrics.record_write(WriteResult(0, 0, 0, removed))
    return encode_json({"removed": removed})


async def _respond(
    context: RequestContext, write: Callable[[], tuple[WriteResult, Sequence[Record]]]
) -> Response:
    def work() -> bytes:
        written, records = write()
        context.metrics.record_write(written)
        return encode_json(
            {
                "added": written.added,
                "updated": written.updated,
                "unchanged": written.unchanged,
                "ids": [record.id for record in records],
            }
        )

    return Response(await context.run(work), media_type=JSON_TYPE)
