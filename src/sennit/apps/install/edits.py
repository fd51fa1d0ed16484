"""Edits of configuration files as text: one entry is written or removed, and every other byte stays."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, Literal

from sennit.apps.install import jsonc
from sennit.errors import InvalidInput
from sennit.settings.toml_text import toml_key, toml_value

Format = Literal["json", "toml"]

DEFAULT_INDENT: Final = "  "

_TOML_HEADER: Final = re.compile(r"^[ \t]*\[", re.MULTILINE)
_TOML_REMARKS: Final = re.compile(r"(?:\r?\n[ \t]*(?:#[^\n]*)?)+\Z")
"""Empty lines and comments at the end of a table."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of a text that is replaced by another."""

    start: int
    removed: str
    inserted: str

    def apply(self, text: str) -> str:
        return text[: self.start] + self.inserted + text[self.start + len(self.removed) :]


def load(text: str, form: Format) -> dict[str, Any]:
    """Return the content of a configuration file; raise ValueError if it is not of its format."""
    if form == "toml":
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    if not text.strip("\ufeff \t\r\n"):
        return {}
    value = jsonc.parse(text).value
    if not isinstance(value, dict):
        raise jsonc.JsoncError("line 1, column 1: an object is expected")
    return value


def find_entry(content: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return the entry at a path; None if there is none. Raises InvalidInput if something else is in the way."""
    value: Any = content
    for depth, key in enumerate(path):
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{'.'.join(path[:depth])} is not an object")
        if key not in value:
            return None
        value = value[key]
    return value


def write_entry(text: str, form: Format, path: Sequence[str], entry: Mapping[str, Any]) -> Edit:
    """Return the edit after which the entry is at the path. Whatever else the file says, it says afterwards too."""
    content = load(text, form)
    find_entry(content, path)
    edit = _write_json(text, path, entry) if form == "json" else _write_toml(text, path, entry)
    expected = deepcopy(content)
    inner = expected
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = dict(entry)
    _check(edit.apply(text), form, expected)
    return edit


def remove_entry(text: str, form: Format, path: Sequence[str]) -> Edit:
    """Return the edit after which there is no entry at the path."""
    edit = _remove_json(text, path) if form == "json" else _remove_toml(text, path)
    expected = deepcopy(load(text, form))
    inner = expected
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    if form == "toml":
        # A table that held nothing else has no header of its own, and is gone with the entry.
        expected = (
            _without_empty(expected, path[:-1]) if path[0] not in load(edit.apply(text), form) else expected
        )
    _check(edit.apply(text), form, expected)
    return edit


def _without_empty(content: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != path[0] or value}


def _check(text: str, form: Format, expected: Mapping[str, Any]) -> None:
    """A safeguard against a file in a form that these edits do not understand."""
    try:
        written = load(text, form)
    except ValueError as error:
        raise InvalidInput(f"its form is one that cannot be edited safely ({error})") from error
    if written != expected:
        raise InvalidInput("its form is one that cannot be edited safely")


# JSON.


def _write_json(text: str, path: Sequence[str], entry: Mapping[str, Any]) -> Edit:
    newline = "\r\n" if "\r\n" in text else "\n"
    if not text.strip("\ufeff \t\r\n"):
        whole: Any = dict(entry)
        for key in reversed(path):
            whole = {key: whole}
        return Edit(len(text), "", _dump(whole, "", DEFAULT_INDENT, newline) + newline)
    node = jsonc.parse(text)
    unit = _indent_unit(text, node)
    for depth, key in enumerate(path):
        inner = node.find(key)
        if inner is None:
            value: Any = dict(entry)
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _insert_member(text, node, key, value, unit, newline)
        node = inner
    # The entry is there, with other values.
    written = _dump(dict(entry), _indent_at(text, node.start), unit, newline)
    return Edit(node.start, text[node.start : node.end], written)


def _insert_member(text: str, node: jsonc.Node, key: str, value: Any, unit: str, newline: str) -> Edit:
    """The edit that adds a member at the end of an object, in the style of the file."""
    name = json.dumps(key, ensure_ascii=False)
    if node.members and "\n" not in text[node.start : node.end]:
        separator = " " if node.comma else ", "
        at = node.comma or node.members[-1].node.end
        return Edit(at, "", f"{separator}{name}: {json.dumps(value, ensure_ascii=False)}")
    outer = _indent_at(text, node.start)
    if not node.members:
        indent = outer + unit
        member = f"{newline}{indent}{name}: {_dump(value, indent, unit, newline)}"
        inside = text[node.start + 1 : node.end - 1]
        if not inside.strip():
            return Edit(node.start + 1, inside, f"{member}{newline}{outer}")
        # The object holds only comments.
        at = node.start + 1 + len(inside.rstrip())
        rest = text[at : node.end - 1]
        return Edit(at, rest, f"{member}{newline}{outer}")
    indent = _indent_at(text, node.members[-1].start)
    member = f"{newline}{indent}{name}: {_dump(value, indent, unit, newline)}"
    last = node.comma or node.members[-1].node.end
    after = _end_of_comment(text, last)
    between = text[last:after]
    if node.comma:
        return Edit(last, between, f"{between}{member},")
    return Edit(last, between, f",{between}{member}")


def _end_of_comment(text: str, at: int) -> int:
    """The end of comments that follow on the same line."""
    found = re.compile(r"[ \t]*(?://[^\r\n]*|(?:/\*[^\r\n]*?\*/[ \t]*)+(?=\r?\n))").match(text, at)
    return found.end() if found else at


def _remove_json(text: str, path: Sequence[str]) -> Edit:
    node = jsonc.parse(text)
    for key in path[:-1]:
        inner = node.find(key)
        assert inner is not None
        node = inner
    at = max(index for index, member in enumerate(node.members) if member.key == path[-1])
    member = node.members[at]
    if at > 0:
        # With the comma before it; comments between stay.
        start = node.members[at - 1].node.end
        comma = jsonc.skip(text, start)
        begin, kept = start, text[start:comma]
        return Edit(begin, text[begin : member.node.end], kept if kept.strip() else "")
    if len(node.members) > 1:
        # With the comma after it; comments before the next member stay.
        comma = jsonc.skip(text, member.node.end)
        kept = text[member.node.end : comma] + text[comma + 1 : node.members[1].start]
        return Edit(member.start, text[member.start : node.members[1].start], kept.lstrip())
    end = node.comma or member.node.end
    inside = text[node.start + 1 : member.start] + text[end : node.end - 1]
    return Edit(node.start + 1, text[node.start + 1 : node.end - 1], inside if inside.strip() else "")


def _dump(value: Any, indent: str, unit: str, newline: str) -> str:
    """The value as JSON over several lines, the first of which continues a line with this indent."""
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{newline}{indent}".join(lines)


def _indent_at(text: str, at: int) -> str:
    """The space at the beginning of the line."""
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str, root: jsonc.Node) -> str:
    """What the members of the outermost object are indented by."""
    if root.members and "\n" in text[root.start : root.members[0].start]:
        return _indent_at(text, root.members[0].start) or DEFAULT_INDENT
    return DEFAULT_INDENT


# TOML.


def _write_toml(text: str, path: Sequence[str], entry: Mapping[str, Any]) -> Edit:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(map(toml_key, path))}]"]
    lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in entry.items()]
    table = newline.join(lines) + newline
    place = _toml_table(text, path)
    if place is None:
        gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else newline * 2
        return Edit(len(text), "", gap + table)
    start, end = place
    return Edit(start, text[start:end], table.removesuffix(newline))


def _remove_toml(text: str, path: Sequence[str]) -> Edit:
    place = _toml_table(text, path)
    if place is None:
        raise InvalidInput(f"its entry {'.'.join(path)} is not a table of its own; remove it by hand")
    start, end = place
    end += len(text[end:]) - len(text[end:].lstrip())
    return Edit(start, text[start:end], "")


def _toml_table(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    """Where a table begins and where its last value ends; None if it has no header.

    Empty lines and comments before the next table belong to that table.
    """
    name = r"\s*\.\s*".join(rf"(?:{re.escape(key)}|\"{re.escape(key)}\"|'{re.escape(key)}')" for key in path)
    header = re.search(rf"^[ \t]*\[\s*{name}\s*\][ \t]*(?:#[^\n]*)?\r?$", text, re.MULTILINE)
    if header is None:
        return None
    following = _TOML_HEADER.search(text, header.end())
    body = text[header.start() : following.start() if following else len(text)]
    return header.start(), header.start() + len(_TOML_REMARKS.sub("", body))
