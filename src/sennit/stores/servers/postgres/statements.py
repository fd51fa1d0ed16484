"""Statements and their values as Postgres gets them: values always apart from the text of a statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from psycopg.pq import Format

Value: TypeAlias = str | int | float | bytes | Sequence[str] | Sequence[int] | Sequence[float] | None

_ESCAPES: Final = {0: "\x01\x01", 1: "\x01\x02"}
"""Postgres cannot store U+0000. These escapes keep the order of texts, as in the primary store."""


def escape_text(text: str) -> str:
    """A text as the tables hold it, without U+0000."""
    return text.translate(_ESCAPES) if "\x00" in text or "\x01" in text else text


@dataclass(slots=True)
class Statement:
    """One statement, and the values of `$1`, `$2` …"""

    sql: str = ""
    values: list[bytes | None] = field(default_factory=list)
    formats: list[Format] = field(default_factory=list)

    def add(self, value: Value) -> str:
        """Add a value; returns its placeholder, which the statement casts to its type. Bytes are in binary form."""
        self.values.append(_encode(value))
        self.formats.append(Format.BINARY if isinstance(value, bytes) else Format.TEXT)
        return f"${len(self.values)}"


def _encode(value: Value) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return escape_text(value).encode()
    if isinstance(value, (int, float)):
        return repr(value).encode()
    return ("{" + ",".join(_encode_items(value)) + "}").encode()


def _encode_items(values: Iterable[str | int | float]) -> Iterable[str]:
    for value in values:
        if isinstance(value, str):
            quoted = escape_text(value).replace("\\", "\\\\").replace('"', '\\"')
            yield f'"{quoted}"'
        else:
            yield repr(value)
