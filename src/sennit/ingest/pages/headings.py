"""The text of a heading: as a reader sees it, as an address, and as a name to compare."""

from __future__ import annotations

import re
from html import unescape
from typing import Final

MAX_TITLE: Final = 200
"""Characters of a heading that are kept; a longer one is a paragraph that somebody underlined."""

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


def plain(text: str) -> str:
    """A heading without markup: what a reader sees."""
    if not _MARKED.search(text):
        return text[:MAX_TITLE]
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found["text"].strip())
        return f"\x00{len(kept) - 1}\x00"

    text = text[: 4 * MAX_TITLE].replace("\x00", "")
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
    return " ".join(text.split())[:MAX_TITLE].strip()


def anchor(text: str, shown: str) -> str:
    """The part of an address after #: the one the heading names, else as most site builders make it."""
    if "{" in text and (named := _ANCHOR.search(text)):
        return named[1] or named[2]
    return _NOT_IN_SLUG.sub("", shown.lower()).strip().replace(" ", "-")


def compared(title: str) -> str:
    """A title to compare with a name: no number before it, no punctuation around it, no case."""
    if not title.isalpha():
        title = _NUMBER.sub("", title, count=1) if title[:1].isdigit() else title
        title = _AROUND.sub("", title)
    return title.casefold()
