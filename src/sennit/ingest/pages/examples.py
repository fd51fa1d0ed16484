"""Code examples: from example files, from the examples of a page, and from JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sennit.errors import InvalidInput
from sennit.ingest.chunk import split_lines
from sennit.ingest.markdown import Outline, parse_markdown
from sennit.ingest.pages.code_blocks import find_code_blocks
from sennit.ingest.pages.page import EXAMPLES, DocPage, PageChunk, PageOptions
from sennit.ingest.pages.parser import DEFAULT_OPTIONS, parse_page
from sennit.ingest.text_profile import id_prefix
from sennit.records import Record

_FIELDS: Final = ("id", "title", "description", "code", "url", "tags", "language")


@dataclass(frozen=True, slots=True)
class Example:
    """A complete piece of code, with a description."""

    id: str
    title: str
    description: str
    code: str
    url: str | None = None
    tags: tuple[str, ...] = ()
    language: str = ""
    lines: tuple[int, int] | None = None
    """In the source file; lines count from 1, and both are included."""


def examples_from_file(
    text: str, *, path: str, url: str | None = None, options: PageOptions = DEFAULT_OPTIONS
) -> list[Example]:
    """Read an example file: the front matter and the text describe the code in the fences.

    The example has the title, description, tags and URL of the page. A file without code gives no example.
    """
    page = parse_page(text, path=path, url=url, options=options)
    lines = split_lines(text.removeprefix("\ufeff"))
    start = page.metadata_lines[0][1] if page.metadata_lines and page.metadata_lines[0][0] == 1 else 0
    outline = parse_markdown(lines, start=start, mdx=path.lower().endswith(".mdx"))
    found = find_code_blocks(outline)
    if not found:
        return []
    description = page.description or _join_paragraphs(outline, start, found[0].first)
    language = page.front_matter.get("language")
    return [
        Example(
            f"{id_prefix(path)}example",
            page.name,
            description,
            "\n\n".join(code.text for code in found),
            page.url,
            page.tags,
            language if isinstance(language, str) else found[0].language,
            (found[0].first + 1, found[-1].last),
        )
    ]


def examples_from_page(page: DocPage, *, path: str) -> list[Example]:
    """Return one example per code block in the page's examples, with its heading and the text before it."""
    found: list[Example] = []
    mdx = path.lower().endswith(".mdx") or any(first > 1 for first, _ in page.metadata_lines)
    for chunk in _example_chunks(page):
        lines = chunk.text.split("\n")
        outline = parse_markdown(lines, mdx=mdx)
        before = 0
        for code in find_code_blocks(outline):
            number = len(found) + 1
            heading = _heading_above(outline, code.first) or chunk.title
            title = code.title or (page.name if heading.casefold() in ("example", "examples") else heading)
            offset = chunk.first_line - chunk.repeated_lines
            found.append(
                Example(
                    f"{id_prefix(path)}example-{number}",
                    title if title == page.name else f"{page.name}: {title}",
                    _join_paragraphs(outline, before, code.first),
                    code.text,
                    page.url,
                    page.tags,
                    code.language,
                    (
                        max(chunk.first_line, offset + code.first),
                        min(chunk.last_line, offset + code.last - 1),
                    ),
                )
            )
            before = code.last
    return found


def examples_from_jsonl(text: str, *, path: str) -> list[Example]:
    """Read one example per line: an object with title and code, and optional id, description, url, tags, language."""
    found: list[Example] = []
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            raise InvalidInput(f"{path}, line {number}: not JSON ({error})") from error
        found.append(
            _parse_example(values, f"{path}, line {number}", f"{id_prefix(path)}example-{number}", number)
        )
    return found


def example_records(
    examples: Iterable[Example],
    *,
    path: str,
    collection: str = "examples",
    timestamp: datetime | None = None,
) -> list[Record]:
    """Return one record per example. Its text is title, description and code."""
    return [
        Record(
            id=example.id,
            text="\n\n".join(part for part in (example.title, example.description, example.code) if part),
            collection=collection,
            title=example.title,
            kind="EXAMPLE",
            path=path,
            url=example.url,
            lines=example.lines,
            parent=path,
            position=position,
            timestamp=timestamp,
            metadata={
                "description": example.description,
                "code": example.code,
                "tags": list(example.tags),
                **({"language": example.language} if example.language else {}),
            },
        )
        for position, example in enumerate(examples)
    ]


def _example_chunks(page: DocPage) -> Iterator[PageChunk]:
    """Yield the page's examples, and the other parts and sections below the same heading."""
    above: tuple[str, ...] | None = None
    for chunk in page.chunks:
        if chunk.kind == EXAMPLES:
            above = chunk.heading_path
            yield chunk
        elif above is not None:
            if chunk.heading_path[: len(above)] != above:
                return
            yield chunk


def _heading_above(outline: Outline, line: int) -> str:
    """Return the nearest heading above a line."""
    above = [heading.title for first, heading in outline.headings.items() if first < line]
    return above[-1] if above else ""


def _join_paragraphs(outline: Outline, first: int, last: int) -> str:
    """Return the paragraphs between two lines, starting after the last heading between them."""
    first = max([first, *(line for line in outline.headings if line < last)])
    paragraphs = [
        " ".join(line.strip() for line in outline.lines[block.first : block.last])
        for block in outline.blocks
        if first <= block.first and block.last <= last and block.kind == "paragraph"
    ]
    return "\n\n".join(paragraphs)


def _parse_example(values: object, where: str, fallback_id: str, number: int) -> Example:
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{where}: an example is an object, not {type(values).__name__}")
    unknown = [name for name in values if name not in _FIELDS]
    if unknown:
        raise InvalidInput(f"{where}: an example has no field {unknown[0]!r}. Fields: {', '.join(_FIELDS)}.")
    texts = {name: values.get(name) or "" for name in _FIELDS if name != "tags"}
    wrong = next((name for name, value in texts.items() if not isinstance(value, str)), None)
    if wrong is not None:
        raise InvalidInput(f"{where}: {wrong} must be a string")
    missing = next((name for name in ("title", "code") if not texts[name].strip()), None)
    if missing is not None:
        raise InvalidInput(f"{where}: an example needs the field {missing!r}")
    tags = values.get("tags") or []
    if (
        not isinstance(tags, Sequence)
        or isinstance(tags, str)
        or not all(isinstance(tag, str) for tag in tags)
    ):
        raise InvalidInput(f"{where}: tags must be a list of strings")
    return Example(
        texts["id"] or fallback_id,
        texts["title"],
        texts["description"],
        texts["code"],
        texts["url"] or None,
        tuple(tags),
        texts["language"],
        (number, number),
    )
