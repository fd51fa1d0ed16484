"""Request bodies: read completely, within limits, and parsed as strict JSON."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.types import Receive

from sennit.apps.http.errors import HttpError
from sennit.apps.http.limits import Limits
from sennit.apps.http.request_context import get_request_context

DISCONNECT: Final = "http.disconnect"
JSON_TYPE: Final = "application/json"

MAX_INLINE_PARSE_BYTES: Final = 64 * 1024
"""Larger bodies are parsed in a thread, because parsing them on the event loop would delay other requests."""


class ClientDisconnected(Exception):
    """The client closed the connection before the body was complete."""


async def read_body(receive: Receive, content_length: list[str], limits: Limits) -> bytes:
    """Read the whole body, within the limits on size and time. `content_length` holds the Content-Length headers."""
    if any(not value.isdecimal() or int(value[:20]) > limits.max_body_bytes for value in content_length):
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.timeout_seconds):
            return await _receive_all(receive, limits)
    except TimeoutError as error:
        raise HttpError(408, f"The body did not arrive within {limits.timeout_seconds:g} s.") from error


async def _receive_all(receive: Receive, limits: Limits) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == DISCONNECT:
            raise ClientDisconnected
        part = message.get("body", b"")
        size += len(part)
        if size > limits.max_body_bytes:
            raise _too_large(limits)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


class StrictRoute(APIRoute):
    """A route that accepts only strict JSON, declared as such: no duplicate keys, no NaN, valid UTF-8.

    FastAPI declares and documents what an endpoint takes, and checks the values. Its own handler would also resolve
    trees of dependencies at each request, which costs more than all other layers together. So a dependency takes the
    request and nothing else, and no header or cookie is a parameter.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        takes, endpoint = self.dependant, self.endpoint
        if takes.header_params or takes.cookie_params or any(one.dependencies for one in takes.dependencies):
            raise TypeError(f"The endpoint of {self.path} takes more than a request, parameters and a body.")

        dependencies = {one.name: one.call for one in takes.dependencies if one.name and one.call}

        async def handle(request: Request) -> Response:
            body = await _read_json(request) if takes.body_params else None
            values: dict[str, Any] = {}
            if takes.request_param_name:
                values[takes.request_param_name] = request
            for name, dependency in dependencies.items():
                values[name] = await dependency(request)
            errors: list[Any] = []
            for fields, sent in (
                (takes.path_params, request.path_params),
                (takes.query_params, request.query_params),
            ):
                found, wrong = request_params_to_args(fields, sent)
                values |= found
                errors += wrong
            if takes.body_params:
                found, wrong = await request_body_to_args(takes.body_params, body, embed_body_fields=False)
                values |= found
                errors += wrong
            if errors:
                raise RequestValidationError(errors)
            response: Response = await endpoint(**values)
            return response

        return handle


async def _read_json(request: Request) -> Any:
    """The body of a request, parsed."""
    # An HTML form on a foreign page can send every content type but this one without a CORS preflight.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        raise HttpError(415, f"The body must be JSON, with Content-Type: {JSON_TYPE}.")
    body = get_request_context(request).body
    return (
        await asyncio.to_thread(parse_json, body) if len(body) > MAX_INLINE_PARSE_BYTES else parse_json(body)
    )


class _InvalidJson(ValueError):
    """JSON that the parser accepts and this service does not."""


def parse_json(body: bytes) -> Any:
    """Parse a body. Raises HttpError 400 if it is not strict JSON."""
    try:
        return json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_reject_duplicate_keys,
            parse_constant=_parse_number,
            parse_float=_parse_number,
        )
    except UnicodeDecodeError as error:
        raise HttpError(400, f"The body is not UTF-8: invalid byte at position {error.start}.") from error
    except json.JSONDecodeError as error:
        raise HttpError(400, f"The body is not JSON: {error}.") from error
    except RecursionError as error:
        raise HttpError(400, "The body is nested too deeply.") from error
    except _InvalidJson as error:
        raise HttpError(400, str(error)) from error
    except ValueError as error:
        raise HttpError(400, "The body has a number with too many digits.") from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        duplicate, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise _InvalidJson(f"The key {duplicate[:60]!r} occurs twice in one object.")
    return out


def _parse_number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _InvalidJson(f"{text[:60]} is not a finite number.")
    return value


def _too_large(limits: Limits) -> HttpError:
    return HttpError(
        413, f"The body may have at most {limits.max_body_bytes:,} bytes. Split it into several requests."
    )
