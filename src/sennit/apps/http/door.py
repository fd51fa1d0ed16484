"""What every request passes before anything looks at it: its id, its name, its token, its rate and its size."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sennit.apps.http.auth import NOBODY, Admitted, Guard
from sennit.apps.http.bodies import Gone, replay, whole
from sennit.apps.http.errors import Refused, body_of, refusal_of
from sennit.apps.http.limits import Rates
from sennit.apps.http.logs import event, log
from sennit.apps.http.metrics import OTHER, Metrics

if TYPE_CHECKING:
    from sennit.apps.http.addresses import Addresses
    from sennit.apps.http.desk import Desk
    from sennit.engine import Database
    from sennit.engine.answering import Answer
    from sennit.privacy import Caller
    from sennit.results import Degraded, Result

VISIT: Final = "sennit"
"""Where a request's visit is in its scope."""

LEFT: Final = 499
"""The status in the log when the client has left before it was answered."""

_SANE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")

T = TypeVar("T")


@dataclass(slots=True)
class Visit:
    """One request on its way through the service."""

    id: str
    desk: Desk = field(repr=False)
    metrics: Metrics = field(repr=False)
    admitted: Admitted = NOBODY
    status: int = 0
    sent: int = 0
    received: int = 0
    notes: dict[str, object] = field(default_factory=dict)
    """Further fields of its line in the log."""
    log_queries: bool = False

    @property
    def db(self) -> Database:
        return self.desk.db

    @property
    def caller(self) -> Caller:
        return self.admitted.caller

    async def run(self, work: Callable[[], T], *, waits: bool = False) -> T:
        """What `work` comes to, in a worker thread; `waits`: it is mostly waiting for a language model."""
        return await self.desk.run(work, waits=waits)

    def searched(self, result: Result) -> None:
        """Count a search, and note what the log says of it."""
        self.metrics.searched(result)
        self.notes |= {"recipe": result.recipe, "hits": len(result)}
        self._note(result.query, result.degraded)

    def answered(self, answer: Answer) -> None:
        """Count what an answer went without, and note what the log says of it."""
        self.metrics.missed(answer.degraded)
        self.notes |= {"model": answer.model or None, "citations": len(answer.citations)}
        self._note(answer.query, answer.degraded)

    def _note(self, query: str, degraded: Sequence[Degraded]) -> None:
        if degraded:
            self.notes["degraded"] = [one.source for one in degraded]
        if self.log_queries:
            self.notes["query"] = query


class Door:
    """The outermost layer. Whatever happens inside, the client gets an answer and the log a line."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        desk: Desk,
        guard: Guard,
        addresses: Addresses,
        metrics: Metrics,
        log_queries: bool = False,
    ) -> None:
        self._app = app
        self._desk = desk
        self._guard = guard
        self._addresses = addresses
        self._metrics = metrics
        self._log_queries = log_queries
        self._rates = Rates(desk.limits.rate)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._visited(scope, receive, send)

    async def _visited(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        visit = Visit(
            _request_id(_headers(scope, b"x-request-id")),
            self._desk,
            self._metrics,
            log_queries=self._log_queries,
        )
        scope[VISIT] = visit
        outward = _answering(visit, send)
        self._metrics.in_flight.inc()
        try:
            body = await self._let_in(scope, receive, visit)
            await self._app(scope, receive if body is None else replay(body, receive), outward)
        except Gone:
            visit.status = LEFT
        except Exception as error:  # noqa: BLE001 - the client gets an answer, the log gets the rest
            refused = refusal_of(error)
            if refused.status == 500:
                log.exception("request %s failed", visit.id)
            if not visit.status:
                await _refuse(outward, refused, visit.id)
        finally:
            self._metrics.in_flight.dec()
            self._ended(scope, visit, time.perf_counter() - began)

    async def _let_in(self, scope: Scope, receive: Receive, visit: Visit) -> bytes | None:
        """Everything that is checked before a request is looked at; its body, where it has one."""
        self._addresses.check(_headers(scope, b"host"), _headers(scope, b"origin"))
        visit.admitted = self._guard.admit(_headers(scope, b"authorization"), scope["path"])
        wait = self._rates.take(visit.admitted.name)
        if wait:
            raise Refused(429, "Too many requests; slow down.", {"retry-after": str(int(wait) + 1)})
        length = _headers(scope, b"content-length")
        if not length and not _headers(scope, b"transfer-encoding"):
            return None
        body = await whole(receive, length, self._desk.limits)
        visit.received = len(body)
        return body

    def _ended(self, scope: Scope, visit: Visit, seconds: float) -> None:
        # The route's template: what is in its place may be an id.
        route = getattr(scope.get("route"), "path_format", OTHER)
        self._metrics.answered(route, scope["method"], visit.status, seconds)
        event(
            "request",
            request_id=visit.id,
            method=scope["method"][:20],
            route=route,
            status=visit.status,
            milliseconds=round(seconds * 1000, 3),
            token=visit.admitted.name or None,
            bytes_in=visit.received,
            bytes_out=visit.sent,
            **visit.notes,
        )


def _answering(visit: Visit, send: Send) -> Send:
    """A send that adds what every answer has, and keeps count."""

    async def outward(message: Message) -> None:
        if message["type"] == "http.response.start":
            visit.status = message["status"]
            message["headers"] = [
                *message.get("headers", ()),
                (b"x-request-id", visit.id.encode()),
                (b"x-content-type-options", b"nosniff"),
                (b"cache-control", b"no-store"),
            ]
        else:
            visit.sent += len(message.get("body", b""))
        await send(message)

    return outward


async def _refuse(send: Send, refused: Refused, request_id: str) -> None:
    body = body_of(refused, request_id)
    headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in refused.headers.items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Scope, name: bytes) -> list[str]:
    """The values of a header, in order."""
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _request_id(given: list[str]) -> str:
    """The id that the client gave, if it can be written anywhere as it is; else a new one."""
    return given[0] if len(given) == 1 and _SANE_ID.fullmatch(given[0]) else uuid.uuid4().hex
