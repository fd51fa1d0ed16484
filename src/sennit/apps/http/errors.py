"""What a caller is told when something cannot be done: one form, a status and a code, and nothing about the server.

400 bad_request      not JSON, or not HTTP as it should be
401 unauthorized     no token, or one that is not known
403 forbidden        the token may only read, or not read what it would write; the page may not ask
404 not_found        no such record, recipe, collection or address
405 not_allowed      the address is there, and takes another method
408 too_slow         the request did not arrive in time
409 conflict         the id is taken by a record that the caller may not see
413 too_large        the body is larger than the service takes
415 unsupported      the body is not application/json
421 wrong_host       the request was meant for another name
422 invalid          a value that cannot be used
429 too_many         more requests than this caller may send
500 internal         a mistake in sennit; the log has it under the request's id
503 unavailable      busy, shutting down, or the database cannot be used
504 timeout          no answer in time
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sennit.errors import InvalidInput, MissingExtra, NotFound, SennitError, StoreFull

CODES: Final[Mapping[int, str]] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported",
    421: "wrong_host",
    422: "invalid",
    429: "too_many",
    500: "internal",
    503: "unavailable",
    504: "timeout",
}

MOST_SAID: Final = 1000
"""Characters of a message: it may quote what was sent."""

_QUOTED_PATH: Final = re.compile(r"""(['"])(?:~|[A-Za-z]:)?[/\\].*?\1""")
_PLACES: Final = re.compile(
    r"""\b[a-z][a-z0-9+.-]*://[^\s'",;)]+"""  # an address
    r"""|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"""  # a machine
    r"""|(?<![\w./])(?:~|[A-Za-z]:)?[/\\][^\s'",;:()]+"""  # a path
)


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})


def refusal_of(error: Exception) -> Refused:
    """What the caller is told of an error. What came from the caller's own values is said; the rest is for the log."""
    match error:
        case Refused():
            return error
        case NotFound():
            return Refused(404, str(error))
        case InvalidInput():
            return Refused(422, str(error))
        case MissingExtra():
            return Refused(503, str(error))
        case StoreFull():
            return Refused(503, "The disk is full; nothing was written.", {"retry-after": "60"})
        case SennitError():
            return Refused(
                503, "The database cannot be used right now; the log says why.", {"retry-after": "5"}
            )
        case _:
            return Refused(500, "Something that should not happen; the log has it under this request's id.")


def body_of(refused: Refused, request_id: str) -> bytes:
    """An error as it is sent."""
    code = CODES.get(refused.status, "error")
    error = {"code": code, "message": refused.message[:MOST_SAID], "request_id": request_id}
    return json.dumps({"error": error}).encode()


def without_places(reason: str, own: str | None = None) -> str:
    """Why a source did not answer, without the paths and addresses of the server; `own` is where its database is."""
    if own:
        reason = reason.replace(own, "the database")
    return _PLACES.sub("[…]", _QUOTED_PATH.sub("[…]", reason))


def first_complaint(errors: Sequence[Any]) -> str:
    """What is wrong with a request, in a sentence: the first of what the checker found, and how many more."""
    error = errors[0]
    where = ".".join(str(step) for step in error["loc"] if step not in ("one", "many"))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{where[:200]}: {error['msg']}{more}"
