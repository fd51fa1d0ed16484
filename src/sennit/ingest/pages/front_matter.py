"""Parses front matter: YAML between lines of ---, or TOML between lines of +++.

The YAML parser covers the subset that front matter uses: scalars, quotes, lists, maps, block scalars. It is our own
because it never fails and builds plain values only. Syntax that it does not support (anchors, tags, several documents)
stays text, so that a page with invalid YAML is still indexed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Final

from sennit.records import Json, is_unicode

_KEY: Final = re.compile(
    r"""(?:"([^"]*)"|'([^']*)'|([^\s#"'\[\]{}&*!|>%@`,-][^\s:]*(?: [^\s:]+)*|-[^\s:]+))\s*:(?=\s|\Z)"""
)
_BLOCK: Final = re.compile(r"([|>])[0-9+-]*\s*(?:#.*)?\Z")
_COMMENT: Final = re.compile(r"\s#.*\Z|\A#.*\Z")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}\Z")
_DECIMAL: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\Z")
_WORDS: Final[dict[str, Json]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "e": "\x1b"}

MAX_DEPTH: Final = 16


def parse_front_matter(lines: Sequence[str]) -> tuple[dict[str, Json], int]:
    """Return the values and the line after the front matter; no values and 0 if there is none."""
    if not lines:
        return {}, 0
    mark = lines[0].rstrip().removeprefix("\ufeff")
    if mark not in ("---", "+++"):
        return {}, 0
    ends = ("---", "...") if mark == "---" else ("+++",)
    end = next((at for at in range(1, len(lines)) if lines[at].rstrip() in ends), 0)
    inside = lines[1:end]
    if not end:
        return {}, 0
    if mark == "+++":
        values = _parse_toml(inside)
        return ({}, 0) if values is None else (values, end + 1)
    content = [line for line in inside if line.strip() and not line.lstrip().startswith("#")]
    if content and not _KEY.match(content[0]):
        # The page starts with a thematic break, not with front matter.
        return {}, 0
    return _YamlParser(inside).parse_map(0), end + 1


def _parse_toml(lines: Sequence[str]) -> dict[str, Json] | None:
    try:
        return {key: _to_json(value) for key, value in tomllib.loads("\n".join(lines)).items()}
    except tomllib.TOMLDecodeError:
        return None


def _to_json(value: object) -> Json:
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _to_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_to_json(inner) for inner in value]
    return value if isinstance(value, (str, bool, int, float)) else str(value)


class _YamlParser:
    """Parses YAML with a cursor over the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [line.replace("\t", "    ") if line[:1] == "\t" else line for line in lines]
        self._at = 0

    def parse_map(self, indent: int, depth: int = 0) -> dict[str, Json]:
        """Parse the keys at this indent. Lines without a key are skipped."""
        out: dict[str, Json] = {}
        while (line := self._next_line()) is not None:
            here = _indent(line)
            if here < indent:
                break
            key = _KEY.match(line, here)
            self._at += 1
            if key is None or here > indent:
                continue
            name = key[1] or key[2] or key[3] or ""
            value = self._parse_value(line[key.end() :].strip(), here, depth)
            if name and is_unicode(name):
                out[name] = value
        return out

    def _next_line(self) -> str | None:
        """Return the next line that is neither blank nor a comment."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and not line.lstrip().startswith("#"):
                return line
            self._at += 1
        return None

    def _parse_value(self, text: str, indent: int, depth: int) -> Json:
        """Parse the value after a key or a dash at `indent`."""
        if block := _BLOCK.match(text):
            return self._parse_block(indent, folded=block[1] == ">")
        if not text or _COMMENT.match(text):
            return self._parse_nested(indent, depth)
        while (line := self._peek_line()) is not None and _indent(line) > indent:
            # The value continues on the next line.
            text = f"{text} {line.strip()}"
            self._at += 1
        return _parse_flow(text, depth)

    def _peek_line(self) -> str | None:
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        return line if line.strip() else None

    def _parse_nested(self, indent: int, depth: int) -> Json:
        """Parse a list or map below its key. A list may have the indent of the key."""
        line = self._next_line()
        if line is None or depth >= MAX_DEPTH:
            return None
        here = _indent(line)
        if _is_dash(line, here) and here >= indent:
            return self._parse_list(here, depth + 1)
        if here <= indent:
            return None
        if _KEY.match(line, here):
            return self.parse_map(here, depth + 1)
        self._at += 1
        return self._parse_value(line.strip(), indent, depth)

    def _parse_list(self, indent: int, depth: int) -> list[Json]:
        out: list[Json] = []
        while (line := self._next_line()) is not None:
            here = _indent(line)
            if here != indent or not _is_dash(line, here):
                break
            rest = line[here + 1 :]
            inner = here + 1 + _indent(rest)
            if depth < MAX_DEPTH and (_is_dash(line, inner) or _KEY.match(line, inner)):
                # A list or map starts on the line of the dash.
                self._lines[self._at] = " " * inner + line[inner:]
                out.append(
                    self._parse_list(inner, depth + 1)
                    if _is_dash(line, inner)
                    else self.parse_map(inner, depth + 1)
                )
                continue
            self._at += 1
            out.append(self._parse_value(rest.strip(), here, depth))
        return out

    def _parse_block(self, indent: int, *, folded: bool) -> str:
        rows: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and _indent(line) <= indent:
                break
            rows.append(line)
            self._at += 1
        margin = min((_indent(row) for row in rows if row.strip()), default=0)
        rows = [row[margin:].rstrip() for row in rows]
        if not folded:
            return "\n".join(rows).strip("\n")
        return "\n".join(" ".join(part.split("\n")) for part in "\n".join(rows).strip("\n").split("\n\n"))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_dash(line: str, at: int) -> bool:
    return line[at : at + 1] == "-" and line[at + 1 : at + 2] in ("", " ")


