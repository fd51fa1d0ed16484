"""The context of one request, and the FastAPI dependencies by which routes receive it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from fastapi import Depends, Request, Security
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from sennit.apps.http.auth import ANONYMOUS, Principal
from sennit.apps.http.errors import HttpError
from sennit.apps.http.executor import DatabaseExecutor
from sennit.apps.http.metrics import Metrics

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.engine.answers import Answer
    from sennit.privacy import Caller
    from sennit.results import Degraded, SearchResult

CONTEXT_KEY: Final = "sennit"
"""The key of the request context in the ASGI scope."""

T = TypeVar("T")


@dataclass(slots=True)
class RequestContext:
    """What the service knows about one request: who sent it, and what the log will say about it."""

    id: str
    executor: DatabaseExecutor = field(repr=False)
    metrics: Metrics = field(repr=False)
    principal: Principal = ANONYMOUS
    body: bytes = field(default=b"", repr=False)
    status: int = 0
    bytes_sent: int = 0
    log_fields: dict[str, object] = field(default_factory=dict)
    """Further fields of this request's log line."""
    log_queries: bool = False

    @property
    def db(self) -> Database:
        return self.executor.db

    @property
    def caller(self) -> Caller:
        return self.principal.caller

    async def run(self, work: Callable[[], T], *, io_bound: bool = False) -> T:
        """Run `work` in a worker thread. `io_bound` work mostly waits for a language model."""
        return await self.executor.run(work, io_bound=io_bound)

    def record_search(self, result: SearchResult) -> None:
        """Add a search to the metrics and to the log line."""
        self.metrics.record_search(result)
        self.log_fields |= {"recipe": result.recipe, "hits": len(result)}
        self._log_outcome(result.query, result.degraded)

    def record_answer(self, answer: Answer) -> None:
        """Add a generated answer to the metrics and to the log line."""
        self.metrics.record_failures(answer.degraded)
        self.log_fields |= {"model": answer.model or None, "citations": len(answer.citations)}
        self._log_outcome(answer.query, answer.degraded)

    def _log_outcome(self, query: str, degraded: Sequence[Degraded]) -> None:
        if degraded:
            self.log_fields["degraded"] = [failure.source for failure in degraded]
        if self.log_queries:
            self.log_fields["query"] = query


def get_request_context(request: Request) -> RequestContext:
    """The context that the middleware attached to a request."""
    context: RequestContext = request.scope[CONTEXT_KEY]
    return context


class TokenDependency(SecurityBase):
    """Gives an endpoint the context of its request, and documents that the request needs a token.

    The middleware has already checked the token.
    """

    def __init__(self, *, write: bool) -> None:
        self.scheme_name = "token"
        self.model = HTTPBearer(description="A token made by `sennit tokens add NAME`.")
        self._write = write

    async def __call__(self, request: Request) -> RequestContext:
        context = get_request_context(request)
        if self._write and not context.principal.can_write:
            raise HttpError(
                403, "This token has no write access; 'sennit tokens add NAME --write' makes one that has."
            )
        return context


async def _public(request: Request) -> RequestContext:
    return get_request_context(request)


PublicRequest = Annotated[RequestContext, Depends(_public)]
"""A request to a route that needs no token."""

ReadRequest = Annotated[RequestContext, Security(TokenDependency(write=False))]
"""A request with a valid token."""

WriteRequest = Annotated[RequestContext, Security(TokenDependency(write=True))]
"""A request with a token that has write access."""
