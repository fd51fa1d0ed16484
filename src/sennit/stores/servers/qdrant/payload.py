"""What Qdrant holds of a record beside its vectors: the values that filters compare; and filters in its language.

A payload has no text of the record, only `fields`, the names of the fields that have a value, and the values of each field
by type: `text.kind`, `number.year`, `flag.done`. So a number never equals a text, and true is not 1. Nothing is built by
pasting: a field's name is part of a path only where it is a plain word, and a hash otherwise.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from qdrant_client import models

from sennit.filters import Condition, Equal, Exists, Filter, In, Range, Scalar, flatten
from sennit.filters.expression import type_rank
from sennit.records import Record
from sennit.stores.servers.supersets import Translated, translate

FIELD_NAMES: Final = "fields"

TYPES: Final = ("flag", "number", "text")
"""The keys of the payload for values of each type, by the rank of the type."""

EXACT_NUMBERS: Final = 1 << 53
"""Qdrant compares numbers as 64-bit floats, which hold every whole number below this one."""

MAX_TEXT_CHARACTERS: Final = 256
"""A longer text is stored as its hash: filters compare such values only as a whole."""

_HASHED: Final = "\x02"
"""What the hash of a long text begins with. A text that begins so is hashed too, so that none can pass for another."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_INDEX_TYPES: Final = {
    "flag": models.PayloadSchemaType.BOOL,
    "number": models.PayloadSchemaType.FLOAT,
    "text": models.PayloadSchemaType.KEYWORD,
}

QdrantCondition: TypeAlias = models.FieldCondition | models.Filter | models.HasIdCondition


def payload_of(record: Record) -> dict[str, Any]:
    """The payload of a record."""
    out: dict[str, Any] = {}
    names: dict[str, None] = {}
    for field, value in flatten(record):
        name = field_key(field)
        names[name] = None
        out.setdefault(TYPES[type_rank(value)], {}).setdefault(name, []).append(stored_value(value))
    return {FIELD_NAMES: list(names), **out}


def field_key(field: str) -> str:
    """A field's name as one step of a path; a hash that begins with an underscore unless the name is a plain word."""
    if _PLAIN_NAME.fullmatch(field):
        return field
    return "_" + hashlib.blake2b(field.encode(), digest_size=16).hexdigest()


def stored_value(value: Scalar) -> Scalar:
    """A value as the payload holds it."""
    if isinstance(value, str):
        if len(value) > MAX_TEXT_CHARACTERS or value.startswith(_HASHED):
            return _HASHED + hashlib.blake2b(value.encode(), digest_size=16).hexdigest()
        return value
    return value if isinstance(value, bool) else float(value)


def index_schema(path: str) -> models.PayloadSchemaType:
    """The type of the payload index that a path of a filter needs."""
    return _INDEX_TYPES.get(path.partition(".")[0], models.PayloadSchemaType.KEYWORD)


def in_range(key: str, where: Range) -> models.FieldCondition | None:
    """A range of numbers; None for one of texts, and for numbers that Qdrant does not compare exactly."""
    if any(isinstance(bound, str) or abs(bound or 0) >= EXACT_NUMBERS for bound in (where.low, where.high)):
        return None
    bounds = {
        "gte" if where.include_low else "gt": where.low,
        "lte" if where.include_high else "lt": where.high,
    }
    return models.FieldCondition(key=key, range=models.Range(**bounds))


class Filters:
    """How Qdrant writes groups of conditions; a subclass has the conditions."""

    def translate(self, where: Filter) -> models.Filter | None:
        """The filter that lets through at least what matches; None for everything."""
        found: Translated[QdrantCondition] = translate(where, self)
        if found is True:
            return None
        if found is False:
            return models.Filter(must=[models.HasIdCondition(has_id=[])])
        return found if isinstance(found, models.Filter) else models.Filter(must=[found])

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[QdrantCondition] | None:
        """One condition."""
        raise NotImplementedError

    def all_of(self, parts: Sequence[QdrantCondition]) -> QdrantCondition:
        """All parts hold."""
        return models.Filter(must=list(parts))

    def any_of(self, parts: Sequence[QdrantCondition]) -> QdrantCondition:
        """Some part holds."""
        return models.Filter(should=list(parts))

    def none_of(self, part: QdrantCondition) -> QdrantCondition:
        """The part does not hold."""
        return models.Filter(must_not=[part])


class QdrantFilters(Filters):
    """Translates filters. `paths` collects the paths that they name."""

    def __init__(self) -> None:
        self.paths: set[str] = set()

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[QdrantCondition] | None:  # noqa: ARG002
        """One condition, or None where Qdrant cannot express it: patterns, ranges of texts, and huge numbers."""
        match condition:
            case Exists(field):
                self.paths.add(FIELD_NAMES)
                return models.FieldCondition(key=FIELD_NAMES, match=models.MatchValue(value=field_key(field)))
            case Equal(field, value):
                return self._one_of(field, (value,))
            case In(field, values):
                return self._one_of(field, values)
            case Range(field):
                found = in_range(f"{TYPES[1]}.{field_key(field)}", condition)
                if found is not None:
                    self.paths.add(found.key)
                return found
        return None

    def _one_of(self, field: str, values: Sequence[Scalar]) -> Translated[QdrantCondition] | None:
        """The field has one of these values, of any type."""
        by_type: Mapping[int, list[Scalar]] = {rank: [] for rank in range(len(TYPES))}
        for value in values:
            by_type[type_rank(value)].append(value)
        flags, numbers, texts = by_type[0], by_type[1], by_type[2]
        found: list[QdrantCondition] = [
            models.FieldCondition(key=self._path(field, flag), match=models.MatchValue(value=bool(flag)))
            for flag in flags
        ]
        for number in numbers:
            equal = in_range(self._path(field, number), Range(field, float(number), float(number)))
            if equal is None:
                return None
            found.append(equal)
        if texts:
            listed = [str(stored_value(text)) for text in texts]
            found.append(
                models.FieldCondition(key=self._path(field, texts[0]), match=models.MatchAny(any=listed))
            )
        if not found:
            return False
        return found[0] if len(found) == 1 else self.any_of(found)

    def _path(self, field: str, value: Scalar) -> str:
        path = f"{TYPES[type_rank(value)]}.{field_key(field)}"
        self.paths.add(path)
        return path
