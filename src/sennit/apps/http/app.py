"""Builds the HTTP service as an ASGI application over an open database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

import sennit
from sennit.apps.http.auth import Authenticator, SignIn
from sennit.apps.http.executor import DatabaseExecutor
from sennit.apps.http.hosts import HostPolicy
from sennit.apps.http.limits import Limits
from sennit.apps.http.metrics import Metrics
from sennit.apps.http.middleware import RequestMiddleware
from sennit.apps.http.routes import ROUTERS
from sennit.settings import SettingsFile

if TYPE_CHECKING:
    from sennit.engine import Database

API_DESCRIPTION: Final = """\
Search, context for prompts, and writes, over one sennit database. The token decides what a caller may see and do.

Every error has the form `{"error": {"code", "message", "request_id"}}`. Every response has the header `X-Request-Id`.
An `X-Request-Id` that the client sends is used if it is well-formed.
"""

TAGS: Final = [
    {"name": "search", "description": "Search, and explain results."},
    {"name": "inventory", "description": "See what the database holds."},
    {"name": "write", "description": "Write records. Needs a token with write access."},
    {"name": "feedback", "description": "Record what people do with results."},
    {"name": "page", "description": "What the web page needs besides."},
    {"name": "operate", "description": "Health, readiness and metrics."},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How the service is configured when it starts."""

    limits: Limits = field(default_factory=Limits)
    host_policy: HostPolicy = field(default_factory=HostPolicy)
    open_access: bool = False
    """Accept requests without a token, as the default caller of the database."""
    read_only: bool = False
    log_queries: bool = False
    sign_in: SignIn | None = None
    """A one-time code for the web page, beside the tokens of the database."""
    recipe_file: SettingsFile | None = None
    """The settings file in which administrators may save recipes; None if nobody may."""


def make_app(db: Database, options: HttpOptions | None = None) -> ASGIApp:
    """Build the service over an open database. The caller closes the database."""
    options = options or HttpOptions()
    executor = DatabaseExecutor(db, options.limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await executor.close()

    api = FastAPI(
        title="sennit",
        version=sennit.__version__,
        description=API_DESCRIPTION,
        openapi_tags=TAGS,
        lifespan=lifespan,
        # FastAPI's documentation pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
    )
    for router in ROUTERS:
        # Not by include_router, with which FastAPI would search each router for the route of a request, twice.
        api.router.routes.extend(router.routes)
    app: ASGIApp = RequestMiddleware(
        api,
        executor=executor,
        authenticator=Authenticator(
            executor,
            open_access=options.open_access,
            read_only=options.read_only,
            sign_in=options.sign_in,
            recipe_file=options.recipe_file,
        ),
        host_policy=options.host_policy,
        metrics=Metrics(),
        log_queries=options.log_queries,
    )
    if options.host_policy.origins:
        app = CORSMiddleware(
            app,
            allow_origins=options.host_policy.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["x-request-id", "retry-after", "x-sennit-degraded"],
        )
    return app
