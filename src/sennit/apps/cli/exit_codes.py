"""Exit codes and error messages. The codes are part of the interface: docs/reference/cli.md lists them."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final, NamedTuple

import click

from sennit.errors import (
    AccessDenied,
    Conflict,
    InvalidInput,
    MissingExtra,
    NotFound,
    SourceError,
    StoreError,
)

OK: Final = 0
UNEXPECTED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
STORE_FAILED: Final = 4
SOURCES_FAILED: Final = 5
PROBLEMS_FOUND: Final = 6
REFUSED: Final = 7
NOT_CONFIRMED: Final = 8
INTERRUPTED: Final = 130

MEANINGS: Final[dict[int, str]] = {
    OK: "success, also when a search finds nothing",
    UNEXPECTED: "unexpected error; SENNIT_DEBUG=1 prints the traceback",
    USAGE: "wrong usage or invalid value",
    NOT_FOUND: "a record, file, recipe, model or database does not exist",
    STORE_FAILED: "the database could not complete the operation",
    SOURCES_FAILED: "no search source answered, or the embedding model failed",
    PROBLEMS_FOUND: "doctor found problems, or could not repair all of them",
    REFUSED: "the file may not be read, or contains no text",
    NOT_CONFIRMED: "held-out queries do not confirm what was found, so nothing was written",
    INTERRUPTED: "interrupted",
}

EPILOG: Final = "\b\nExit codes:\n" + "\n".join(f"  {code:<5}{text}" for code, text in MEANINGS.items())

_CODES: Final[tuple[tuple[type[Exception], int], ...]] = (
    (NotFound, NOT_FOUND),
    (InvalidInput, USAGE),
    (AccessDenied, REFUSED),
    (Conflict, USAGE),
    (StoreError, STORE_FAILED),
    (SourceError, SOURCES_FAILED),
    (MissingExtra, SOURCES_FAILED),
    (click.ClickException, USAGE),
    (FileNotFoundError, NOT_FOUND),
    (IsADirectoryError, USAGE),
    (NotADirectoryError, USAGE),
    (OSError, STORE_FAILED),
)


class ErrorMessage(NamedTuple):
    """An error as the user sees it."""

    type: str
    message: str


def exit_code_for(error: BaseException) -> int:
    """Return the exit code for an error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNEXPECTED)


def describe_error(error: BaseException) -> ErrorMessage:
    """Describe an error in a sentence, without a traceback."""
    if isinstance(error, click.UsageError):
        usage = f"\n{error.ctx.get_usage()}" if error.ctx else ""
        return ErrorMessage("UsageError", f"{error.format_message()}{usage}")
    if isinstance(error, click.ClickException):
        return ErrorMessage("UsageError", error.format_message())
    if isinstance(error, FileNotFoundError) and error.filename is None and _current_folder_is_gone():
        return ErrorMessage(
            type(error).__name__, "The current folder no longer exists. Change to another one."
        )
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        advice = " Free some space and try again." if error.errno == errno.ENOSPC else ""
        place = f"{error.filename}: " if error.filename else ""
        return ErrorMessage(type(error).__name__, f"{place}{reason}.{advice}")
    if exit_code_for(error) == UNEXPECTED:
        return ErrorMessage(
            type(error).__name__,
            f"Unexpected error: {type(error).__name__}: {error}. "
            "Set SENNIT_DEBUG=1 to see the traceback, and please report it.",
        )
    return ErrorMessage(type(error).__name__, str(error))


def _current_folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False
