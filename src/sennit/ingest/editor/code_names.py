"""Names in code of any language: by its grammar if there is one, otherwise by regular expressions."""

from __future__ import annotations

import re
from typing import Final

from sennit.errors import MissingExtra
from sennit.ingest.code.entities import CALLABLE_KINDS, MODULE, CodeFile

Names = tuple[list[str], list[str], list[str], list[str]]
"""Imports, called functions, types, defined functions."""

_COMMENT_OR_STRING: Final = re.compile(
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
_DEFINITION: Final = re.compile(
    r"\b(?:def|func|function|fn|fun|sub|proc|method)\s+(?:\([^)]*\)\s*)?([A-Za-z_]\w*)"
)
_TYPE: Final = re.compile(
    r"\b(?:class|struct|interface|trait|enum|type|record|module)\s+([A-Za-z_]\w*)|\b([A-Z][a-z]\w*)\b"
)
_CALL: Final = re.compile(r"\b([A-Za-z_]\w*)\s*!?\(")

_COMMON_NAMES: Final = frozenset("""
    if for while switch match return catch with and or not in is elif else print println printf sprintf len range str
    int float bool list dict set tuple string number object self this super cls main init new make append push map
    filter type isinstance console log require function func fn def lambda await async yield assert raise throw try
    Some None Ok Err String Vec Box Result Option Self Object Array Number Boolean Promise Error Exception void char
    true false null nil undefined as from import use std fmt open get
""".split())  # fmt: skip
"""Keywords and names that occur in almost every program."""


def extract_names(code: str, language: str) -> Names:
    """Return the names that describe code, in the order of the code. The code may be incomplete."""
    parsed = _parse(code, language)
    imports, calls, types, defined = _names_by_pattern(code)
    if parsed is not None:
        exact = _names_of_file(parsed)
        # The patterns find types that a grammar cannot distinguish from values, and names in incomplete code.
        types = [*exact[2], *types]
        imports = [*exact[0], *(imports if parsed.broken else ())]
        calls = [*exact[1], *(calls if parsed.broken else ())]
        defined = [*exact[3], *(defined if parsed.broken else ())]
    own = {*defined, *types}
    calls = [name for name in calls if name not in own]
    return _drop_common(imports), _drop_common(calls), _drop_common(types), _drop_common(defined)


def _parse(code: str, language: str) -> CodeFile | None:
    """Parse code if its grammar exists and is installed."""
    try:
        from sennit.ingest.code.grammars import GRAMMARS
        from sennit.ingest.code.parser import parse_code

        if language not in GRAMMARS:
            return None
        found = parse_code("editor", code, language)
    except MissingExtra:
        return None
    return found if found.parsed else None


def _names_of_file(found: CodeFile) -> Names:
    imports = [part for one in found.imports for part in (one.name, _last_part(one.module)) if part]
    calls: list[str] = []
    types: list[str] = []
    defined: list[str] = []
    for entity in found.entities:
        if entity.kind in CALLABLE_KINDS:
            defined.append(entity.name)
        elif entity.kind not in (MODULE, "constant"):
            types.append(entity.name)
        calls += entity.calls
        types += (name for name in entity.references if name[:1].isupper())
    return imports, calls, types, defined


def _names_by_pattern(code: str) -> Names:
    imports = [
        word
        for found in _IMPORT.finditer(code)
        for part in found.groups()
        if part
        for word in map(_last_part, re.split(r"[\s,{}]+", part))
        if word and word != "*"
    ]
    imports += map(_last_part, _QUOTED_IMPORT.findall(code))
    bare = _COMMENT_OR_STRING.sub(" ", code)
    types = [one or other for one, other in _TYPE.findall(bare)]
    return imports, _CALL.findall(bare), types, _DEFINITION.findall(bare)


def _last_part(path: str) -> str:
    """Return the last part of `a.b.c`, `a/b/c` or `a::b::c`, which people use as the name."""
    words = re.findall(r"[\w-]+", path)
    return words[-1] if words else ""


def _drop_common(names: list[str]) -> list[str]:
    return [name for name in names if name not in _COMMON_NAMES and name.strip("_") and not name.isdigit()]
