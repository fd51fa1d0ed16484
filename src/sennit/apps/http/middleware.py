"""The outermost ASGI layer: request id, host check, authentication, rate limit, body limit, log line and metrics."""

from __future__ import annotations

import re
import time
import uuid
from typing import TYPE_CHECKING, Final

from fastapi import FastAPI
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

from sennit.apps.http.bodies import ClientDisconnected, read_body
from sennit.apps.http.errors import HttpError, encode_error, to_http_error
from sennit.apps.http.limits import RateLimiter
from sennit.apps.http.logs import log, log_event
from sennit.apps.http.metrics import OTHER, Metrics
from sennit.apps.http.request_context import CONTEXT_KEY, RequestContext
from sennit.errors import SennitError

if TYPE_CHECKING:
    from sennit.apps.http.auth import Authenticator
    from sennit.apps.http.executor import DatabaseExecutor
    from sennit.apps.http.hosts import HostPolicy

CLIENT_CLOSED_REQUEST: Final = 499
"""The status in the log when the client disconnects before the response. nginx uses the same number."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


class RequestMiddleware:
    """Whatever happens inside, the client gets a response and the log gets a line."""

    def __init__(
        self,
        api: FastAPI,
        *,
        executor: DatabaseExecutor,
        authenticator: Authenticator,
        host_policy: HostPolicy,
        metrics: Metrics,
        log_queries: bool = False,
    ) -> None:
        self._api = api
        self._executor = executor
        self._authenticator = authenticator
        self._host_policy = host_policy
        self._metrics = metrics
        self._log_queries = log_queries
        self._rate_limiter = RateLimiter(executor.limits.requests_per_second)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._api(scope, receive, send)
        elif scope["type"] == "http":
            await self._handle(scope, receive, send)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        context = RequestContext(
            _request_id(_headers(scope, b"x-request-id")),
            self._executor,
            self._metrics,
            log_queries=self._log_queries,
        )
        scope[CONTEXT_KEY] = context
        send_response = _with_common_headers(context, send)
        self._metrics.in_flight.inc()
        try:
            await self._check(scope, receive, context)
            # Not the application itself: its own middleware would only handle errors, as this does.
            scope["app"] = self._api
            await self._api.router(scope, receive, send_response)
        except ClientDisconnected:
            context.status = CLIENT_CLOSED_REQUEST
        except Exception as error:  # noqa: BLE001 - the client gets a response, the log gets the details
            http_error = to_http_error(error)
            if http_error.status == 500 or context.status:
                log.exception("request %s failed", context.id)
            elif isinstance(error, SennitError) and http_error.status == 503:
                log.error("request %s: %s", context.id, error)
            elif http_error.status == 405:
                http_error.headers["Allow"] = ", ".join(sorted(self._allowed_methods(scope)))
            if not context.status:
                await _send_error(send_response, http_error, context.id)
        finally:
            self._metrics.in_flight.dec()
            self._record(scope, context, time.perf_counter() - started)

    async def _check(self, scope: Scope, receive: Receive, context: RequestContext) -> None:
        """Check a request and read its body before any route sees it."""
        self._host_policy.check(_headers(scope, b"host"), _headers(scope, b"origin"))
        context.principal = self._authenticator.authenticate(
            _headers(scope, b"authorization"), scope["path"], _headers(scope, b"x-sennit-as")
        )
        wait = self._rate_limiter.acquire(context.principal.token_name)
        if wait:
            raise HttpError(429, "Too many requests; slow down.", {"retry-after": str(int(wait) + 1)})
        content_length = _headers(scope, b"content-length")
        if content_length or _headers(scope, b"transfer-encoding"):
            context.body = await read_body(receive, content_length, self._executor.limits)

    def _allowed_methods(self, scope: Scope) -> set[str]:
        """The methods of all routes with this path; the router knows only those of the first."""
        return {
            method
            for route in self._api.routes
            if route.matches(scope)[0] is not Match.NONE
            for method in getattr(route, "methods", None) or ()
        }

    def _record(self, scope: Scope, context: RequestContext, seconds: float) -> None:
        # The route template and not the path, which may contain a record's id.
        route = getattr(scope.get("route"), "path_format", OTHER)
        self._metrics.record_request(route, scope["method"], context.status, seconds)
        log_event(
            "request",
            request_id=context.id,
            method=scope["method"][:20],
            route=route,
            status=context.status,
            milliseconds=round(seconds * 1000, 3),
            token=context.principal.token_name or None,
            acting=context.principal.acting is not None or None,
            bytes_in=len(context.body),
            bytes_out=context.bytes_sent,
            **context.log_fields,
        )


def _with_common_headers(context: RequestContext, send: Send) -> Send:
    """A send callable that adds the headers every response has, and records status and size."""

    async def send_response(message: Message) -> None:
        if message["type"] == "http.response.start":
            context.status = message["status"]
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", context.id.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ]
        else:
            context.bytes_sent += len(message.get("body", b""))
        await send(message)

    return send_response


async def _send_error(send: Send, error: HttpError, request_id: str) -> None:
    body = encode_error(error, request_id)
    headers = [
        (name.lower().encode(), value.encode("latin-1", "replace")) for name, value in error.headers.items()
    ]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Scope, name: bytes) -> list[str]:
    """All values of a header, in order."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _request_id(sent: list[str]) -> str:
    """The id that the client sent if it is well-formed, or else a new one."""
    return sent[0] if len(sent) == 1 and _REQUEST_ID.fullmatch(sent[0]) else uuid.uuid4().hex
