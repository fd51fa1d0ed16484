"""From the text of a page to its chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sennit.ingest.chunk import split_lines
from sennit.ingest.languages import kind_of
from sennit.ingest.pages.frontmatter import front_matter
from sennit.ingest.pages.headings import plain
from sennit.ingest.pages.htmlpages import html_page
from sennit.ingest.pages.markdown import scan
from sennit.ingest.pages.model import SUMMARY, Chunk, Page, PageOptions
from sennit.ingest.pages.naming import name_from_path, page_url
from sennit.ingest.pages.outline import Outline
from sennit.ingest.pages.sections import chunks, has_summary, sections
from sennit.records import Json

DEFAULTS: Final = PageOptions()

_IMPORT: Final = re.compile(r"import\s+(?:[\w*{$].*\s+from\s+)?[\"'][^\"']+[\"'];?\s*\Z")
_H1: Final = re.compile(r"<h1(?:\s[^>]*)?>(.*?)</h1>", re.I | re.S)


def page_chunks(text: str, *, path: str, url: str | None = None, options: PageOptions = DEFAULTS) -> Page:
    """A page and its chunks; `path` says what it is (.md, .mdx, .html) and, where nothing else does, its name."""
    if kind_of(path)[0] == "html":
        return _html(text, path, url, options)
    lines = split_lines(text.removeprefix("\ufeff"))
    front, start = front_matter(lines)
    mdx = options.mdx if options.mdx is not None else _is_mdx(path, lines, start)
    outline = scan(lines, start=start, mdx=mdx)
    for begin, end in outline.metadata:
        lines[begin:end] = [""] * (end - begin)
    first = next(iter(outline.headings.values()), None)
    titles = int(first is not None and first.level == 1)
    shown = plain(first.text) if first is not None and titles else _html_title(outline, start)
    title = _text(front, "title") or shown
    return _page(outline, start, titles, title, path, url, front, options)


def _html(text: str, path: str, url: str | None, options: PageOptions) -> Page:
    read = html_page(text)
    front: dict[str, Json] = {"description": read.description} if read.description else {}
    return _page(read.outline, 0, read.titles, read.title, path, url or read.url, front, options)


def _page(
    outline: Outline,
    start: int,
    titles: int,
    title: str,
    path: str,
    url: str | None,
    front: Mapping[str, Json],
    options: PageOptions,
) -> Page:
    name = title or name_from_path(path)
    description = _text(front, "description") or _text(front, "summary")
    found = sections(outline, start, titles)
    said = description or (title if start and not found else "")
    instead = bool(said) and start > 0 and not has_summary(found, options)
    made = list(chunks(outline, found, name, options, summarised=instead))
    if instead:
        made.insert(0, Chunk(SUMMARY, name, (name,), said, 1, start))
    about = [(1, start)] if start else []
    about += [(first + 1, last) for first, last in outline.metadata]
    return Page(
        name,
        url or page_url(path, front, options.urls),
        title,
        tuple(made),
        description,
        tuple(_words(front, "tags") or _words(front, "keywords")),
        front,
        tuple(about),
    )


def _is_mdx(path: str, lines: Sequence[str], start: int) -> bool:
    """By its extension; a page in .md is one too when it begins with an import."""
    if path.lower().endswith(".mdx"):
        return True
    return any(_IMPORT.match(line) for line in lines[start : start + 20] if line.startswith("import"))


def _html_title(outline: Outline, start: int) -> str:
    """The <h1> with which many a page in Markdown begins."""
    for block in outline.blocks[:5]:
        if block.kind in ("html", "jsx"):
            found = _H1.search("\n".join(outline.lines[max(start, block.first) : block.last]))
            if found:
                return plain(found[1])
        elif block.kind == "heading":
            break
    return ""


def _text(front: Mapping[str, Json], name: str) -> str:
    value = front.get(name)
    return " ".join(value.split()) if isinstance(value, str) else str(value) if type(value) is int else ""


def _words(front: Mapping[str, Json], name: str) -> list[str]:
    """A list of words, or words between commas."""
    value = front.get(name)
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Sequence):
        return []
    return [str(word).strip() for word in value if isinstance(word, (str, int)) and str(word).strip()]
