"""Parses the text of a page into chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sennit.ingest.chunk import split_lines
from sennit.ingest.languages import file_kind
from sennit.ingest.markdown import Outline, parse_front_matter, parse_markdown, plain_title
from sennit.ingest.pages.html_page import parse_html_page
from sennit.ingest.pages.names import name_from_path, page_url
from sennit.ingest.pages.page import SUMMARY, DocPage, PageChunk, PageOptions
from sennit.ingest.pages.sections import chunk_sections, find_sections, has_summary
from sennit.records import Json

DEFAULT_OPTIONS: Final = PageOptions()

_IMPORT: Final = re.compile(r"import\s+(?:[\w*{$].*\s+from\s+)?[\"'][^\"']+[\"'];?\s*\Z")
_H1: Final = re.compile(r"<h1(?:\s[^>]*)?>(.*?)</h1>", re.I | re.S)


def parse_page(
    text: str, *, path: str, url: str | None = None, options: PageOptions = DEFAULT_OPTIONS
) -> DocPage:
    """Parse a page. The extension of `path` gives the format (.md, .mdx, .html), and `path` gives the name if
    the page has no title."""
    if file_kind(path)[0] == "html":
        return _parse_html(text, path, url, options)
    lines = split_lines(text.removeprefix("\ufeff"))
    front_matter, start = parse_front_matter(lines)
    mdx = options.mdx if options.mdx is not None else _is_mdx(path, lines, start)
    outline = parse_markdown(lines, start=start, mdx=mdx)
    for begin, end in outline.metadata:
        lines[begin:end] = [""] * (end - begin)
    first = next(iter(outline.headings.values()), None)
    title_count = int(first is not None and first.level == 1)
    heading = first.title if first is not None and title_count else _find_html_title(outline, start)
    title = _front_matter_title(front_matter) or heading
    return _build_page(outline, start, title_count, title, path, url, front_matter, options)


def _parse_html(text: str, path: str, url: str | None, options: PageOptions) -> DocPage:
    page = parse_html_page(text)
    front_matter: dict[str, Json] = {"description": page.description} if page.description else {}
    return _build_page(
        page.outline, 0, page.title_count, page.title, path, url or page.url, front_matter, options
    )


def _build_page(
    outline: Outline,
    start: int,
    title_count: int,
    title: str,
    path: str,
    url: str | None,
    front_matter: Mapping[str, Json],
    options: PageOptions,
) -> DocPage:
    """Build a page from its outline. The first `title_count` headings are its title."""
    name = title or name_from_path(path)
    description = _get_text(front_matter, "description") or _get_text(front_matter, "summary")
    sections = find_sections(outline, start, title_count)
    summary = description or (title if start and not sections else "")
    summary_is_metadata = bool(summary) and start > 0 and not has_summary(sections, options)
    chunks = list(chunk_sections(outline, sections, name, options, summarised=summary_is_metadata))
    if summary_is_metadata:
        chunks.insert(0, PageChunk(SUMMARY, name, (name,), summary, 1, start))
    metadata_lines = [(1, start)] if start else []
    metadata_lines += [(first + 1, last) for first, last in outline.metadata]
    return DocPage(
        name,
        url or page_url(path, front_matter, options.urls),
        title,
        tuple(chunks),
        description,
        tuple(_get_words(front_matter, "tags") or _get_words(front_matter, "keywords")),
        front_matter,
        tuple(metadata_lines),
    )


def _is_mdx(path: str, lines: Sequence[str], start: int) -> bool:
    """Return whether a page is MDX: by its extension, or because it starts with an import that is not code."""
    if path.lower().endswith(".mdx"):
        return True
    for line in lines[start : start + 20]:
        if line.startswith("import") and _IMPORT.match(line):
            return True
        if line.lstrip().startswith(("```", "~~~")):
            return False
    return False


def _find_html_title(outline: Outline, start: int) -> str:
    """Return the text of an <h1> at the top, which some Markdown pages have instead of a heading."""
    for block in outline.blocks[:5]:
        if block.kind in ("html", "jsx"):
            found = _H1.search("\n".join(outline.lines[max(start, block.first) : block.last]))
            if found:
                return plain_title(found[1])
        elif block.kind == "heading":
            break
    return ""


def _front_matter_title(front_matter: Mapping[str, Json]) -> str:
    """Return the title in the front matter. It is text and not Markdown if it has an angle bracket, as in C++."""
    title = _get_text(front_matter, "title")
    return title if "<" in title else plain_title(title)


def _get_text(front_matter: Mapping[str, Json], name: str) -> str:
    value = front_matter.get(name)
    return " ".join(value.split()) if isinstance(value, str) else str(value) if type(value) is int else ""


def _get_words(front_matter: Mapping[str, Json], name: str) -> list[str]:
    """Return a list of words. The front matter may have a list, or a text with commas."""
    value = front_matter.get(name)
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Sequence):
        return []
    return [str(word).strip() for word in value if isinstance(word, (str, int)) and str(word).strip()]
