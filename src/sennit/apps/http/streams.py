"""Server-sent events: a worker thread produces them, the event loop sends them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeAlias

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from sennit.apps.http.errors import encode_error, to_http_error
from sennit.apps.http.logs import log
from sennit.apps.http.request_context import RequestContext

EVENT_STREAM_TYPE: Final = "text/event-stream"

SendEvent: TypeAlias = Callable[[str, bytes], None]
"""Sends an event: its name, and its data as JSON on one line. Raises if the client has disconnected."""


class _StreamClosed(Exception):
    """The client has disconnected."""


class _EventResponse(StreamingResponse):
    """Sends events as they arrive. Sets `closed` when the response ends, for whatever reason."""

    def __init__(self, body: AsyncIterator[bytes], closed: threading.Event) -> None:
        super().__init__(body, media_type=EVENT_STREAM_TYPE)
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._closed.set()


async def stream_events(
    context: RequestContext, work: Callable[[SendEvent], None], *, io_bound: bool
) -> StreamingResponse:
    """Run `work` in a worker thread and stream the events that it sends.

    An error before the first event is raised. A later error becomes an event.
    """
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
    closed = threading.Event()

    def send_event(name: str, data: bytes) -> None:
        if closed.is_set():
            raise _StreamClosed
        loop.call_soon_threadsafe(queue.put_nowait, _encode_event(name, data))

    async def run_work() -> None:
        try:
            await context.run(lambda: work(send_event), io_bound=io_bound)
        except Exception as error:  # noqa: BLE001 - the client gets it, as a response or as an event
            closed.set()
            queue.put_nowait(error)
        queue.put_nowait(None)

    task = asyncio.create_task(run_work())
    first = await queue.get()
    if isinstance(first, Exception):
        raise first

    async def body() -> AsyncIterator[bytes]:
        event: bytes | Exception | None = first
        while event is not None:
            yield _error_event(event, context.id) if isinstance(event, Exception) else event
            event = await queue.get()
        await task

    return _EventResponse(body(), closed)


def _error_event(error: Exception, request_id: str) -> bytes:
    http_error = to_http_error(error)
    if http_error.status in (500, 503):
        log.error("request %s failed while streaming", request_id, exc_info=error)
    return _encode_event("error", encode_error(http_error, request_id))


def _encode_event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
