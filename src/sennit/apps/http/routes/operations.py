"""Health, readiness and metrics, for the operator."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Response
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from sennit.apps.http import responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import redact_locations
from sennit.apps.http.request_context import PublicRequest, ReadRequest, RequestContext
from sennit.apps.http.serializers import encode_json

router: Final = APIRouter(tags=["operate"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)


@router.get("/healthz", summary="Check liveness", responses={200: {"model": responses.HealthResponse}})
async def health() -> Response:
    """The process responds. Nothing else is checked."""
    return Response(encode_json({"status": "alive"}), media_type=JSON_TYPE)


@router.get("/readyz", summary="Check readiness", responses={200: {"model": responses.ReadinessResponse}})
async def readiness(context: PublicRequest) -> Response:
    """The database can be read, and how many vectors are built. With a token, the progress of each model."""
    return Response(encode_json(await context.run(lambda: _readiness(context))), media_type=JSON_TYPE)


@router.get(
    "/metrics",
    summary="Get Prometheus metrics",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(context: ReadRequest) -> Response:
    """Requests, searches, source failures, written records and pending vectors."""

    def work() -> bytes:
        context.metrics.vectors_pending.set(context.db.admin.pending_vectors())
        return context.metrics.render()

    return Response(await context.run(work), headers={"content-type": CONTENT_TYPE_PLAIN_0_0_4})


def _readiness(context: RequestContext) -> dict[str, Any]:
    admin = context.db.admin
    progress = admin.models()
    if admin.embedding_is_off:
        vectors = "off"
    elif not progress:
        vectors = "none"
    else:
        vectors = "building" if any(state.pending for state in progress) else "complete"
    values: dict[str, Any] = {"status": "ready", "database": "open", "vectors": vectors}
    if context.principal.authenticated:
        error = admin.last_error
        values["models"] = [
            {
                "model": state.model.name,
                "state": state.model.state,
                "pending": state.pending,
                "total": state.total,
                "progress": round(state.share, 6),
            }
            for state in progress
        ]
        values["last_error"] = None if error is None else redact_locations(str(error))
        values["roles"] = admin.bindings
        values["behind"] = admin.behind()
    return values
