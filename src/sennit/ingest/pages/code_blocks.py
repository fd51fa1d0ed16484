"""The code on a page: fences, and code in the props or the content of a component."""

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
"""Props whose name implies the language of their text."""


class CodeBlock(NamedTuple):
    """A piece of code and its lines on the page: the first, and the one after the last."""

    language: str
    text: str
    first: int
    last: int
    title: str = ""


def find_code_blocks(outline: Outline) -> list[CodeBlock]:
    """Return all code on a page, in order."""
    found: list[CodeBlock] = []
    for block in outline.blocks:
        if block.kind == "fence":
            found.append(_read_fence(outline.lines, block.first, block.last))
        elif block.kind in ("jsx", "html"):
            found += _read_props(outline.lines, block.first, block.last)
    found += (_read_fence(outline.lines, first, last) for first, last in outline.code)
    return sorted((code for code in found if code.text.strip()), key=lambda code: code.first)


def _read_fence(lines: Sequence[str], first: int, last: int) -> CodeBlock:
    opening = lines[first]
    at = min(place for place in (opening.find("```"), opening.find("~~~")) if place >= 0)
    mark = FENCE.match(opening, at)
    info = opening[mark.end() :] if mark else ""
    closed = mark is not None and last - first > 1 and _closes(lines[last - 1], mark[0])
    inside = [line[_margin(line, at) :] for line in lines[first + 1 : last - 1 if closed else last]]
    named = _INFO.match(info)
    title = _TITLE.search(info)
    return CodeBlock(
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
    """Return the number of characters before the code: white space and quote marks, at most those before the fence."""
    at = 0
    while at < min(columns, len(line)) and line[at] in " \t>":
        at += 1
    return at


def _read_props(lines: Sequence[str], first: int, last: int) -> Iterator[CodeBlock]:
    text = "\n".join(lines[first:last])
    language = _LANGUAGE.search(text)
    for found in _TEMPLATE.finditer(text):
        source = found[2].replace("\\`", "`").replace("\\$", "$").strip("\n")
        yield CodeBlock(
            _LANGUAGE_OF_PROP.get(found[1] or "", language[1] if language else ""), source, first, last
        )
    for found in _STRING.finditer(text):
        source = (found[2] or found[3] or "").strip("\n")
        yield CodeBlock(_LANGUAGE_OF_PROP.get(found[1], language[1] if language else ""), source, first, last)
