"""The words of a definition: its signature, what its comment or docstring says, and the parts of its name."""

from __future__ import annotations

import re
import textwrap
from typing import Final

MOST_SIGNATURE: Final = 300
MOST_DOC: Final = 2000
"""Characters; what is longer is in the entity's text anyway."""
MOST_MARKED: Final = 3 * MOST_DOC
"""Characters of a comment that are read, with its marks and indentation."""

_QUOTED: Final = re.compile(r"""^[rbuRBU]{0,2}("{3}|'{3}|"|')(.*?)\1?$""", re.S)
_MARKS: Final = re.compile(
    r"^[ \t]*(?:/\*[*!]?|\*/|\*(?!\*)|///?!?|//!|#+!?|--)[ \t]?|[ \t]*\*/[ \t]*$", re.M
)
_UNSAID: Final = re.compile(
    r"""^[ \t]*(?:
      [^\w\n]{4,}
      | (?:eslint|tslint|jshint|jslint|prettier|istanbul|globals?|clang-format|vim|pylint|mypy|ruff|fmt|flake8|go)
        [ :-] .*
      | @(?:ts-|flow|jest-|license|preserve|author|since|unittest) .*
      | (?:NOLINT|noqa|-\*-|\+build|!/) .*
    )$""",
    re.M | re.X,
)
"""Lines of a comment that say nothing about the code: rulers, and what is meant for tools."""

_LICENCE: Final = re.compile(
    r"""copyright\b.*(?:\d{4}|\(c\))|\(c\)\ .*\d{4}|©|all\ rights\ reserved|SPDX-|licen[cs]ed\ (?:under|as|to)
    |permission\ is\ hereby|redistribution\ and\ use|governed\ by\ |free\ software""",
    re.I | re.X,
)
_OF_A_LICENCE: Final = re.compile(
    rf"""{_LICENCE.pattern}|licen[cs]e|copyright|copying\b|warrant|redistribut|as\ is\b|neither\ the\ name""",
    re.I | re.X,
)
"""What is said only where something of the above stands before it: by itself it may be what a file is about."""

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")
_LETTERS: Final = 0.5
"""Of what is not space; a paragraph with a smaller share is a drawing."""

_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
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
        said = _UNSAID.sub("", _MARKS.sub("", text[:MOST_MARKED]))
    return said.strip()[:MOST_DOC].rstrip()


def without_licence(text: str) -> str:
    """What is said at the top of a file, without who owns it and what may be done with it."""
    if not _LICENCE.search(text):
        return text
    kept = [part for part in _PARAGRAPHS.split(text) if not _OF_A_LICENCE.search(part) and _is_prose(part)]
    return "\n\n".join(kept).strip()


def _is_prose(text: str) -> bool:
    seen = "".join(text.split())
    return sum(map(str.isalnum, seen)) > _LETTERS * len(seen)


def spelt_out(name: str) -> str:
    """A name, and after one of several words without marks between them the words: models know words, not joined ones."""
    if name.islower():
        return name
    words = _HUMPS.sub(" ", name)
    return name if words == name else f"{name} {words}"


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
