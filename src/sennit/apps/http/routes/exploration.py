"""What looks into a search: what would admit a record, and the source of a result."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import redact_locations
from sennit.apps.http.request_context import ReadRequest, RequestContext
from sennit.apps.http.serializers import encode_json, serialize_record, serialize_why
from sennit.engine.admission import Admission, Change
from sennit.errors import NotFound
from sennit.folders import ReadError
from sennit.privacy import Caller
from sennit.records import FRAGMENT_FIELD, MAX_ID_BYTES, Record
from sennit.results import Why

router: Final = APIRouter(tags=["search"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

CONTEXT_LINES: Final = 400
"""Lines of a file before and after a record."""

TEXT_MATCHES: Final = 20
"""Records among which a pasted text is looked for."""


@router.post(
    "/v1/why",
    summary="Find what would admit a record",
    responses={200: {"model": responses.AdmissionResponse}},
)
async def what_admits(body: requests.WhyBody, context: ReadRequest) -> Response:
    """Where a record was lost, and the smallest change of limit, weight, filter, threshold or caller that admits it.

    Every change was tried. `reference` may also be a part of the record's text.
    """

    def work() -> bytes:
        request = body.to_request(context.caller)
        try:
            record = _find_record(context, body.reference, context.caller)
        except NotFound:
            return encode_json(_describe_hidden(context, body))
        return encode_json(_describe(context, record, context.db.what_admits(request, record.id)))

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get(
    "/v1/source",
    summary="Read the source of a record",
    responses={200: {"model": responses.SourceTextResponse}},
)
async def read_source(
    context: ReadRequest,
    record_id: Annotated[str, Query(alias="id", min_length=1, max_length=MAX_ID_BYTES)],
) -> Response:
    """The lines of the file that a record is from, with those around it, if the caller may see the file.

    In a file without lines, it is the part that the record is cited by. Without a file that can be read, it is the
    stored text of the record.
    """

    def work() -> bytes:
        record = context.db.find(record_id, caller=context.caller)
        path = context.db.files.locate(record) or record.path
        fragment = record.metadata.get(FRAGMENT_FIELD)
        first, last = record.lines or (1, 1)
        values = {
            "path": record.path or "",
            "text": record.text,
            "first_line": first,
            "file": False,
            "problem": "",
        }
        try:
            if path is not None and fragment:
                part = context.db.files.read(f"{path}#{fragment}", caller=context.caller)
                values |= {"text": part.text, "file": True}
            elif path is not None:
                found = context.db.files.read(
                    path, lines=(max(1, first - CONTEXT_LINES), last + CONTEXT_LINES), caller=context.caller
                )
                values |= {"text": found.text, "first_line": found.first, "file": True}
        except ReadError as error:
            values["problem"] = redact_locations(str(error))
        return encode_json(values)

    return Response(await context.run(work), media_type=JSON_TYPE)


def _find_record(context: RequestContext, reference: str, caller: Caller) -> Record:
    """The record that a reference means, or the one that a caller may see with this text."""
    try:
        return context.db.find(reference, caller=caller)
    except NotFound:
        wanted = " ".join(reference.split()).casefold()
        hits = context.db.search(reference, recipe="keyword", limit=TEXT_MATCHES, caller=caller).hits
        for hit in hits:
            if wanted in " ".join(f"{hit.title} {hit.text}".split()).casefold():
                return hit.record
        raise


def _describe(context: RequestContext, record: Record, admission: Admission) -> dict[str, Any]:
    return {
        **admission.to_dict(),
        "why": serialize_why(admission.why, context.db),
        "record": serialize_record(record),
    }


def _describe_hidden(context: RequestContext, body: requests.WhyBody) -> dict[str, Any]:
    """Explain to somebody who acts for another caller that this caller may not see the record."""
    signed_in = context.principal.acting
    if signed_in is None:
        raise NotFound(f"There is no record {body.reference[:80]!r}")
    record = _find_record(context, body.reference, signed_in)
    caller = context.caller
    needed = Caller(
        clearance=record.sensitivity,
        scopes=caller.scopes if record.scope in caller.scopes else {*caller.scopes, record.scope},
        tenant=caller.tenant,
    )
    found = context.db.search(body.to_request(needed))
    rank = next((hit.rank for hit in found if hit.id == record.id), None)
    reason = f"the caller may not see it: it is {record.sensitivity}, in the scope {record.scope}"
    why = Why(record.id, False, "caller", reason, None, None, None, ())
    message = f"Give the caller the clearance {record.sensitivity!r} and the scope {record.scope!r}."
    change = Change("caller", "caller", caller.clearance, record.sensitivity, message, rank or 0)
    return _describe(context, record, Admission(why, (change,) if rank else (), 1))
