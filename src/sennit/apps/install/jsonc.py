"""JSON with comments and trailing commas, with the place of every value, so that a file can be edited as text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

MAX_DEPTH: Final = 100

_SPACE: Final = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_LITERAL: Final = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


class JsoncError(ValueError):
    """The text is not JSON; the message says where."""


@dataclass
class Node:
    """A value, and where it is in the text."""

    start: int
    end: int = 0
    value: Any = None
    members: list[Member] = field(default_factory=list)
    """The members of an object, in order."""
    comma: int | None = None
    """The place after a trailing comma of an object, if there is one."""

    def find(self, key: str) -> Node | None:
        """Return the value of a key of an object; of several equal keys the last counts."""
        return next((member.node for member in reversed(self.members) if member.key == key), None)


@dataclass
class Member:
    """A key of an object and its value; it begins with the key."""

    key: str
    start: int
    node: Node


def parse(text: str) -> Node:
    """Return the value of a text; raise JsoncError if it is not JSON, with or without comments."""
    node = _value(text, skip(text, 0), 0)
    rest = skip(text, node.end)
    if rest != len(text):
        raise _error(text, rest, "more text after the value")
    return node


def skip(text: str, at: int) -> int:
    """Return the place of the next character that is neither space nor comment."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _value(text: str, at: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise _error(text, at, "nested too deeply")
    if text.startswith("{", at):
        return _object(text, at, depth)
    if text.startswith("[", at):
        return _array(text, at, depth)
    found = (_STRING if text.startswith('"', at) else _LITERAL).match(text, at)
    if found is None:
        raise _error(text, at, "a value is expected")
    return Node(at, found.end(), _load(text, at, found[0]))


def _object(text: str, start: int, depth: int) -> Node:
    node = Node(start, value={})
    at = skip(text, start + 1)
    while not text.startswith("}", at):
        if node.members and node.comma is None:
            raise _error(text, at, "',' or '}' is expected")
        key = _STRING.match(text, at)
        if key is None:
            raise _error(text, at, "a key in double quotes is expected")
        name = _load(text, at, key[0])
        colon = skip(text, key.end())
        if not text.startswith(":", colon):
            raise _error(text, colon, "':' is expected")
        inner = _value(text, skip(text, colon + 1), depth + 1)
        node.members.append(Member(name, at, inner))
        node.value[name] = inner.value
        at, node.comma = _comma(text, inner.end)
    node.end = at + 1
    return node


def _array(text: str, start: int, depth: int) -> Node:
    node = Node(start, value=[])
    at = skip(text, start + 1)
    while not text.startswith("]", at):
        if node.value and node.comma is None:
            raise _error(text, at, "',' or ']' is expected")
        inner = _value(text, at, depth + 1)
        node.value.append(inner.value)
        at, node.comma = _comma(text, inner.end)
    node.end = at + 1
    return node


def _comma(text: str, at: int) -> tuple[int, int | None]:
    """The place of what follows a value, and the place after the comma between them, if there is one."""
    at = skip(text, at)
    if text.startswith(",", at):
        return skip(text, at + 1), at + 1
    return at, None


def _load(text: str, at: int, literal: str) -> Any:
    try:
        return json.loads(literal)
    except ValueError as error:
        raise _error(text, at, str(error)) from error


def _error(text: str, at: int, what: str) -> JsoncError:
    line = text.count("\n", 0, at) + 1
    return JsoncError(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: {what}")
