"""The imports of a file, in one form for all languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sennit.ingest.code.entities import Import

MAX_IMPORTS: Final = 1000
"""Per file; only generated code has more."""

_LAST_PART: Final = re.compile(r"[\w$-]+(?=\W*$)")


def collect_imports(matches: Sequence[Mapping[str, str]]) -> tuple[Import, ...]:
    """The imports in order, without duplicates. A whole module is left out if a name of it is imported."""
    out: dict[tuple[str, str], Import] = {}
    for captures in matches:
        module = captures.get("import.module", "").strip("\"'`<>")
        name = captures.get("import.name", "")
        alias = captures.get("import.alias", "")
        for item in _expand(module, name, alias):
            out.setdefault((item.module, item.name), item)
            if len(out) >= MAX_IMPORTS:
                break
    with_names = {module for module, name in out if name}
    return tuple(item for item in out.values() if item.name or item.module not in with_names)


def _expand(module: str, name: str, alias: str) -> Iterator[Import]:
    if "::" in module or "{" in module:
        for path in _expand_braces(module):
            path, _, renamed = path.partition(" as ")
            inside, _, last = path.rpartition("::")
            last = "" if last in ("*", "self") else last
            yield Import(inside or path, last if inside else "", renamed.strip() or last)
        return
    bound = alias or name or (found[0] if (found := _LAST_PART.search(module)) else module)
    yield Import(module, name, bound)


def _expand_braces(text: str) -> Iterator[str]:
    """Expand `a::{b, c::{d, e}}` to a::b, a::c::d, a::c::e."""
    text = " ".join(text.split())
    prefixes: list[str] = [""]
    part = ""
    for character in text:
        if character == "{":
            prefixes.append(prefixes[-1] + part)
            part = ""
        elif character in ",}":
            if part.strip():
                yield prefixes[-1] + part.strip()
            part = ""
            if character == "}" and len(prefixes) > 1:
                prefixes.pop()
        else:
            part += character if character != " " or part else ""
    if part.strip():
        yield prefixes[-1] + part.strip()
