"""Titles: the text of a heading without markup, its anchor, and its form for comparison."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import pyromark

if TYPE_CHECKING:
    from pyromark.event import BrokenLink

MAX_TITLE_CHARS: Final = 200
"""A longer heading is truncated: it is a paragraph that somebody underlined."""

_ATTRIBUTES: Final = re.compile(r"\s*\\?\{\s*(?:[#.:][^{}]*|/\*[^{}]*\*/\s*)\}\s*(?=#*\s*\Z)")
"""Attributes at the end of a heading: `{#id}`, `{ #id .class }`, `{: #id }`, and the comment that MDX uses instead,
`{/* #id */}`. pulldown-cmark has an option for attributes, which also takes the `{id}` of `GET /users/{id}`."""

_ANCHOR: Final = re.compile(r"\{[\s:/*]*(?:[^{}#]*\s)?#([^\s{}*]+)")
_CLOSING_HASHES: Final = re.compile(r"(?:(?<=[ \t])|(?<=\A))#+[ \t]*\Z")
_MARKED: Final = re.compile(r"[`*_\[<{\\&~:\n\t\x00]|  ")
_SHORTCODE: Final = re.compile(
    r"(?<![\w:]):(?:[a-z][a-z0-9_-]*|[+-]1|100|1234):(?:\{[^{}]*\})?(?![\w:])", re.I
)
"""An emoji or icon by its name: `:rocket:`, `:material-check:{ .large }`."""

_FOOTNOTE: Final = re.compile(r"\[\^[^\]]+\]")
_NUMBER: Final = re.compile(r"(?:\d+\.)*\d+[.)]?\s+")
_AROUND: Final = re.compile(r"\A[\W_]+|[\W_]+\Z")
_NOT_IN_SLUG: Final = re.compile(r"[^\w\- ]+")


class Title(NamedTuple):
    """The text of a heading without markup, and its anchor."""

    text: str
    anchor: str


def read_heading(source: str) -> Title:
    """Read the text of a heading as it is written, without the opening #s or the underline."""
    source = source.strip(" \t")
    if not _MARKED.search(source):
        shown = _CLOSING_HASHES.sub("", source).rstrip(" \t")[:MAX_TITLE_CHARS]
        return Title(shown, heading_anchor(shown))
    source = source[: 4 * MAX_TITLE_CHARS]
    anchor = ""
    if "{" in source and (found := _ATTRIBUTES.search(source)):
        named = _ANCHOR.search(found[0])
        anchor = named[1] if named else ""
        source = f"{source[: found.start()]} {source[found.end() :]}"
    source = _CLOSING_HASHES.sub("", source).rstrip(" \t")
    text, code = _inline_text(source)
    shown = _finish(text, code)
    if not anchor:
        # Site generators make a shortcode part of the anchor.
        anchor = heading_anchor(_finish(text, code, shortcodes=True) if ":" in text else shown)
    return Title(shown, anchor)


def plain_title(text: str) -> str:
    """Return a title without markup."""
    return read_heading(" ".join(text.split())).text


def heading_anchor(title: str) -> str:
    """Return the anchor that most site generators make from a title."""
    return _NOT_IN_SLUG.sub("", title.lower()).strip().replace(" ", "-")


def normalise_title(title: str) -> str:
    """Return a title for comparison: without a leading number, surrounding punctuation, or case."""
    if not title.isalpha():
        title = _NUMBER.sub("", title, count=1) if title[:1].isdigit() else title
        title = _AROUND.sub("", title)
    return title.casefold()


def _inline_text(source: str) -> tuple[str, list[str]]:
    """Return the text of inline Markdown, with a mark in the place of each code span, and the code spans."""
    text: list[str] = []
    code: list[str] = []
    # A heading cannot contain blocks, so all of the text is parsed as inline Markdown.
    heading = "# " + " ".join(source.replace("\x00", "").split())
    for event in _MARKDOWN.events(heading):
        if isinstance(event, str):
            text.append(" ")
        elif "Text" in event:
            text.append(event["Text"])
        elif "Code" in event:
            text.append("\x00")
            code.append(event["Code"].strip())
    return "".join(text), code


def _finish(text: str, code: list[str], *, shortcodes: bool = False) -> str:
    """Put the code spans back, after the shortcodes are removed from the text around them."""
    if ":" in text and not shortcodes:
        text = _SHORTCODE.sub("", text)
    if "[^" in text:
        text = _FOOTNOTE.sub("", text)
    spans = iter(code)
    text = "".join(next(spans, "") if char == "\x00" else char for char in text) if code else text
    return " ".join(text.split())[:MAX_TITLE_CHARS].strip()


def _resolve_link(link: BrokenLink) -> tuple[str, str] | None:
    """Accept `[text][reference]`, whose definition is elsewhere on the page; brackets alone are text."""
    return None if link["link_type"] == "Shortcut" else ("", "")


_MARKDOWN: Final = pyromark.Markdown(
    options=pyromark.Options.ENABLE_STRIKETHROUGH, broken_link_callback=_resolve_link
)
