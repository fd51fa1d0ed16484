"""What a file takes from elsewhere, in one form for all languages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from sennit.ingest.code.entities import Import

MOST_NAMES: Final = 1000
"""From one file; more are not read by a person, and not written by one."""

_LAST_PART: Final = re.compile(r"[\w$-]+(?=\W*$)")


def imports_of(found: Sequence[Mapping[str, str]]) -> tuple[Import, ...]:
    """The imports, in order, each once; a whole module only where no name of it is taken."""
    out: dict[tuple[str, str], Import] = {}
    for captures in found:
        module = captures.get("import.module", "").strip("\"'`<>")
        name = captures.get("import.name", "")
        alias = captures.get("import.alias", "")
        for one in _spread(module, name, alias):
            out.setdefault((one.module, one.name), one)
            if len(out) >= MOST_NAMES:
                break
    named = {module for module, name in out if name}
    return tuple(one for one in out.values() if one.name or one.module not in named)


def _spread(module: str, name: str, alias: str) -> Iterator[Import]:
    if "::" in module or "{" in module:
        for path in _paths(module):
            path, _, renamed = path.partition(" as ")
            inside, _, last = path.rpartition("::")
            last = "" if last in ("*", "self") else last
            yield Import(inside or path, last if inside else "", renamed.strip() or last)
        return
    bound = alias or name or (found[0] if (found := _LAST_PART.search(module)) else module)
    yield Import(module, name, bound)


def _paths(text: str) -> Iterator[str]:
    """`a::{b, c::{d, e}}` as a::b, a::c::d, a::c::e."""
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
