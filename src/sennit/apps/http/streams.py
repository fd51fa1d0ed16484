"""An answer in parts, as server-sent events: a worker thread tells them, the event loop sends them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sennit.apps.http.door import Visit
from sennit.apps.http.errors import body_of, refusal_of
from sennit.apps.http.logs import log

EVENTS: Final = "text/event-stream"

Tell: TypeAlias = Callable[[str, bytes], None]
"""Sends an event: its name, and its data as JSON on one line. Raises when nobody listens any more."""


class _Unheard(Exception):
    """Nobody listens any more."""


class _Events(StreamingResponse):
    """Events as they come; `left` is set when no more are sent, for whatever reason."""

    def __init__(self, body: AsyncIterator[bytes], left: threading.Event) -> None:
        super().__init__(body, media_type=EVENTS)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left.set()


async def streamed(visit: Visit, work: Callable[[Tell], None], *, waits: bool) -> StreamingResponse:
    """What `work` tells, from a worker thread. An error before the first event is raised; a later one is an event."""
    loop = asyncio.get_running_loop()
    told: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
    left = threading.Event()

    def tell(name: str, data: bytes) -> None:
        if left.is_set():
            raise _Unheard
        loop.call_soon_threadsafe(told.put_nowait, _event(name, data))

    async def worked() -> None:
        try:
            await visit.run(lambda: work(tell), waits=waits)
        except Exception as error:  # noqa: BLE001 - it is told to the client, as an answer or as an event
            left.set()
            told.put_nowait(error)
        told.put_nowait(None)

    worker = asyncio.create_task(worked())
    first = await told.get()
    if isinstance(first, Exception):
        raise first

    async def body() -> AsyncIterator[bytes]:
        event: bytes | Exception | None = first
        while event is not None:
            yield _failure(event, visit.id) if isinstance(event, Exception) else event
            event = await told.get()
        await worker

    return _Events(body(), left)


def _failure(error: Exception, request_id: str) -> bytes:
    refused = refusal_of(error)
    if refused.status in (500, 503):
        log.error("request %s failed in its answer", request_id, exc_info=error)
    return _event("error", body_of(refused, request_id))


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
