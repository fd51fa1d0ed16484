"""What a page says about itself before it begins: YAML between lines of ---, or TOML between lines of +++.

The YAML is the part of it that front matter uses: scalars, quotes, lists, maps, block scalars. A reader of our own
because it never fails, never builds anything but plain values, and keeps a page that is not quite YAML readable:
what it does not understand (anchors, tags, several documents) stays the text it is.
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


def front_matter(lines: Sequence[str]) -> tuple[dict[str, Json], int]:
    """The values, and the line after the front matter; no values and 0 where there is none."""
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
        values = _toml(inside)
        return ({}, 0) if values is None else (values, end + 1)
    said = [line for line in inside if line.strip() and not line.lstrip().startswith("#")]
    if said and not _KEY.match(said[0]):
        # A rule, some text and another rule: a page that begins with a line.
        return {}, 0
    return _Yaml(inside).map(0), end + 1


def _toml(lines: Sequence[str]) -> dict[str, Json] | None:
    try:
        return {key: _plain(value) for key, value in tomllib.loads("\n".join(lines)).items()}
    except tomllib.TOMLDecodeError:
        return None


def _plain(value: object) -> Json:
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, (str, bool, int, float)) else str(value)


class _Yaml:
    """A cursor over the lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = [line.replace("\t", "    ") if line[:1] == "\t" else line for line in lines]
        self._at = 0

    def map(self, indent: int, depth: int = 0) -> dict[str, Json]:
        """The keys at this indent; a line that is no key is passed over."""
        out: dict[str, Json] = {}
        while (line := self._next()) is not None:
            here = _indent(line)
            if here < indent:
                break
            key = _KEY.match(line, here)
            self._at += 1
            if key is None or here > indent:
                continue
            name = key[1] or key[2] or key[3] or ""
            value = self._value(line[key.end() :].strip(), here, depth)
            if name and is_unicode(name):
                out[name] = value
        return out

    def _next(self) -> str | None:
        """The next line that says something."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and not line.lstrip().startswith("#"):
                return line
            self._at += 1
        return None

    def _value(self, text: str, indent: int, depth: int) -> Json:
        """What stands after a key or a dash at `indent`."""
        if block := _BLOCK.match(text):
            return self._block(indent, folded=block[1] == ">")
        if not text or _COMMENT.match(text):
            return self._below(indent, depth)
        while (line := self._peek()) is not None and _indent(line) > indent:
            # The value goes on in the next line.
            text = f"{text} {line.strip()}"
            self._at += 1
        return _flow(text, depth)

    def _peek(self) -> str | None:
        line = self._lines[self._at] if self._at < len(self._lines) else ""
        return line if line.strip() else None

    def _below(self, indent: int, depth: int) -> Json:
        """A list or map under its key; a list may stand at the key's own indent."""
        line = self._next()
        if line is None or depth >= MAX_DEPTH:
            return None
        here = _indent(line)
        if _is_dash(line, here) and here >= indent:
            return self._list(here, depth + 1)
        if here <= indent:
            return None
        if _KEY.match(line, here):
            return self.map(here, depth + 1)
        self._at += 1
        return self._value(line.strip(), indent, depth)

    def _list(self, indent: int, depth: int) -> list[Json]:
        out: list[Json] = []
        while (line := self._next()) is not None:
            here = _indent(line)
            if here != indent or not _is_dash(line, here):
                break
            rest = line[here + 1 :]
            inner = here + 1 + _indent(rest)
            if depth < MAX_DEPTH and (_is_dash(line, inner) or _KEY.match(line, inner)):
                # A list or map begins on the dash's own line.
                self._lines[self._at] = " " * inner + line[inner:]
                out.append(
                    self._list(inner, depth + 1) if _is_dash(line, inner) else self.map(inner, depth + 1)
                )
                continue
            self._at += 1
            out.append(self._value(rest.strip(), here, depth))
        return out

    def _block(self, indent: int, *, folded: bool) -> str:
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


def _flow(text: str, depth: int) -> Json:
    """A value on one line."""
    value, rest = _item(text, depth)
    if rest.strip() and not _COMMENT.match(rest):
        # Not what it began as: '"a" and b' is a text, and so is '[1] note'.
        return _scalar(_COMMENT.sub("", text).strip(), quoted=False)
    return value


def _item(text: str, depth: int, stops: str = "") -> tuple[Json, str]:
    """The value at the beginning of a text, and what is left of the text."""
    text = text.lstrip()
    first = text[:1]
    if first in ("'", '"'):
        end = _quote_end(text)
        if end:
            inside = text[1:end]
            inside = inside.replace("''", "'") if first == "'" else _ESCAPE.sub(_unescape, inside)
            return _scalar(inside, quoted=True), text[end + 1 :]
    elif first and first in "[{" and depth < MAX_DEPTH:
        return _collection(text, depth)
    end = min((at for at in (text.find(mark) for mark in stops) if at >= 0), default=len(text))
    bare = _COMMENT.sub("", text[:end]) if not stops else text[:end]
    return _scalar(bare.strip(), quoted=False), text[end:]


def _collection(text: str, depth: int) -> tuple[Json, str]:
    """A list in brackets or a map in braces."""
    close = "]" if text[0] == "[" else "}"
    items: list[Json] = []
    named: dict[str, Json] = {}
    rest = text[1:].lstrip()
    while rest and rest[0] != close:
        if close == "}" and (key := _KEY.match(rest)):
            value, rest = _item(rest[key.end() :], depth + 1, f",{close}")
            named[key[1] or key[2] or key[3] or ""] = value
        else:
            value, rest = _item(rest, depth + 1, f",{close}")
            items.append(value)
        rest = rest.lstrip()
        if rest[:1] == ",":
            rest = rest[1:].lstrip()
        elif rest[:1] != close:
            # Never closed, or something between an item and the comma: it is a text.
            return _scalar(text.strip(), quoted=False), ""
    if not rest:
        return _scalar(text.strip(), quoted=False), ""
    return (named if close == "}" else items), rest[1:]


def _quote_end(text: str) -> int:
    """Where the quote that opens a text is closed; 0 when it is not."""
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


def _scalar(text: str, *, quoted: bool) -> Json:
    if not is_unicode(text):
        text = text.encode(errors="replace").decode()
    if quoted:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text):
        # 007 is a name.
        return text if text.lstrip("+-").startswith("0") and text.lstrip("+-") != "0" else int(text)
    if _DECIMAL.match(text):
        return float(text)
    return text
