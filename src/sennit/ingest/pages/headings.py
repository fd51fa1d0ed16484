"""The text of a heading: without markup, as an anchor, and normalised for comparison."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

MAX_TITLE_CHARS: Final = 200
"""A longer heading is truncated: it is a paragraph that somebody underlined."""

_ATTRIBUTES: Final = re.compile(r"\s*(?:\{\s*(?:[#.:][^{}]*|/\*.*\*/\s*)\}|\{#[^{}]*\})\s*\Z")
_ANCHOR: Final = re.compile(r"\{\s*:?\s*#([^\s{}]+)[^{}]*\}\s*\Z|\{/\*\s*#([^\s*]+)\s*\*/\}\s*\Z")
_MARKED: Final = re.compile(r"[`*_\[<{\\&~\n\t\x00]|  ")
_IMAGE: Final = re.compile(r"!\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_LINK: Final = re.compile(r"\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]*>|<!--.*?-->")
_CODE: Final = re.compile(r"(?<!`)(`++)(?P<text>.+?)(?<!`)\1(?!`)")
_STRONG: Final = re.compile(r"(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1|(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\3(?!\w)")
_ESCAPED: Final = re.compile(r"\\(?P<text>[!-/:-@\[-`{-~])")
_KEPT: Final = re.compile("\x00(\\d+)\x00")
_NUMBER: Final = re.compile(r"(?:\d+\.)*\d+[.)]?\s+")
_AROUND: Final = re.compile(r"\A[\W_]+|[\W_]+\Z")
_NOT_IN_SLUG: Final = re.compile(r"[^\w\- ]+")


def strip_markup(text: str) -> str:
    """Return the text of a heading without markup."""
    if not _MARKED.search(text):
        return text[:MAX_TITLE_CHARS]
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found["text"].strip())
        return f"\x00{len(kept) - 1}\x00"

    text = text[: 4 * MAX_TITLE_CHARS].replace("\x00", "")
    if "{" in text:
        text = _ATTRIBUTES.sub("", text)
    if "`" in text:
        text = _CODE.sub(keep, text)
    if "\\" in text:
        text = _ESCAPED.sub(keep, text)
    if "[" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))
    if "<" in text:
        text = _TAG.sub("", text)
    if "*" in text or "_" in text or "~" in text:
        text = _STRONG.sub(lambda found: found[2] or found[4], text)
    if "&" in text:
        text = unescape(text).replace("\ufffd", "")
    if kept:
        text = _KEPT.sub(lambda found: kept[int(found[1])], text)
    return " ".join(text.split())[:MAX_TITLE_CHARS].strip()


def heading_anchor(text: str, shown: str) -> str:
    """Return the anchor of a heading: an explicit one, otherwise the one that most site generators make."""
    if "{" in text and (named := _ANCHOR.search(text)):
        return named[1] or named[2]
    return _NOT_IN_SLUG.sub("", shown.lower()).strip().replace(" ", "-")


def normalise_title(title: str) -> str:
    """Return a title for comparison: without a leading number, surrounding punctuation, or case."""
    if not title.isalpha():
        title = _NUMBER.sub("", title, count=1) if title[:1].isdigit() else title
        title = _AROUND.sub("", title)
    return title.casefold()
