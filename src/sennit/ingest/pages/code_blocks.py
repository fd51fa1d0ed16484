"""The code on a page: fences, and code in the props or the content of a component."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sennit.ingest.markdown import CodeBlock, Outline

_TEMPLATE: Final = re.compile(r"(?:\b([\w-]+)\s*=\s*|>\s*)\{\s*`((?:\\.|[^`\\])*)`\s*\}", re.S)
_STRING: Final = re.compile(r"\b(tune|code|source)\s*=\s*(?:\{\s*)?(?:\"([^\"]*)\"|'([^']*)')")
_LANGUAGE: Final = re.compile(r"\b(?:lang|language)\s*=\s*[{\"'`]*([\w+#-]+)")

_LANGUAGE_OF_PROP: Final = {"tune": "strudel"}
"""Props whose name implies the language of their text."""


def find_code_blocks(outline: Outline) -> list[CodeBlock]:
    """Return all code on a page, in order."""
    found = list(outline.code)
    for block in outline.blocks:
        if block.kind in ("jsx", "html"):
            found += _read_props(outline.lines, block.first, block.last)
    return sorted((code for code in found if code.text.strip()), key=lambda code: code.first)


def _read_props(lines: Sequence[str], first: int, last: int) -> Iterator[CodeBlock]:
    text = "\n".join(lines[first:last])
    language = _LANGUAGE.search(text)
    for found in _TEMPLATE.finditer(text):
        source = found[2].replace("\\`", "`").replace("\\$", "$").strip("\n")
        named = _LANGUAGE_OF_PROP.get(found[1] or "", language[1] if language else "")
        yield CodeBlock(first, last, named, source)
    for found in _STRING.finditer(text):
        source = (found[2] or found[3] or "").strip("\n")
        named = _LANGUAGE_OF_PROP.get(found[1], language[1] if language else "")
        yield CodeBlock(first, last, named, source)
