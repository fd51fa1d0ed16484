"""The body of a request: read whole, within limits, and taken as JSON without guessing."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message, Receive

from sennit.apps.http.errors import Refused
from sennit.apps.http.limits import Limits

DISCONNECT: Final = "http.disconnect"
JSON: Final = "application/json"

QUICK: Final = 64 * 1024
"""Bytes of JSON that are read where they are; more of it would keep other requests waiting."""


class Gone(Exception):
    """The client has left."""


async def whole(receive: Receive, length: list[str], limits: Limits) -> bytes:
    """The body, if it is small enough and arrives in time; `length` holds the Content-Length headers."""
    if any(not value.isdecimal() or int(value[:20]) > limits.body for value in length):
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.seconds):
            return await _gathered(receive, limits)
    except TimeoutError as error:
        raise Refused(408, f"The body did not arrive within {limits.seconds:g} s.") from error


async def _gathered(receive: Receive, limits: Limits) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == DISCONNECT:
            raise Gone
        part = message.get("body", b"")
        size += len(part)
        if size > limits.body:
            raise _too_large(limits)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def replay(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the body that was read, and after that what comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class StrictRequest(Request):
    """A request whose JSON has been read already."""

    def __init__(self, request: Request, value: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._value = value

    async def json(self) -> Any:
        return self._value


class StrictRoute(APIRoute):
    """A route whose body is plain JSON and said to be: no key twice, no NaN, valid UTF-8."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler

        async def strict(request: Request) -> Response:
            body = await request.body()
            # A form of a foreign page can say anything but this without asking first.
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
                raise Refused(415, f"The body must be JSON, and Content-Type must say so: {JSON}.")
            value = await asyncio.to_thread(parsed, body) if len(body) > QUICK else parsed(body)
            inner = StrictRequest(request, value)
            inner._body = body
            return await handler(inner)

        return strict


class _Unusable(ValueError):
    """JSON by its form, and yet not to be taken."""


def parsed(body: bytes) -> Any:
    """The JSON value of a body."""
    try:
        return json.loads(
            body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_number, parse_float=_number
        )
    except UnicodeDecodeError as error:
        raise Refused(400, f"The body is not UTF-8: byte {error.start} cannot be read.") from error
    except json.JSONDecodeError as error:
        raise Refused(400, f"The body is not JSON: {error}.") from error
    except RecursionError as error:
        raise Refused(400, "The body is nested too deep.") from error
    except _Unusable as error:
        raise Refused(400, str(error)) from error
    except ValueError as error:
        raise Refused(400, "The body has a number with too many digits.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _Unusable(f"The key {twice[:60]!r} stands twice in one object.")
    return out


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Unusable(f"{text[:60]} is not a number that can be kept.")
    return value


def _too_large(limits: Limits) -> Refused:
    return Refused(413, f"The body may have {limits.body:,} bytes. Send it in parts.")
