"""Remove what a reader cannot see from untrusted text, before a language model or a terminal gets it.

Text can carry instructions that a person does not see and a model does: in tag characters, variation selectors,
zero-width characters or reversed text. Everything that reaches a model passes `sanitize` or one of the functions
built on it. `sanitize_for_terminal` applies the same rules to what is printed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from sennit.records import Json

REPLACEMENT: Final = "\ufffd"
"""Shown on a terminal in place of a character that would have controlled it."""

_CONTROLS: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""C0 and C1 control characters, except newline and tab."""

_LINE_SEPARATORS: Final = "\u2028\u2029"
_BIDI: Final = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Marks, embeddings, overrides and isolates that change the direction of text."""

_JOINERS: Final = "\u200c\u200d"
"""ZERO WIDTH NON-JOINER and JOINER, which Arabic and Indic spelling needs."""

_SURROGATES: Final = "\ud800-\udfff"

_INVISIBLE: Final = "".join(
    (
        # Default_Ignorable_Code_Point of Unicode 16, without the bidirectional controls and the two joiners above.
        # The whole of U+E0000-E0FFF is reserved for it: tags, variation selectors 17-256 and what may follow.
        "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164",
        "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff",
        # Not in that property and drawn as nothing: interlinear annotation, hieroglyph controls, the blank of Braille.
        "\ufff9-\ufffb\U00013430-\U0001343f\u2800",
        # Noncharacters.
        "\ufdd0-\ufdef",
        *(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)),
    )
)

_NEWLINE: Final = re.compile("\r\n?|[\x85\u2028\u2029]")
_REMOVED: Final = re.compile(f"[{_CONTROLS}{_BIDI}{_INVISIBLE}{_SURROGATES}]+")
_JOINER_RUN: Final = re.compile(f"[{_JOINERS}]+")
_UNSAFE: Final = re.compile(f"[{_CONTROLS}{_LINE_SEPARATORS}{_BIDI}{_JOINERS}{_INVISIBLE}{_SURROGATES}]")
_TERMINAL_CONTROL: Final = re.compile(f"[{_CONTROLS}{_LINE_SEPARATORS}{_BIDI}{_SURROGATES}]")

_JOINING_BLOCKS: Final = re.compile(
    "["
    "\u0600-\u08ff"  # Arabic, Syriac, N'Ko, Mandaic
    "\u0900-\u0dff"  # Devanagari to Sinhala
    "\u1000-\u109f\u1780-\u17ff\u1800-\u18af"  # Myanmar, Khmer, Mongolian
    "\u1b00-\u1bff\ua800-\ua8ff\ua980-\ua9ff\uaa60-\uaa7f\uaae0-\uaaff\uabc0-\uabff"  # further scripts with conjuncts
    "\ufb50-\ufdff\ufe70-\ufefc"  # Arabic presentation forms
    "\U00011000-\U00011fff"  # Brahmi and its descendants
    "]"
)
"""Blocks of the scripts whose spelling uses joiners."""

_TAG_OPENERS: Final = "<\uff1c\ufe64"
"""Characters that a reader may take for the beginning of a tag."""


def sanitize(text: str) -> str:
    """Return the text without controls (except newline and tab), bidirectional controls and invisible characters.

    Every line ending becomes a newline. A joiner stays between two letters of a script that needs it. Private-use
    characters stay.
    """
    if _UNSAFE.search(text) is None:
        return text
    return _drop_joiners(_REMOVED.sub("", _NEWLINE.sub("\n", text)), keep_at_edges=False)


def sanitize_for_terminal(text: str) -> str:
    """Return the text as a terminal may print it; `REPLACEMENT` shows where something would have controlled it.

    Newline and tab stay. The text may be a part of a stream, so a joiner at its beginning or end stays too.
    """
    if _UNSAFE.search(text) is None:
        return text
    return _drop_joiners(_REMOVED.sub("", _TERMINAL_CONTROL.sub(REPLACEMENT, text)), keep_at_edges=True)


def sanitize_json(value: Json) -> Json:
    """Sanitize every string inside a JSON value, the names of its fields too."""
    if isinstance(value, str):
        return sanitize(value)
    if isinstance(value, Mapping):
        return {sanitize(name): sanitize_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [sanitize_json(item) for item in value]
    return value


def escape_json(document: str) -> str:
    """Write the unsafe characters of a JSON document as `\\uXXXX`: nothing is lost, and nothing is hidden."""
    return _UNSAFE.sub(_json_escape, document)


def one_line(text: str) -> str:
    """Return a name or label: sanitized, on one line, without runs of blanks."""
    return " ".join(sanitize(text).split())


def truncate(text: str, max_characters: int) -> str:
    """Return at most so many characters, with an ellipsis where something is missing."""
    return text if len(text) <= max_characters else text[: max_characters - 1].rstrip() + "…"


def escape_markup(text: str) -> str:
    """Escape the text so that no reader takes a part of it for a tag; `>` stays, because it opens nothing."""
    text = text.replace("&", "&amp;")
    for character in _TAG_OPENERS:
        text = text.replace(character, "&lt;")
    return text.replace("]]>", "]]&gt;")


def _drop_joiners(text: str, *, keep_at_edges: bool) -> str:
    """Keep one joiner of each run between letters of a script that needs it."""

    def replace(run: re.Match[str]) -> str:
        before, after = text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        needed = all(_joins(letter) if letter else keep_at_edges for letter in (before, after))
        return run[0][0] if needed else ""

    return _JOINER_RUN.sub(replace, text)


def _joins(character: str) -> bool:
    """Whether this is a letter or mark of a script that needs joiners."""
    return _JOINING_BLOCKS.match(character) is not None and unicodedata.category(character)[0] in "LM"


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
