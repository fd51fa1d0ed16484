"""The code on a page: fences, and the source that a component is given in a prop or as its content."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sennit.ingest.pages.outline import Outline
from sennit.ingest.pages.patterns import FENCE

_TEMPLATE: Final = re.compile(r"(?:\b([\w-]+)\s*=\s*|>\s*)\{\s*`((?:\\.|[^`\\])*+)`\s*\}", re.S)
_STRING: Final = re.compile(r"\b(tune|code|source)\s*=\s*(?:\{\s*)?(?:\"([^\"]*)\"|'([^']*)')")
_LANGUAGE: Final = re.compile(r"\b(?:lang|language)\s*=\s*[{\"'`]*([\w+#-]+)")
_INFO: Final = re.compile(r"[ \t]*\{?[ \t]*\.?([\w+#-]*)")
_TITLE: Final = re.compile(r"\btitle\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")

_LANGUAGE_OF_PROP: Final = {"tune": "strudel"}
"""Props whose name says in which language their text is."""


class Code(NamedTuple):
    """A piece of code and the lines of the page that it is on: first, and the one after the last."""

    language: str
    text: str
    first: int
    last: int
    title: str = ""


def code_blocks(outline: Outline) -> list[Code]:
    """All code on a page, in order."""
    found: list[Code] = []
    for block in outline.blocks:
        if block.kind == "fence":
            found.append(_fenced(outline.lines, block.first, block.last))
        elif block.kind in ("jsx", "html"):
            found += _in_props(outline.lines, block.first, block.last)
    found += (_fenced(outline.lines, first, last) for first, last in outline.code)
    return sorted((code for code in found if code.text.strip()), key=lambda code: code.first)


def _fenced(lines: Sequence[str], first: int, last: int) -> Code:
    opening = lines[first]
    at = min(place for place in (opening.find("```"), opening.find("~~~")) if place >= 0)
    mark = FENCE.match(opening, at)
    info = opening[mark.end() :] if mark else ""
    closed = mark is not None and last - first > 1 and _closes(lines[last - 1], mark[0])
    inside = [line[_margin(line, at) :] for line in lines[first + 1 : last - 1 if closed else last]]
    named = _INFO.match(info)
    title = _TITLE.search(info)
    return Code(
        named[1].lower() if named else "",
        "\n".join(inside),
        first,
        last,
        (title[1] or title[2] or "") if title else "",
    )


def _closes(line: str, mark: str) -> bool:
    bare = line.strip(" \t>")
    return bare.startswith(mark) and not bare.strip(mark[0])


def _margin(line: str, columns: int) -> int:
    """Characters before the code: white space and the marks of quotes, at most as many as before the fence."""
    at = 0
    while at < min(columns, len(line)) and line[at] in " \t>":
        at += 1
    return at


def _in_props(lines: Sequence[str], first: int, last: int) -> Iterator[Code]:
    text = "\n".join(lines[first:last])
    language = _LANGUAGE.search(text)
    for found in _TEMPLATE.finditer(text):
        source = found[2].replace("\\`", "`").replace("\\$", "$").strip("\n")
        yield Code(
            _LANGUAGE_OF_PROP.get(found[1] or "", language[1] if language else ""), source, first, last
        )
    for found in _STRING.finditer(text):
        source = (found[2] or found[3] or "").strip("\n")
        yield Code(_LANGUAGE_OF_PROP.get(found[1], language[1] if language else ""), source, first, last)
