"""A filter and a record: the values a record has for each field, and whether a filter holds for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from sennit.filters.expression import And, Equal, Exists, Filter, In, Not, Or, Range, number, rank, typed
from sennit.filters.text import BUILTIN_FIELDS, Scalar, canonical, escaped, segments
from sennit.records import Record


def matches(wanted: Filter, record: Record) -> bool:
    """Whether the filter holds for the record: the reference that every backend must agree with."""
    match wanted:
        case And(parts):
            return all(matches(part, record) for part in parts)
        case Or(parts):
            return any(matches(part, record) for part in parts)
        case Not(part):
            return not matches(part, record)
        case _:
            return any(_accepts(wanted, value) for value in _values(record, _path(wanted.field)))


def _accepts(wanted: Equal | In | Range | Exists, value: Scalar) -> bool:
    match wanted:
        case Exists():
            return True
        case Equal():
            return typed(value) == typed(wanted.value)
        case In():
            return typed(value) in map(typed, wanted.values)
        case Range(_, low, high, include_low, include_high):
            return _rising(low, value, include_low) and _rising(value, high, include_high)


def _rising(low: Scalar | None, high: Scalar | None, equal_too: bool) -> bool:
    if low is None or high is None:
        return True
    return rank(low) == rank(high) and (typed(low) < typed(high) or (equal_too and low == high))


def values_of(record: Record, path: tuple[str, ...]) -> Iterator[Scalar]:
    """Every value of one field, by its `segments`; a value may come twice."""
    return _values(record, segments(canonical(path)))


@lru_cache(1024)
def _path(field: str) -> tuple[str, ...]:
    """The one path of a field; kept, because each record written is held against the same few filters."""
    return segments(canonical(segments(field)))


def _values(record: Record, path: tuple[str, ...]) -> Iterator[Scalar]:
    name, *below = path
    if len(path) == 1 and name in BUILTIN_FIELDS:
        value = getattr(record, name)
        if value is not None and value != "":
            yield value.timestamp() if name == "timestamp" else value
    else:
        yield from values_in(record.metadata, below if name == "metadata" else path)


def values_in(value: object, path: Sequence[str]) -> Iterator[Scalar]:
    """Every value below these keys of metadata; a value may come twice."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from values_in(item, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from values_in(value[path[0]], path[1:])
    elif isinstance(value, (str, int, float)):
        yield _indexed(value)


def flatten(record: Record) -> Iterator[tuple[str, Scalar]]:
    """Every (field, value) of a record, each once, built-in fields first and then metadata by key.

    This is what a backend indexes; `matches` sees exactly these values.
    """
    pairs: list[tuple[str, Scalar]] = [("id", record.id), ("collection", record.collection)]
    # Field by field: a loop with getattr takes twice as long, and every record added passes here.
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
            add((_metadata_name(key), _indexed(value)))
        elif value is not None:
            found: dict[tuple[str, Scalar, bool], None] = {}
            _gather(_metadata_name(key), value, found)
            pairs += [(name, scalar) for name, scalar, _ in found]
    return iter(pairs)


def _gather(name: str, value: object, found: dict[tuple[str, Scalar, bool], None]) -> None:
    """Add the values below a list or object, in order; as keys, for a list may hold one twice."""
    if isinstance(value, (str, int, float)):
        found[name, _indexed(value), isinstance(value, bool)] = None
    elif isinstance(value, (list, tuple)):
        for item in value:
            _gather(name, item, found)
    elif isinstance(value, (dict, Mapping)):  # dict first: the abstract class is slow to ask
        for key in sorted(value):
            _gather(f"{name}.{escaped(key)}", value[key], found)


@lru_cache(maxsize=4096)
def _metadata_name(key: str) -> str:
    return canonical(("metadata", key))


def _indexed(value: Scalar) -> Scalar:
    if isinstance(value, (str, bool)):
        return value
    try:
        return number(value)
    except OverflowError:
        # Larger than any number a filter may name, and found by every lower bound.
        return sys.float_info.max if value > 0 else -sys.float_info.max
