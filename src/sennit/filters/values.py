"""The values of a record for each field, and whether a filter holds for a record."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from sennit.filters.expression import (
    And,
    Condition,
    Equal,
    Exists,
    Filter,
    In,
    Like,
    Not,
    Or,
    Range,
    normalise_number,
    type_rank,
    typed,
)
from sennit.filters.fields import BUILTIN_FIELDS, Scalar, canonical_name, escape_key, field_path
from sennit.filters.patterns import compile_pattern
from sennit.records import Record


def matches(expression: Filter, record: Record) -> bool:
    """Return whether a filter holds for a record. This is the reference for every backend."""
    match expression:
        case And(parts):
            return all(matches(part, record) for part in parts)
        case Or(parts):
            return any(matches(part, record) for part in parts)
        case Not(part):
            return not matches(part, record)
        case _:
            path = _canonical_path(expression.field)
            return any(_satisfies(value, expression) for value in _values(record, path))


def _satisfies(value: Scalar, condition: Condition) -> bool:
    match condition:
        case Exists():
            return True
        case Equal():
            return typed(value) == typed(condition.value)
        case In():
            return typed(value) in map(typed, condition.values)
        case Like(_, pattern, ignore_case):
            return isinstance(value, str) and compile_pattern(pattern, ignore_case).matches(value)
        case Range(_, low, high, include_low, include_high):
            return _in_order(low, value, include_low) and _in_order(value, high, include_high)


def _in_order(low: Scalar | None, high: Scalar | None, allow_equal: bool) -> bool:
    if low is None or high is None:
        return True
    return type_rank(low) == type_rank(high) and (typed(low) < typed(high) or (allow_equal and low == high))


def field_values(record: Record, path: tuple[str, ...]) -> Iterator[Scalar]:
    """Yield every value of the field with this path; a value may occur twice."""
    return _values(record, field_path(canonical_name(path)))


@lru_cache(1024)
def _canonical_path(field: str) -> tuple[str, ...]:
    # Cached, because each written record is compared with the same few filters.
    return field_path(canonical_name(field_path(field)))


def _values(record: Record, path: tuple[str, ...]) -> Iterator[Scalar]:
    name, *below = path
    if len(path) == 1 and name in BUILTIN_FIELDS:
        value = getattr(record, name)
        if value is not None and value != "":
            yield value.timestamp() if name == "timestamp" else value
    else:
        yield from metadata_values(record.metadata, below if name == "metadata" else path)


def metadata_values(value: object, path: Sequence[str]) -> Iterator[Scalar]:
    """Yield every value at this path in metadata; a value may occur twice."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from metadata_values(item, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from metadata_values(value[path[0]], path[1:])
    elif isinstance(value, (str, int, float)):
        yield _normalise(value)


def flatten(record: Record) -> Iterator[tuple[str, Scalar]]:
    """Yield every distinct (field, value) pair of a record: built-in fields first, then metadata by key.

    A backend indexes these pairs, and `matches` uses exactly these values.
    """
    pairs: list[tuple[str, Scalar]] = [("id", record.id), ("collection", record.collection)]
    # Written out: a loop with getattr takes twice as long, and this runs for every added record.
    add = pairs.append
    if record.kind:
        add(("kind", record.kind))
    if record.title:
        add(("title", record.title))
    if record.path is not None:
        add(("path", record.path))
    if record.url is not None:
        add(("url", record.url))
    if record.parent is not None:
        add(("parent", record.parent))
    if record.position is not None:
        add(("position", record.position))
    if record.timestamp is not None:
        add(("timestamp", record.timestamp.timestamp()))
    add(("sensitivity", record.sensitivity))
    add(("scope", record.scope))
    if record.tenant:
        add(("tenant", record.tenant))
    metadata = record.metadata
    for key in sorted(metadata) if metadata else ():
        value = metadata[key]
        if isinstance(value, str):
            add((_metadata_name(key), value))
        elif isinstance(value, (int, float)):
            add((_metadata_name(key), _normalise(value)))
        elif value is not None:
            found: dict[tuple[str, Scalar, bool], None] = {}
            _collect_values(_metadata_name(key), value, found)
            pairs += [(name, scalar) for name, scalar, _ in found]
    return iter(pairs)


def _collect_values(name: str, value: object, found: dict[tuple[str, Scalar, bool], None]) -> None:
    """Add the values in a list or object to the keys of `found`, in order and each once."""
    if isinstance(value, (str, int, float)):
        found[name, _normalise(value), isinstance(value, bool)] = None
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect_values(name, item, found)
    elif isinstance(value, (dict, Mapping)):  # dict first: isinstance is slow for an abstract class
        for key in sorted(value):
            _collect_values(f"{name}.{escape_key(key)}", value[key], found)


@lru_cache(maxsize=4096)
def _metadata_name(key: str) -> str:
    return canonical_name(("metadata", key))


def _normalise(value: Scalar) -> Scalar:
    if isinstance(value, (str, bool)):
        return value
    try:
        return normalise_number(value)
    except OverflowError:
        # At least as large as any number in a filter, so every lower bound includes it.
        return sys.float_info.max if value > 0 else -sys.float_info.max
