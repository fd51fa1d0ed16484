"""Writing: records, facts, and turns of conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Response

from sennit.apps.http import forms, shapes
from sennit.apps.http.answers import dumped
from sennit.apps.http.bodies import JSON, StrictRoute
from sennit.apps.http.door import Visit
from sennit.apps.http.errors import Refused
from sennit.apps.http.keeping import facts_of, keep, records_of, segments_of
from sennit.apps.http.visits import Writer
from sennit.records import Record
from sennit.stores.embedded.writing import Written

router: Final = APIRouter(
    tags=["write"],
    route_class=StrictRoute,
    responses={**shapes.PROBLEMS, 403: {"model": shapes.Error, "description": "forbidden"}},
)

_KEPT: Final[dict[int | str, dict[str, Any]]] = {
    200: {"model": shapes.Kept},
    409: {"model": shapes.Error, "description": "an id is taken"},
}


@router.post("/v1/records", summary="Add or replace records", responses=_KEPT)
async def add_records(given: forms.OneOrMany[forms.NewRecord], visit: Writer) -> Response:
    """Keep a record, or a list of records, all or none. When it is answered they are durable, and searches see them."""
    return await _kept(visit, lambda: records_of(forms.listed(given), visit.caller))


@router.post("/v1/segments", summary="Add turns of conversations", responses=_KEPT)
async def add_segments(given: forms.OneOrMany[forms.NewSegment], visit: Writer) -> Response:
    """Keep a turn of a conversation, or a list of turns, all or none. Keyword search has them at once."""
    return await _kept(visit, lambda: segments_of(forms.listed(given), visit.db, visit.caller))


@router.post("/v1/facts", summary="Add facts", responses=_KEPT)
async def add_facts(given: forms.OneOrMany[forms.NewFact], visit: Writer) -> Response:
    """Keep a fact, or a list of facts, all or none. What a fact supersedes ends where it begins, and stays in history."""
    return await _kept(visit, lambda: facts_of(forms.listed(given), visit.db, visit.caller))


@router.delete("/v1/records/{id:path}", summary="Remove a record", responses={200: {"model": shapes.Removed}})
async def remove_record(record_id: Annotated[str, Path(alias="id")], visit: Writer) -> Response:
    """Remove a record, and with it the fragments of it, from everywhere."""

    def work() -> bytes:
        removed = visit.db.remove([record_id], caller=visit.caller)
        if not removed:
            raise Refused(404, f"There is no record {record_id!r}")
        visit.metrics.wrote(Written(0, 0, 0, removed))
        return dumped({"removed": removed})

    return Response(await visit.run(work), media_type=JSON)


async def _kept(visit: Visit, made: Callable[[], Sequence[Record]]) -> Response:
    def work() -> bytes:
        records = made()
        written = keep(visit.db, visit.caller, records)
        visit.metrics.wrote(written)
        return dumped(
            {
                "added": written.added,
                "updated": written.updated,
                "unchanged": written.unchanged,
                "ids": [record.id for record in records],
            }
        )

    return Response(await visit.run(work), media_type=JSON)
