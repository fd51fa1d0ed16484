"""Every error sennit raises on purpose.

    SennitError                     what happened, to what, and what to do about it
    ├── InvalidInput              a value the caller gave cannot be used (also a ValueError)
    │   ├── AmbiguousReference    may mean several records; knows their ids
    │   ├── FilterError           a filter is malformed; knows the position
    │   └── SettingsError         sennit.toml, the environment or an argument; knows the key
    ├── AccessDenied              the caller may not write this record (also a PermissionError)
    ├── Conflict                  an id is taken by a record that the caller may not see
    ├── NotFound                  a record, file, recipe or model that does not exist (also a LookupError)
    ├── StoreError                the database cannot do the operation
    │   ├── StoreCorrupt          the primary store is damaged; derived indexes are rebuilt instead
    │   ├── StoreVersion          written by a newer sennit, or not a sennit database
    │   ├── StoreFull             the disk is full; nothing was written
    │   ├── StoreUnavailable      the database server cannot be reached; the next operation tries again
    │   ├── ChangesLost           an index is so far behind that it must be built again
    │   └── StoreClosed           used after close()
    ├── SourceError               one source of a search failed; the search reports it as degraded
    │   └── EmbeddingError        an embedding model is missing, unreachable or gave an invalid answer
    └── MissingExtra              an optional dependency is not installed; names the extra

The message names the object, says what is wrong and what to do next.
"""

from __future__ import annotations

from collections.abc import Iterable


class SennitError(Exception):
    """Base of every error sennit raises on purpose."""


class InvalidInput(SennitError, ValueError):
    """A value the caller gave cannot be used."""


class AmbiguousReference(InvalidInput):
    """A reference may mean several records; `candidates` are their ids."""

    def __init__(self, message: str, *, candidates: tuple[str, ...]) -> None:
        self.candidates = candidates
        super().__init__(message)


class FilterError(InvalidInput):
    """A filter is malformed; `position` is the offset in its text, or None if it was not a text."""

    def __init__(self, message: str, *, text: str | None = None, position: int | None = None) -> None:
        self.text = text
        self.position = position
        if text is not None and position is not None:
            message = f"{message} (at position {position})\n  {text}\n  {' ' * position}^"
        super().__init__(message)


class SettingsError(InvalidInput):
    """A setting is unknown or out of range; `key` names it."""

    def __init__(self, message: str, *, key: str | None = None) -> None:
        self.key = key
        super().__init__(message)


class AccessDenied(SennitError, PermissionError):
    """The caller may not write this record."""


class Conflict(SennitError):
    """An id is taken by a record that the caller may not see."""


class NotFound(SennitError, LookupError):
    """A record, file, recipe or model that does not exist."""


class StoreError(SennitError):
    """The database cannot do the operation."""


class StoreCorrupt(StoreError):
    """The primary store is damaged."""


class StoreVersion(StoreError):
    """Written by a newer sennit, or not a sennit database."""


class StoreFull(StoreError):
    """The disk is full; nothing was written."""


class StoreUnavailable(StoreError):
    """The database server cannot be reached."""


class ChangesLost(StoreError):
    """Changes that a reader of the feed has not seen are no longer known."""


class StoreClosed(StoreError):
    """Used after close()."""


class SourceError(SennitError):
    """One source of a search failed."""


class EmbeddingError(SourceError):
    """An embedding model is missing, unreachable or gave an invalid answer."""


class MissingExtra(SennitError):
    """An optional dependency is not installed; it comes with an extra, or is a package of its own."""

    def __init__(self, what: str, extra: str = "", *, package: str = "") -> None:
        install = package or f"'sennit[{extra}]'"
        super().__init__(f"{what} needs an optional package. Install it with: pip install {install}")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a question with the nearest of the known names, for a message; empty if none is near."""
    from difflib import get_close_matches

    # Longer names are no misspellings, and comparing them would take long.
    near = get_close_matches(name[:200], (one for one in known if len(one) <= 200), n=1)
    return f"Did you mean {near[0]!r}? " if near else ""
