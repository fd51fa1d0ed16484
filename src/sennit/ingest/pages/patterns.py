"""The patterns that start and end Markdown blocks, after CommonMark 0.31."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

ATX: Final = re.compile(r"#{1,6}(?=[ \t]|\Z)")
FENCE: Final = re.compile(r"`{3,}(?=[^`]*\Z)|~{3,}")
RULE: Final = re.compile(r"(?:(?:\*[ \t]*+){3,}+|(?:-[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)\Z")
UNDERLINE: Final = re.compile(r"(?:=+|-+)[ \t]*\Z")
MARKER: Final = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|\Z)")
REFERENCE: Final = re.compile(r" {0,3}\[(?:[^\[\]\\]|\\.)+\]:[ \t]*\S")
CLOSING_HASHES: Final = re.compile(r"(?:(?<=[ \t])|(?<=\A))#+[ \t]*\Z")

_BLOCK_TAGS: Final = """
    address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt
    fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link
    main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead
    title tr track ul
""".split()
_ATTRIBUTE: Final = (
    r"""(?:\s++[a-zA-Z_:][a-zA-Z0-9:._-]*+(?:\s*+=\s*+(?:[^"'=<>`\x00-\x20]++|'[^']*+'|"[^"]*+"))?+)"""
)

RAW_TAG: Final = re.compile(r"<(?:script|pre|style|textarea)(?=\s|>|\Z)", re.IGNORECASE | re.ASCII)
RAW_TAG_END: Final = re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE | re.ASCII)
BLOCK_TAG: Final = re.compile(rf"</?(?:{'|'.join(_BLOCK_TAGS)})(?=\s|/?>|\Z)", re.IGNORECASE | re.ASCII)
LONE_TAG: Final = re.compile(
    rf"(?:<[A-Za-z][A-Za-z0-9-]*+{_ATTRIBUTE}*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)\s*\Z"
)

HtmlEnd: TypeAlias = "str | re.Pattern[str]"

UNTIL_BLANK: Final = ""
"""An HTML block that ends before the next blank line; the others end on the line that holds their end."""

_DELIMITER: Final = re.compile(r"[-:|][-:| \t]*+\Z")
_ALIGNED: Final = re.compile(r":?-+:?\Z")
_ESCAPED_PIPE: Final = re.compile(r"\\\|")


def indent_of(line: str) -> int:
    """Return the columns of white space before the text; a tab extends to the next multiple of four."""
    bare = line.lstrip(" \t")
    lead = line[: len(line) - len(bare)]
    return len(lead) if "\t" not in lead else len(lead.expandtabs(4))


def is_blank(line: str) -> bool:
    return not line or not line.strip(" \t")


def html_end(rest: str, *, in_paragraph: bool) -> HtmlEnd | None:
    """Return the end of the HTML block that starts here: a text, a pattern or UNTIL_BLANK; None if none starts."""
    if RAW_TAG.match(rest):
        return RAW_TAG_END
    if rest.startswith("<!--"):
        return "-->"
    if rest.startswith("<?"):
        return "?>"
    if rest.startswith("<![CDATA["):
        return "]]>"
    if rest.startswith("<!") and rest[2:3].isascii() and rest[2:3].isalpha():
        return ">"
    if BLOCK_TAG.match(rest) or (not in_paragraph and LONE_TAG.match(rest)):
        return UNTIL_BLANK
    return None


def ends_html(line: str, end: HtmlEnd) -> bool:
    """Return whether a line contains the end of an HTML block."""
    return end in line if isinstance(end, str) else end.search(line) is not None


def is_table(header: str, delimiter: str) -> bool:
    """Return whether two lines are the head of a table: a header and a delimiter with equal numbers of columns."""
    under = delimiter.strip(" \t")
    if "|" not in header or len(under) < 2 or not _DELIMITER.match(under):
        return False
    if under[0] == "-" and under[1] in " \t":
        return False
    if indent_of(header) > 3 or indent_of(delimiter) > 3:
        return False
    cells = [cell.strip() for cell in under.split("|")]
    inner = cells[(not cells[0]) : len(cells) - (len(cells) > 1 and not cells[-1])]
    if not inner or not all(map(_ALIGNED.match, inner)):
        return False
    return _columns(header.strip()) == len(inner)


def _columns(row: str) -> int:
    cells = _ESCAPED_PIPE.sub("x", row).split("|")
    if cells[0] == "":
        cells.pop(0)
    if cells and cells[-1] == "":
        cells.pop()
    return len(cells)