def _parse_flow(text: str, depth: int) -> Json:
    """Parse a value on one line."""
    value, rest = _parse_item(text, depth)
    if rest.strip() and not _COMMENT.match(rest):
        # Text after the value makes all of it a text: '"a" and b', '[1] note'.
        return _parse_scalar(_COMMENT.sub("", text).strip(), quoted=False)
    return value


def _parse_item(text: str, depth: int, stops: str = "") -> tuple[Json, str]:
    """Parse the value at the start of a text, and return it with the rest of the text."""
    text = text.lstrip()
    first = text[:1]
    if first in ("'", '"'):
        end = _quote_end(text)
        if end:
            inside = text[1:end]
            inside = inside.replace("''", "'") if first == "'" else _ESCAPE.sub(_unescape, inside)
            return _parse_scalar(inside, quoted=True), text[end + 1 :]
    elif first and first in "[{" and depth < MAX_DEPTH:
        return _parse_collection(text, depth)
    end = min((at for at in (text.find(mark) for mark in stops) if at >= 0), default=len(text))
    bare = _COMMENT.sub("", text[:end]) if not stops else text[:end]
    return _parse_scalar(bare.strip(), quoted=False), text[end:]


def _parse_collection(text: str, depth: int) -> tuple[Json, str]:
    """Parse a list in brackets or a map in braces."""
    close = "]" if text[0] == "[" else "}"
    items: list[Json] = []
    named: dict[str, Json] = {}
    rest = text[1:].lstrip()
    while rest and rest[0] != close:
        if close == "}" and (key := _KEY.match(rest)):
            value, rest = _parse_item(rest[key.end() :], depth + 1, f",{close}")
            named[key[1] or key[2] or key[3] or ""] = value
        else:
            value, rest = _parse_item(rest, depth + 1, f",{close}")
            items.append(value)
        rest = rest.lstrip()
        if rest[:1] == ",":
            rest = rest[1:].lstrip()
        elif rest[:1] != close:
            # It is not closed, or has text between an item and a comma: it is a text.
            return _parse_scalar(text.strip(), quoted=False), ""
    if not rest:
        return _parse_scalar(text.strip(), quoted=False), ""
    return (named if close == "}" else items), rest[1:]


def _quote_end(text: str) -> int:
    """Return the position of the closing quote; 0 if the quote is not closed."""
    mark, at = text[0], 1
    while at < len(text):
        if text[at] == "\\" and mark == '"':
            at += 2
        elif text[at] != mark:
            at += 1
        elif mark == "'" and text[at + 1 : at + 2] == "'":
            at += 2
        else:
            return at
    return 0


def _unescape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        number = int(code, 16)
        return chr(number) if number < 0x110000 else "\ufffd"
    return _ESCAPED.get(found[4], found[4])


def _parse_scalar(text: str, *, quoted: bool) -> Json:
    if not is_unicode(text):
        text = text.encode(errors="replace").decode()
    if quoted:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text):
        # A number with leading zeros, such as 007, is a text.
        return text if text.lstrip("+-").startswith("0") and text.lstrip("+-") != "0" else int(text)
    if _DECIMAL.match(text):
        return float(text)
    return text
