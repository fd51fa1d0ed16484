"""The one format of every error response: a status, a code and a message, without details of the server.

400 bad_request             not JSON, or malformed HTTP
401 unauthorized            no token, or an unknown one
403 forbidden               no write access, a record the caller could not read, or a foreign origin
404 not_found               no such record, recipe, collection or route
405 method_not_allowed      the route exists and does not support the method
408 request_timeout         the body did not arrive in time
409 conflict                the id belongs to a record that the caller may not see
413 payload_too_large       the body exceeds the limit
415 unsupported_media_type  the body is not application/json
421 wrong_host              the Host header names another service
422 invalid_request         a parameter has an invalid value
429 rate_limited            more requests than this caller may send
500 internal_error          a bug in sennit; the log has it under the request id
503 unavailable             overloaded, shutting down, or the database cannot be used
504 timeout                 the request did not finish in time
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from sennit.errors import (
    AccessDenied,
    Conflict,
    InvalidInput,
    MissingExtra,
    NotFound,
    SennitError,
    StoreFull,
    suggest,
)

ERROR_CODES: Final[Mapping[int, str]] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    409: "conflict",
    413: "payload_too_large",
    415: "unsupported_media_type",
    421: "wrong_host",
    422: "invalid_request",
    429: "rate_limited",
    500: "internal_error",
    503: "unavailable",
    504: "timeout",
}

MAX_MESSAGE_CHARACTERS: Final = 1000
"""A message may quote what the client sent, so it is cut."""

_ROUTING_MESSAGES: Final = {404: "There is no such route.", 405: "This route does not support the method."}
"""What the router of FastAPI refuses."""

_QUOTED_PATH: Final = re.compile(r"""(['"])(?:~|[A-Za-z]:)?[/\\].*?\1""")
_LOCATION: Final = re.compile(
    r"""\b[a-z][a-z0-9+.-]*://[^\s'",;)]+"""  # a URL
    r"""|(?<=server at )"[^"]*\""""  # a database server
    r"""|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"""  # an IPv4 address
    r"""|(?<![\w./])(?:~|[A-Za-z]:)?[/\\][^\s'",;:()]+"""  # a path
)


class HttpError(Exception):
    """An error response: status, message and headers."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


class UnknownField(InvalidInput):
    """A body has a field that it may not have."""

    def __init__(self, name: str, known: Collection[str]) -> None:
        advice = suggest(name, known).rstrip() or f"The fields are: {', '.join(known)}."
        super().__init__(f"There is no such field. {advice}")
        self.name = name


def to_http_error(error: Exception) -> HttpError:
    """The response to an exception. Errors about the caller's own input keep their message; the rest is for the log."""
    match error:
        case HttpError():
            return error
        case RequestValidationError():
            return HttpError(422, _describe_validation_errors(error.errors()))
        case HTTPException():
            status = error.status_code if error.status_code in ERROR_CODES else 400
            return HttpError(status, _ROUTING_MESSAGES.get(status, str(error.detail)), error.headers)
        case AccessDenied():
            return HttpError(403, str(error))
        case Conflict():
            return HttpError(409, str(error))
        case NotFound():
            return HttpError(404, str(error))
        case InvalidInput():
            return HttpError(422, str(error))
        case MissingExtra():
            return HttpError(503, str(error))
        case StoreFull():
            return HttpError(503, "The disk is full; nothing was written.", {"retry-after": "60"})
        case SennitError():
            return HttpError(
                503, "The database cannot be used right now; see the server's log.", {"retry-after": "5"}
            )
        case _:
            return HttpError(500, "Internal error; the server's log has it under this request id.")


def encode_error(error: HttpError, request_id: str) -> bytes:
    """The JSON body of an error response."""
    code = ERROR_CODES.get(error.status, "error")
    detail = {"code": code, "message": error.message[:MAX_MESSAGE_CHARACTERS], "request_id": request_id}
    return json.dumps({"error": detail}).encode()


def redact_locations(reason: str, database_path: str | None = None) -> str:
    """A reason for a failure, without the paths and URLs of the server."""
    if database_path:
        reason = reason.replace(database_path, "the database")
    return _LOCATION.sub("[…]", _QUOTED_PATH.sub("[…]", reason))


def _describe_validation_errors(errors: Sequence[Any]) -> str:
    """One sentence about an invalid request: the first error, and how many more there are."""
    error = errors[0]
    # "one" and "many" are the tags of OneOrMany, which the client does not know.
    steps = [str(step) for step in error["loc"] if step not in ("one", "many")]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    # A check of ours says what is wrong by itself; pydantic would put "Value error" before it.
    refusal = error.get("ctx", {}).get("error")
    message = refusal if isinstance(refusal, InvalidInput) else error["msg"]
    if isinstance(refusal, UnknownField):
        steps.append(refusal.name)
    return f"{'.'.join(steps)[:200]}: {message}{more}"
