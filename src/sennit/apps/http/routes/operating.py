"""For who runs the service: whether it is alive, ready, and how it fares."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from sennit.apps.http import shapes
from sennit.apps.http.answers import dumped
from sennit.apps.http.bodies import JSON, StrictRoute
from sennit.apps.http.door import Visit
from sennit.apps.http.errors import without_places
from sennit.apps.http.visits import Anybody, Reader

router: Final = APIRouter(tags=["operate"], route_class=StrictRoute, responses=shapes.PROBLEMS)


@router.get("/healthz", summary="Is it alive?", responses={200: {"model": shapes.Alive}})
async def alive() -> Response:
    """The process answers. Nothing else is looked at."""
    return Response(dumped({"status": "alive"}), media_type=JSON)


@router.get("/readyz", summary="Is it ready?", responses={200: {"model": shapes.Ready}})
async def ready(visit: Anybody) -> Response:
    """The database can be read, and how far its vectors are. With a token: by model, with what still waits."""
    return Response(dumped(await visit.run(lambda: _state(visit))), media_type=JSON)


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(visit: Reader) -> Response:
    """Requests, searches, sources that failed, records written and vectors that wait."""

    def work() -> bytes:
        visit.metrics.waiting.set(sum(state.pending for state in visit.db.store.models.progress()))
        return visit.metrics.page()

    return Response(await visit.run(work), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


def _state(visit: Visit) -> dict[str, Any]:
    db = visit.db
    progress = db.store.models.progress()
    if db.vectors.off:
        vectors = "off"
    elif not progress:
        vectors = "none"
    else:
        vectors = "building" if any(state.pending for state in progress) else "complete"
    state: dict[str, Any] = {"status": "ready", "database": "open", "vectors": vectors}
    if visit.admitted.known:
        error = db.keeper.last_error
        state["models"] = [
            {
                "model": one.model.name,
                "state": one.model.state,
                "waiting": one.pending,
                "records": one.total,
                "share": round(one.share, 6),
            }
            for one in progress
        ]
        state["last_error"] = None if error is None else without_places(str(error))
    return state
