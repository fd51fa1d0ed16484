"""The service as an ASGI application over an open database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

import sennit
from sennit.apps.http.addresses import Addresses
from sennit.apps.http.auth import Guard
from sennit.apps.http.bodies import JSON
from sennit.apps.http.desk import Desk
from sennit.apps.http.door import Door
from sennit.apps.http.errors import CODES, Refused, body_of, first_complaint, refusal_of
from sennit.apps.http.limits import Limits
from sennit.apps.http.logs import log
from sennit.apps.http.metrics import Metrics
from sennit.apps.http.routes import ROUTERS
from sennit.apps.http.visits import visit_of
from sennit.errors import SennitError

if TYPE_CHECKING:
    from sennit.engine import Database

ABOUT: Final = """\
Search, context for prompts, and writing, over one sennit database. What a caller may see and do is decided by the token.

Every error has the form `{"error": {"code", "message", "request_id"}}`. Every answer has the header `X-Request-Id`; a
sane one that is sent is kept.
"""

TAGS: Final = [
    {"name": "search", "description": "Find, and find out why."},
    {"name": "write", "description": "For tokens that may write."},
    {"name": "operate", "description": "For who runs the service."},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the service is offered."""

    limits: Limits = field(default_factory=Limits)
    addresses: Addresses = field(default_factory=Addresses)
    open: bool = False
    """Without tokens: whoever reaches it is the database's default caller."""
    read_only: bool = False
    log_queries: bool = False


def make_app(db: Database, options: Options | None = None) -> ASGIApp:
    """The service over an open database, which stays the caller's to close."""
    options = options or Options()
    desk = Desk(db, options.limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await desk.close()

    api = FastAPI(
        title="sennit",
        version=sennit.__version__,
        description=ABOUT,
        openapi_tags=TAGS,
        lifespan=lifespan,
        # The pages that show the documentation are fetched from other machines.
        docs_url=None,
        redoc_url=None,
    )
    for router in ROUTERS:
        api.include_router(router)
    for kind in (Refused, SennitError, RequestValidationError, HTTPException, Exception):
        api.add_exception_handler(kind, _told)
    app: ASGIApp = Door(
        api,
        desk=desk,
        guard=Guard(desk, open=options.open, read_only=options.read_only),
        addresses=options.addresses,
        metrics=Metrics(),
        log_queries=options.log_queries,
    )
    if options.addresses.origins:
        app = CORSMiddleware(
            app,
            allow_origins=options.addresses.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["x-request-id", "retry-after", "x-sennit-degraded"],
        )
    return app


async def _told(request: Request, error: Exception) -> Response:
    """An error as every error is told."""
    visit = visit_of(request)
    if isinstance(error, RequestValidationError):
        refused = Refused(422, first_complaint(error.errors()))
    elif isinstance(error, HTTPException):
        refused = _from_starlette(error)
    else:
        refused = refusal_of(error)
        if refused.status == 503 and isinstance(error, SennitError):
            log.error("request %s: %s", visit.id, error)
    return Response(body_of(refused, visit.id), refused.status, headers=refused.headers, media_type=JSON)


def _from_starlette(error: HTTPException) -> Refused:
    said = {404: "There is no such address.", 405: "This address takes another method."}
    status = error.status_code if error.status_code in CODES else 400
    return Refused(status, said.get(status, str(error.detail)), error.headers)
