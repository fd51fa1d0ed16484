r"""The names of fields.

A field name is a dotted path. `\.` and `\\` stand for a dot and a backslash within a key. A built-in field is its bare
name; any other path leads into the metadata. Each field has exactly one canonical name and one path.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Final, TypeAlias

from sennit.errors import FilterError, InvalidInput
from sennit.records import check_metadata_key

BUILTIN_FIELDS: Final = (
    *("id", "collection", "kind", "title", "path", "url", "parent"),
    *("position", "timestamp", "sensitivity", "scope", "tenant"),
)

FIELD_ALIASES: Final = {"visibility_scope": "scope"}
"""Other names of built-in fields, which records also have in their metadata."""

KEYWORDS: Final = frozenset(("and", "or", "not", "in", "exists", "between", "true", "false"))
"""The words of the text form. A key with such a name is written in backticks."""

_RESERVED_KEYS: Final = frozenset((*BUILTIN_FIELDS, *FIELD_ALIASES, "metadata"))
_PLAIN_KEY: Final = re.compile(r"[^\W\d][\w-]*")

Scalar: TypeAlias = str | bool | int | float


def field_path(name: str) -> tuple[str, ...]:
    """Return the path of a field name.

    A metadata path starts with "metadata" only if its first key is also a built-in name (or "metadata").
    """
    if not isinstance(name, str):
        raise FilterError(f"A field name must be a string, not {type(name).__name__}")
    if "\\" not in name:
        return _normalise_path(tuple(name.split(".")))
    keys = [""]
    for piece in re.findall(r"\\?.", name, re.DOTALL):
        if piece == ".":
            keys.append("")
        elif piece[0] == "\\" and piece not in ("\\.", "\\\\"):
            raise FilterError(
                "A field name has a lone backslash; write \\\\ for a backslash, \\. for a dot in a key"
            )
        else:
            keys[-1] += piece[-1]
    return _normalise_path(tuple(keys))


def canonical_name(path: tuple[str, ...]) -> str:
    """Return the canonical name of a path: equal fields have equal names, and `field_path` reverses it."""
    return ".".join(map(escape_key, _normalise_path(path)))


def canonicalise(name: str) -> str:
    """Return the canonical form of a field name."""
    return _canonicalise(name) if isinstance(name, str) else canonical_name(field_path(name))


@lru_cache(1024)
def _canonicalise(name: str) -> str:
    # Cached: a condition needs it more than once, and searches use the same few fields.
    return canonical_name(field_path(name))


def escape_key(key: str) -> str:
    """Return a key as one part of a field name."""
    if "." in key or "\\" in key:
        return key.replace("\\", "\\\\").replace(".", "\\.")
    return key


def _normalise_path(keys: tuple[str, ...]) -> tuple[str, ...]:
    if not keys or not all(keys):
        raise FilterError("A field name must not be empty, nor any part between its dots")
    try:
        for key in keys:
            check_metadata_key(key)
    except InvalidInput as error:
        raise FilterError(f"Not a field name: {error}") from error
    if len(keys) == 1 and keys[0] in BUILTIN_FIELDS:
        return keys
    if len(keys) == 1 and keys[0] in FIELD_ALIASES:
        return (FIELD_ALIASES[keys[0]],)
    if len(keys) > 1 and keys[0] == "metadata":
        keys = keys[1:]
    return ("metadata", *keys) if keys[0] in _RESERVED_KEYS else keys


def format_field(name: str) -> str:
    """Return a field name as the text form writes it."""
    return ".".join(map(_format_key, field_path(name)))


def _format_key(key: str) -> str:
    if _PLAIN_KEY.fullmatch(key) and key.lower() not in KEYWORDS:
        return key
    return "`" + format_string(key)[1:-1].replace("`", "\\`") + "`"


def format_string(value: str) -> str:
    """Return a string value as the text form writes it."""
    return json.dumps(value, ensure_ascii=False)
