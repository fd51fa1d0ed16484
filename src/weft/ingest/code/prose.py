"""The words of a definition: its signature, what its comment or docstring says, and the parts of its name."""

from __future__ import annotations

import re
import textwrap
from typing import Final

MOST_SIGNATURE: Final = 300
MOST_DOC: Final = 2000
"""Characters; what is longer is in the entity's text anyway."""

_QUOTED: Final = re.compile(r"""^[rbuRBU]{0,2}("{3}|'{3}|"|')(.*?)\1?$""", re.S)
_MARKS: Final = re.compile(
    r"^[ \t]*(?:/\*[*!]?|\*/|\*(?!\*)|///?!?|//!|#+!?|--)[ \t]?|[ \t]*\*/[ \t]*$", re.M
)
_TEMPLATE: Final = re.compile(r"<[^<>]*>")
_NOBODY: Final = frozenset({"exports", "module.exports", "this", "self", "window", "globalThis"})


def signature_of(text: str, *, whole: bool) -> str:
    """One line: what stands before the body, or the first line of what has none."""
    line = " ".join(text.split()) if whole else " ".join(text.split("\n", 1)[0].split())
    line = line.rstrip(" {:=;")
    return line if len(line) <= MOST_SIGNATURE else f"{line[: MOST_SIGNATURE - 1]}…"


def doc_of(text: str) -> str:
    """A docstring without its quotes, or a comment without its marks."""
    quoted = _QUOTED.match(text)
    if quoted:
        first, newline, rest = quoted[2].partition("\n")
        said = f"{first.strip()}{newline}{textwrap.dedent(rest)}"
    else:
        said = _MARKS.sub("", text)
    return said.strip()[:MOST_DOC].rstrip()


def owner_of(text: str) -> str:
    """What a function is assigned to belongs to: `Foo.prototype` is Foo, `module.exports` is nobody."""
    text = text.strip()
    return "" if text in _NOBODY or len(text) > 80 else text.removesuffix(".prototype")


def parts_of(name: str) -> list[str]:
    """The parts of a qualified name as its language writes it: a::b, a.b, "a", Vec<T>::push."""
    if name.startswith("operator"):
        return [" ".join(name.split())]
    name = _TEMPLATE.sub("", name).strip("\"'`[] \t\n")
    return [part.strip() for part in re.split(r"::|\.", name) if part.strip()] if len(name) <= 200 else []
