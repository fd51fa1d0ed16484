"""Checks of what callers pass to the engine; an error says what was passed and what to pass instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from sennit.embedding.given import is_given
from sennit.engine.search_request import FilterLike
from sennit.errors import FilterError, InvalidInput, NotFound, suggest
from sennit.filters import (
    BUILTIN_FIELDS,
    EVERYTHING,
    Equal,
    Exists,
    Filter,
    compared_fields,
    flatten,
    format_field,
    parse_filter,
)
from sennit.recipes import Recipe
from sennit.records import MAX_ID_BYTES, Record, is_unicode
from sennit.sources.grep import COLLECTION, PASSAGE_FIELDS
from sennit.stores.contract import Snapshot

USUAL_FIELDS: Final = (
    "artifact_type",
    "source_system",
    "tags",
    "artifact_id",
    "chunk_index",
    "speaker",
    "session",
)
"""Metadata that the recipes document. A filter on one is no slip, even before any record has it."""

SAMPLED_RECORDS: Final = 1000
"""Records in which an error looks for the names of fields; all of them could take minutes."""

PAGE_RECORDS: Final = 100
"""Records of one page, unless the caller wants another number."""

MAX_LISTED_NAMES: Final = 12
"""Names that an error lists."""

T = TypeVar("T")


def check_list(values: Iterable[T], expected: str) -> list[T]:
    """Return several values as a list; a single string is an error."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{expected}, not {type(values).__name__}; put a single one into a list: [value]")
    return list(values)


def check_instances(kind: type[T], values: Iterable[T], method: str) -> list[T]:
    """Return several values of one of sennit's types as a list."""
    batch = check_list(values, f"{method} takes a list of sennit.{kind.__name__} values")
    for value in batch:
        if not isinstance(value, kind):
            raise InvalidInput(f"{method} takes sennit.{kind.__name__} values, not {type(value).__name__}")
    return batch


def check_records(values: Iterable[Record | Mapping[str, Any]]) -> list[Record]:
    """Return records from records and dicts; a dict without an id gets one."""
    batch = check_list(values, "add() takes a list of sennit.Record values or dicts")
    for value in batch:
        if not isinstance(value, (Record, Mapping)):
            raise InvalidInput(f"add() takes sennit.Record values or dicts, not {type(value).__name__}")
    return [value if isinstance(value, Record) else Record.from_content(value) for value in batch]


def check_query_vector(vector: Sequence[float] | None, snapshot: Snapshot) -> Sequence[float] | None:
    """Return the given vector of a query, if the vectors of the records are of its kind; raise InvalidInput if not."""
    if vector is None or not snapshot.count():
        return None
    model = snapshot.model
    if model is None or not is_given(model.name):
        source = (
            "this database has none" if model is None else f"those of this database come from {model.name}"
        )
        raise InvalidInput(
            f"The search has a vector of its own, but {source}; leave it out, and the text is embedded"
        )
    if len(vector) != model.dimensions:
        raise InvalidInput(
            f"The vector of the query has {len(vector):,} numbers; those of this database have {model.dimensions:,}"
        )
    return vector


def check_removal(where: FilterLike) -> Filter:
    """Return the filter of a removal. One that is empty by accident would remove everything."""
    condition = parse_filter(where)
    if condition == EVERYTHING and not (isinstance(where, str) and where.strip()):
        raise InvalidInput(
            "The filter is empty and would remove every record; if you mean that, write 'all()'"
        )
    return condition


def check_id(value: object) -> str:
    """Return a valid id."""
    if not isinstance(value, str):
        raise InvalidInput(f"An id must be a string, not {type(value).__name__}")
    if not is_unicode(value):
        raise InvalidInput("The id has a lone surrogate; it is not valid Unicode")
    return value


def check_included(recipe: Recipe, include: Sequence[str], snapshot: Snapshot) -> None:
    """Refuse a collection that the recipe does not know and that holds nothing the caller may see."""
    known = (*recipe.collections, *recipe.on_request)
    for name in include:
        if name not in known and not snapshot.has_any(Equal("collection", name)):
            advice = suggest(name, (*known, *snapshot.text_counts("collection")))
            raise NotFound(
                f"There is no collection {name!r} to include. {advice}Known collections: {', '.join(known)}"
            )


def check_collections(
    names: Sequence[str], recipes: Iterable[Recipe], snapshot: Snapshot, attached: Sequence[str] = ()
) -> None:
    """Refuse a collection that no recipe knows, that is not attached and that holds nothing the caller may see."""
    if not names or not snapshot.count():
        return
    expected = {
        COLLECTION,
        *attached,
        *(name for recipe in recipes for name in (*recipe.collections, *recipe.on_request)),
    }
    for name in names:
        if name not in expected and not snapshot.has_any(Equal("collection", name)):
            present = sorted(snapshot.text_counts("collection"))
            raise NotFound(
                f"There is no collection {name!r}. {suggest(name, (*present, *expected))}"
                f"Collections with records: {_shorten(present)}"
            )


def check_fields(where: Filter, snapshot: Snapshot, attached: Sequence[str] = ()) -> None:
    """Refuse a filter that compares a field which no record has that the caller may see."""
    unknown = [
        name
        for name in sorted(compared_fields(where))
        if name not in (*BUILTIN_FIELDS, *PASSAGE_FIELDS, *USUAL_FIELDS, *attached)
        and not snapshot.has_any(Exists(name))
    ]
    if unknown and snapshot.count():
        sampled = snapshot.records(snapshot.sample(EVERYTHING, SAMPLED_RECORDS).tolist()).values()
        known = {name for record in sampled for name, _ in flatten(record)}
        own = sorted(known.difference(BUILTIN_FIELDS))
        raise FilterError(
            f"No record has the field {unknown[0]!r}. {suggest(unknown[0], (*own, *BUILTIN_FIELDS))}"
            f"Fields of the metadata: {_shorten(own)}. To ask for records without a field, write "
            f"`not exists {format_field(unknown[0])}`"
        )


def _shorten(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MAX_LISTED_NAMES]) or "none"
    return shown if len(names) <= MAX_LISTED_NAMES else f"{shown} and {len(names) - MAX_LISTED_NAMES:,} more"


def check_count(name: str, value: int | None, default: int, maximum: int) -> int:
    """Return a whole number from 1 to `maximum`, or the default for None."""
    if value is None:
        return default
    if type(value) is not int or not 1 <= value <= maximum:
        raise InvalidInput(f"{name} must be a whole number from 1 to {maximum:,}, not {value!r}")
    return value


def check_episode(name: str) -> str:
    """Return a valid name of an episode."""
    if not isinstance(name, str) or not name or not is_unicode(name) or len(name.encode()) > MAX_ID_BYTES:
        raise InvalidInput(
            f"The name of an episode must be a string of 1 to {MAX_ID_BYTES} bytes, not {name!r:.80}"
        )
    return name
