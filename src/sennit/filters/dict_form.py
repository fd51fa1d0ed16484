"""The dict form of a filter, which JSON can hold and which tools take."""

from __future__ import annotations

from typing import Any, Final

from sennit.filters.expression import And, Equal, Exists, Filter, In, Like, Not, Or, Range

_WORDS: Final = ("and", "or", "not")


def filter_to_dict(node: Filter) -> dict[str, Any]:
    """Return a filter as a dict; `parse_filter` reads it back.

    An open interval becomes two conditions, which differ from it only for a field with several values.
    """
    match node:
        case And(parts) | Or(parts):
            if len(parts) == 1 or (isinstance(node, And) and not parts):
                return filter_to_dict(parts[0]) if parts else {}
            return {"and" if isinstance(node, And) else "or": [filter_to_dict(part) for part in parts]}
        case Not(part):
            return {"not": filter_to_dict(part)}
        case Exists(name):
            return {_key(name): {"exists": True}}
        case Equal(name, value):
            return {_key(name): value}
        case Like(name, pattern, ignore_case):
            return {_key(name): {"ilike" if ignore_case else "like": pattern}}
        case In(name, values):
            return {_key(name): list(values)}
        case Range(name, low, high, True, True) if low is not None and high is not None:
            return {_key(name): {"between": [low, high]}}
        case Range(name, low, high):
            above = {} if low is None else {"gte" if node.include_low else "gt": low}
            below = {} if high is None else {"lte" if node.include_high else "lt": high}
            return {_key(name): {**above, **below}}


def _key(name: str) -> str:
    return f"metadata.{name}" if name in _WORDS or name.startswith("$") else name
