"""The state of the service over the last hour, and a report for a bug."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Response

import sennit
from sennit.apps.http import responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.errors import HttpError, redact_locations
from sennit.apps.http.request_context import ReadRequest, RequestContext
from sennit.apps.http.routes.inventory import describe_status
from sennit.apps.http.serializers import encode_json
from sennit.settings import SETTINGS

router: Final = APIRouter(tags=["operate"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

_FORBIDDEN: Final = {"model": responses.ErrorResponse, "description": "forbidden"}

REPORTED_PACKAGES: Final = ("fastapi", "starlette", "uvicorn", "numpy", "faiss-cpu", "tokenizers")


@router.get("/v1/state", summary="Show the last hour", responses={200: {"model": responses.StateResponse}})
async def show_state(context: ReadRequest) -> Response:
    """The status, and the searches of this process in the last hour: durations and degraded sources by minute."""

    def work() -> bytes:
        recent = context.metrics.recent
        return encode_json(
            {"status": describe_status(context), "hour": recent.to_list(), "sources": recent.sources()}
        )

    return Response(await context.run(work), media_type=JSON_TYPE)


@router.get(
    "/v1/report",
    summary="Get a report for a bug",
    responses={200: {"model": responses.ReportResponse}, 403: _FORBIDDEN},
)
async def make_report(context: ReadRequest) -> Response:
    """Versions, changed settings, counts and the last hour. Without credentials, addresses, paths, queries and records.

    Only for a caller who sees everything of its tenant.
    """
    if not context.caller.everything:
        raise HttpError(403, "Only a token that sees everything of its tenant may get the report.")
    return Response(encode_json(await context.run(lambda: _report(context))), media_type=JSON_TYPE)


def _report(context: RequestContext) -> dict[str, Any]:
    status = describe_status(context)
    return {
        "sennit": sennit.__version__,
        "python": sys.version.split()[0],
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": {name: version(name) for name in REPORTED_PACKAGES},
        "settings": _changed_settings(context),
        "roles": status["roles"],
        "records": status["records"],
        "collections": [one["records"] for one in status["collections"]],
        "folders": len(status["folders"]),
        "models": status["models"],
        "last_error": status["last_error"],
        "hour": context.metrics.recent.to_list(),
        "sources": context.metrics.recent.sources(),
    }


def _changed_settings(context: RequestContext) -> dict[str, Any]:
    """The settings that somebody has set; of those that may hold an address, a path or a credential, only the names."""
    settings = context.db.settings
    out: dict[str, Any] = {}
    for key in sorted(settings.origins):
        section, _, name = key.partition(".")
        known = SETTINGS.get(key)
        value = getattr(getattr(settings, section, None), name, None)
        is_plain = isinstance(value, (bool, int, float)) or (
            known is not None and not known.is_sensitive(value) and value == redact_locations(str(value))
        )
        out[key] = value if is_plain else "(set)"
    return out
