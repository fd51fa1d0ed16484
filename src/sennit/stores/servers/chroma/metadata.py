"""What Chroma holds of a record beside its vector, and filters in its language.

The metadata of Chroma are flat and have one value per key, its filters know no negation of a group, and every key becomes part
of the collection's schema, which the server reads for each request. So a field with a value has a key that is true
(`has.kind`), and its one value is a hash (`one.kind`): the keys do not grow with the records. Only of several values each is
a key of its own that is true (`is.tags.HASH`). A number can be compared where a field has one (`number.year`, marked by
`single.year`); a field with several is marked by `several.year`. Names and values of users are never part of a key: they are
hashed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from sennit.filters import Condition, Equal, Exists, Filter, In, Range, Scalar, flatten
from sennit.filters.expression import type_rank
from sennit.records import Record
from sennit.stores.servers.supersets import Translated, translate

Where: TypeAlias = dict[str, Any]

EXACT_NUMBERS: Final = 1 << 53
"""Numbers are stored as 64-bit floats, which hold every whole number below this one."""

_NEGATED: Final = {"$gte": "$lt", "$gt": "$lte", "$lte": "$gt", "$lt": "$gte"}
_NEGATED_EQUALS: Final = {"$eq": "$ne", "$ne": "$eq", "$in": "$nin", "$nin": "$in"}


def metadata_of(record: Record) -> dict[str, bool | float | str]:
    """The metadata of a record."""
    out: dict[str, bool | float | str] = {}
    hashes: dict[str, set[str]] = {}
    numbers: dict[str, list[float]] = {}
    for field, value in flatten(record):
        name = _hash(field)
        hashes.setdefault(name, set()).add(_value_hash(value))
        if type_rank(value) == 1:
            numbers.setdefault(name, []).append(float(value))
    for name, found in hashes.items():
        out[f"has.{name}"] = True
        if len(found) == 1:
            (out[f"one.{name}"],) = found
        else:
            out |= {_value_key(name, one): True for one in found}
    for name, values in numbers.items():
        if len(values) == 1:
            out[f"number.{name}"], out[f"single.{name}"] = values[0], True
        else:
            out[f"several.{name}"] = True
    return out


def to_where(where: Filter) -> Where | bool:
    """The filter that lets through at least what matches; True for everything, False for nothing."""
    found: Translated[Where] = translate(where, ChromaFilters())
    return found


class Groups:
    """How Chroma writes groups of conditions."""

    def all_of(self, parts: Sequence[Where]) -> Where:
        """All parts hold."""
        return {"$and": list(parts)}

    def any_of(self, parts: Sequence[Where]) -> Where:
        """Some part holds."""
        return {"$or": list(parts)}


class ChromaFilters(Groups):
    """Conditions on the metadata of a record."""

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[Where] | None:
        """One condition; None for patterns, ranges of texts, and huge numbers."""
        match condition:
            case Exists(field):
                return _is_true(f"has.{_hash(field)}")
            case Equal(field, value):
                return self._one_of(field, (value,))
            case In(field, values):
                return self._one_of(field, values)
            case Range(field, low, high) if not isinstance(low, str) and not isinstance(high, str):
                return self._range(condition, low, high, is_negated)
        return None

    def none_of(self, part: Where) -> Where:
        """The part does not hold: the negation goes down to the conditions."""
        ((key, value),) = part.items()
        if key in ("$and", "$or"):
            parts = [self.none_of(one) for one in value]
            return {"$or" if key == "$and" else "$and": parts}
        ((operator, bound),) = value.items()
        if operator in _NEGATED:
            return {"$or": [{key: {_NEGATED[operator]: bound}}, self.none_of(_is_true(_has_number(key)))]}
        return {key: {_NEGATED_EQUALS[operator]: bound}}

    def _one_of(self, field: str, values: Sequence[Scalar]) -> Translated[Where]:
        """The field has one of these values."""
        if not values:
            return False
        name, hashes = _hash(field), sorted({_value_hash(value) for value in values})
        single: Where = {f"one.{name}": {"$eq": hashes[0]} if len(hashes) == 1 else {"$in": hashes}}
        return self.any_of([single, *(_is_true(_value_key(name, one)) for one in hashes)])

    def _range(
        self, condition: Range, low: float | None, high: float | None, is_negated: bool
    ) -> Where | None:
        if not all(bound is None or abs(bound) < EXACT_NUMBERS for bound in (low, high)):
            return None
        key = f"number.{_hash(condition.field)}"
        bounds: list[Where] = []
        if low is not None:
            bounds.append({key: {"$gte" if condition.include_low else "$gt": float(low)}})
        if high is not None:
            bounds.append({key: {"$lte" if condition.include_high else "$lt": float(high)}})
        exact = bounds[0] if len(bounds) == 1 else self.all_of(bounds)
        # Which of several numbers lies between the bounds is not known.
        return exact if is_negated else self.any_of([exact, _is_true(key.replace("number.", "several.", 1))])


def _is_true(key: str) -> Where:
    return {key: {"$eq": True}}


def _has_number(key: str) -> str:
    return key.replace("number.", "single.", 1)


def _value_key(name: str, value_hash: str) -> str:
    return f"is.{name}.{value_hash}"


def _value_hash(value: Scalar) -> str:
    return _hash(f"{type_rank(value)} {value!r}")


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
