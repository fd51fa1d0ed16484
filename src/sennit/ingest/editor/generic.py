"""Names in code of any language: by its grammar where there is one, else by how names look."""

from __future__ import annotations

import re
from typing import Final

from sennit.errors import MissingExtra
from sennit.ingest.code.entities import CALLABLE, MODULE, CodeFile

Names = tuple[list[str], list[str], list[str], list[str]]
"""Imports, functions called, types, functions defined."""

_HIDDEN: Final = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|\#[^\n]*|\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""",
    re.S,
)
_IMPORT: Final = re.compile(
    r"""^[ \t]*(?:from\s+([\w./@-]+)\s+import\s+\(?([\w\s,*]+)|(?:import|use|using|require|include|open)\s+([\w.:/{}\s,*@-]+))""",
    re.M,
)
_QUOTED_IMPORT: Final = re.compile(
    r"""^[ \t]*(?:import|export|require|#\s*include|from)\b[^\n;]*?[<"']([\w./@-]+)[>"']""", re.M
)
_DEFINED: Final = re.compile(
    r"\b(?:def|func|function|fn|fun|sub|proc|method)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*)"
)
_TYPE: Final = re.compile(
    r"\b(?:class|struct|interface|trait|enum|type|record|module)\s+([A-Za-z_]\w*)|\b([A-Z][a-z]\w*)\b"
)
_CALL: Final = re.compile(r"\b([A-Za-z_]\w*)\s*!?\(")

_COMMON: Final = frozenset("""
    if for while switch match return catch with and or not in is elif else print println printf sprintf len range str
    int float bool list dict set tuple string number object self this super cls main init new make append push map
    filter type isinstance console log require function func fn def lambda await async yield assert raise throw try
    Some None Ok Err String Vec Box Result Option Self Object Array Number Boolean Promise Error Exception void char
    true false null nil undefined as from import use std fmt open get
""".split())  # fmt: skip
"""Words of the languages and of every program: they say nothing about this one."""


def names_in(code: str, language: str) -> Names:
    """The names that say what code is about, in its own order; code that is only half there is read as far as it goes."""
    parsed = _parsed(code, language)
    imports, calls, types, defined = _by_looks(code)
    if parsed is not None:
        sure = _from_file(parsed)
        # Looks find types that a grammar cannot tell from values, and names in what is not finished.
        types = [*sure[2], *types]
        imports = [*sure[0], *(imports if parsed.broken else ())]
        calls = [*sure[1], *(calls if parsed.broken else ())]
        defined = [*sure[3], *(defined if parsed.broken else ())]
    own = {*defined, *types}
    calls = [name for name in calls if name not in own]
    return _telling(imports), _telling(calls), _telling(types), _telling(defined)


def _parsed(code: str, language: str) -> CodeFile | None:
    """The code by its grammar, when there is one and it is installed."""
    try:
        from sennit.ingest.code.grammars import ROWS
        from sennit.ingest.code.parsing import parse

        if language not in ROWS:
            return None
        found = parse("editor", code, language)
    except MissingExtra:
        return None
    return found if found.parsed else None


def _from_file(found: CodeFile) -> Names:
    imports = [part for one in found.imports for part in (one.name, _last(one.module)) if part]
    calls: list[str] = []
    types: list[str] = []
    defined: list[str] = []
    for entity in found.entities:
        if entity.kind in CALLABLE:
            defined.append(entity.name)
        elif entity.kind not in (MODULE, "constant"):
            types.append(entity.name)
        calls += entity.calls
        types += (name for name in entity.references if name[:1].isupper())
    return imports, calls, types, defined


def _by_looks(code: str) -> Names:
    imports = [
        word
        for found in _IMPORT.finditer(code)
        for part in found.groups()
        if part
        for word in map(_last, re.split(r"[\s,{}]+", part))
        if word and word != "*"
    ]
    imports += map(_last, _QUOTED_IMPORT.findall(code))
    bare = _HIDDEN.sub(" ", code)
    types = [one or other for one, other in _TYPE.findall(bare)]
    return imports, _CALL.findall(bare), types, _DEFINED.findall(bare)


def _last(path: str) -> str:
    """The last part of `a.b.c`, `a/b/c` or `a::b::c`: what people call it."""
    words = re.findall(r"[\w-]+", path)
    return words[-1] if words else ""


def _telling(names: list[str]) -> list[str]:
    return [name for name in names if name not in _COMMON and name.strip("_") and not name.isdigit()]
