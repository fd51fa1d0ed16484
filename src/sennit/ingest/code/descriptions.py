"""The text of a definition: its signature, the text of its comment or docstring, and the parts of its name."""

from __future__ import annotations

import re
import textwrap
from typing import Final

MAX_SIGNATURE_CHARACTERS: Final = 300
MAX_DOC_CHARACTERS: Final = 2000
"""Longer texts are cut. The text of the entity has them in full."""
MAX_COMMENT_CHARACTERS: Final = 3 * MAX_DOC_CHARACTERS
"""How much of a comment is read, with its markers and indentation."""

_QUOTED: Final = re.compile(r"""^[rbuRBU]{0,2}("{3}|'{3}|"|')(.*?)\1?$""", re.S)
_COMMENT_MARKERS: Final = re.compile(
    r"^[ \t]*(?:/\*[*!]?|\*/|\*(?!\*)|///?!?|//!|#+!?|--)[ \t]?|[ \t]*\*/[ \t]*$", re.M
)
_NO_PROSE: Final = re.compile(
    r"""^[ \t]*(?:
      [^\w\n]{4,}
      | (?:eslint|tslint|jshint|jslint|prettier|istanbul|globals?|clang-format|vim|pylint|mypy|ruff|fmt|flake8|go)
        [ :-] .*
      | @(?:ts-|flow|jest-|license|preserve|author|since|unittest) .*
      | (?:NOLINT|noqa|-\*-|\+build|!/) .*
    )$""",
    re.M | re.X,
)
"""Lines of a comment that do not describe the code: rulers and directives for tools."""

_LICENCE: Final = re.compile(
    r"""copyright\b.*(?:\d{4}|\(c\))|\(c\)\ .*\d{4}|©|all\ rights\ reserved|SPDX-|licen[cs]ed\ (?:under|as|to)
    |permission\ is\ hereby|redistribution\ and\ use|governed\ by\ |free\ software""",
    re.I | re.X,
)
_LICENCE_PART: Final = re.compile(
    rf"""{_LICENCE.pattern}|licen[cs]e|copyright|copying\b|warrant|redistribut|as\ is\b|neither\ the\ name""",
    re.I | re.X,
)
"""Used only in a text that matches _LICENCE: on their own, these words may be the topic of a file."""

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")
_MIN_ALPHANUMERIC_SHARE: Final = 0.5
"""Of the characters that are not spaces. A paragraph with a smaller share is a drawing."""

_CAMEL_CASE_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_TEMPLATE: Final = re.compile(r"<[^<>]*>")
_NOT_OWNERS: Final = frozenset({"exports", "module.exports", "this", "self", "window", "globalThis"})


def format_signature(text: str, *, has_body: bool) -> str:
    """The signature on one line: the text before the body, or the first line of a definition without a body."""
    line = " ".join(text.split()) if has_body else " ".join(text.split("\n", 1)[0].split())
    line = line.rstrip(" {:=;")
    return line if len(line) <= MAX_SIGNATURE_CHARACTERS else f"{line[: MAX_SIGNATURE_CHARACTERS - 1]}…"


def clean_doc(text: str) -> str:
    """A docstring without its quotes, or a comment without its markers."""
    quoted = _QUOTED.match(text)
    if quoted:
        first, newline, rest = quoted[2].partition("\n")
        doc = f"{first.strip()}{newline}{textwrap.dedent(rest)}"
    else:
        doc = _NO_PROSE.sub("", _COMMENT_MARKERS.sub("", text[:MAX_COMMENT_CHARACTERS]))
    return doc.strip()[:MAX_DOC_CHARACTERS].rstrip()


def strip_licence(text: str) -> str:
    """The text at the top of a file without its copyright and licence paragraphs."""
    if not _LICENCE.search(text):
        return text
    kept = [part for part in _PARAGRAPHS.split(text) if not _LICENCE_PART.search(part) and _is_prose(part)]
    return "\n\n".join(kept).strip()


def _is_prose(text: str) -> bool:
    characters = "".join(text.split())
    return sum(map(str.isalnum, characters)) > _MIN_ALPHANUMERIC_SHARE * len(characters)


def expand_name(name: str) -> str:
    """A name, followed by its words if it is in camel case: embedding models know words and not compound names."""
    if name.islower():
        return name
    words = _CAMEL_CASE_BOUNDARY.sub(" ", name)
    return name if words == name else f"{name} {words}"


def assignment_owner(text: str) -> str:
    """The owner of a function that is assigned to an attribute: Foo for `Foo.prototype`, none for `module.exports`."""
    text = text.strip()
    return "" if text in _NOT_OWNERS or len(text) > 80 else text.removesuffix(".prototype")


def split_qualified_name(name: str) -> list[str]:
    """Split a qualified name as languages write it: a::b, a.b, "a", Vec<T>::push."""
    if name.startswith("operator"):
        return [" ".join(name.split())]
    name = _TEMPLATE.sub("", name).strip("\"'`[] \t\n")
    return [part.strip() for part in re.split(r"::|\.", name) if part.strip()] if len(name) <= 200 else []
