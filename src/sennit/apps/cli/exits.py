"""Exit codes, and errors in words. The codes are a promise: docs/cli.md lists them."""

from __future__ import annotations

import errno
from typing import Final, NamedTuple

import click

from sennit.errors import InvalidInput, MissingExtra, NotFound, SourceError, StoreError

OK: Final = 0
UNEXPECTED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
STORE: Final = 4
SOURCES: Final = 5
PROBLEMS: Final = 6
REFUSED: Final = 7
INTERRUPTED: Final = 130

MEANINGS: Final[dict[int, str]] = {
    OK: "done; also when a search found nothing",
    UNEXPECTED: "something that should not happen; SENNIT_DEBUG=1 shows where",
    USAGE: "wrong usage, or a value that cannot be used",
    NOT_FOUND: "a record, file, recipe, model or database that does not exist",
    STORE: "the database cannot do what was asked",
    SOURCES: "no source of the search answered, or an embedding model failed",
    PROBLEMS: "doctor found problems that remain",
    REFUSED: "a file that may not be read, or that has no text to read",
    INTERRUPTED: "interrupted",
}

EPILOG: Final = "\b\nExit codes:\n" + "\n".join(f"  {code:<5}{text}" for code, text in MEANINGS.items())

_CODES: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NotFound, NOT_FOUND),
    (InvalidInput, USAGE),
    (StoreError, STORE),
    (SourceError, SOURCES),
    (MissingExtra, SOURCES),
    (click.ClickException, USAGE),
    (OSError, STORE),
)


class Complaint(NamedTuple):
    """An error as it is shown."""

    type: str
    message: str


def code_of(error: BaseException) -> int:
    """The exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNEXPECTED)


def describe_error(error: BaseException) -> Complaint:
    """What happened, without a traceback."""
    if isinstance(error, click.UsageError):
        usage = f"\n{error.ctx.get_usage()}" if error.ctx else ""
        return Complaint("UsageError", f"{error.format_message()}{usage}")
    if isinstance(error, click.ClickException):
        return Complaint("UsageError", error.format_message())
    if isinstance(error, OSError):
        what = error.strerror or str(error)
        advice = " Free some space and try again." if error.errno == errno.ENOSPC else ""
        return Complaint(type(error).__name__, f"{error.filename or 'The system'}: {what}.{advice}")
    if code_of(error) == UNEXPECTED:
        return Complaint(
            type(error).__name__,
            f"This should not happen: {type(error).__name__}: {error}. "
            "SENNIT_DEBUG=1 shows where; please report it.",
        )
    return Complaint(type(error).__name__, str(error))
