"""Finished examples: from files of their own, from the examples of a page, and from JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sennit.errors import InvalidInput
from sennit.ingest.chunk import split_lines
from sennit.ingest.pages.codeblocks import code_blocks
from sennit.ingest.pages.headings import plain
from sennit.ingest.pages.markdown import scan
from sennit.ingest.pages.model import EXAMPLES, Chunk, Page, PageOptions
from sennit.ingest.pages.outline import Outline
from sennit.ingest.pages.page import DEFAULTS, page_chunks
from sennit.ingest.readers import prefix_of
from sennit.records import Record

_FIELDS: Final = ("id", "title", "description", "code", "url", "tags", "language")


@dataclass(frozen=True, slots=True)
class Example:
    """A piece of code that does something, with what it does."""

    id: str
    title: str
    description: str
    code: str
    url: str | None = None
    tags: tuple[str, ...] = ()
    language: str = ""
    lines: tuple[int, int] | None = None
    """In the file it is from; from 1, both included."""


def examples_from_file(
    text: str, *, path: str, url: str | None = None, options: PageOptions = DEFAULTS
) -> list[Example]:
    """The example a file is: its front matter is about it, its fences are its code, the rest describes it.

    Title, description, tags and address are those of the page; a file without code is no example.
    """
    page = page_chunks(text, path=path, url=url, options=options)
    lines = split_lines(text.removeprefix("\ufeff"))
    start = page.metadata_lines[0][1] if page.metadata_lines and page.metadata_lines[0][0] == 1 else 0
    outline = scan(lines, start=start, mdx=path.lower().endswith(".mdx"))
    found = code_blocks(outline)
    if not found:
        return []
    description = page.description or _said(outline, start, found[0].first)
    language = page.front.get("language")
    return [
        Example(
            f"{prefix_of(path)}example",
            page.name,
            description,
            "\n\n".join(code.text for code in found),
            page.url,
            page.tags,
            language if isinstance(language, str) else found[0].language,
            (found[0].first + 1, found[-1].last),
        )
    ]


def examples_from_page(page: Page, *, path: str) -> list[Example]:
    """Each piece of code in the page's examples, under the heading it stands under, with the text before it."""
    found: list[Example] = []
    mdx = path.lower().endswith(".mdx") or any(first > 1 for first, _ in page.metadata_lines)
    for chunk in _example_chunks(page):
        lines = chunk.text.split("\n")
        outline = scan(lines, mdx=mdx)
        before = 0
        for code in code_blocks(outline):
            number = len(found) + 1
            heading = _heading(outline, code.first) or chunk.title
            title = code.title or (page.name if heading.casefold() in ("example", "examples") else heading)
            offset = chunk.first_line - chunk.carried
            found.append(
                Example(
                    f"{prefix_of(path)}example-{number}",
                    title if title == page.name else f"{page.name}: {title}",
                    _said(outline, before, code.first),
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
    """One example a line: an object with title and code, and perhaps id, description, url, tags, language."""
    found: list[Example] = []
    for number, line in enumerate(split_lines(text), 1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except ValueError as error:
            raise InvalidInput(f"{path}, line {number}: not JSON ({error})") from error
        found.append(
            _from_values(values, f"{path}, line {number}", f"{prefix_of(path)}example-{number}", number)
        )
    return found


def example_records(
    examples: Iterable[Example],
    *,
    path: str,
    collection: str = "examples",
    timestamp: datetime | None = None,
) -> list[Record]:
    """A record for each example: its text is title, description and code."""
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


def _example_chunks(page: Page) -> Iterator[Chunk]:
    """The page's examples, and the further parts and sections below the same heading."""
    above: tuple[str, ...] | None = None
    for chunk in page.chunks:
        if chunk.kind == EXAMPLES:
            above = chunk.heading_path
            yield chunk
        elif above is not None:
            if chunk.heading_path[: len(above)] != above:
                return
            yield chunk


def _heading(outline: Outline, line: int) -> str:
    """The heading that a line stands under."""
    above = [heading.text for first, heading in outline.headings.items() if first < line]
    return plain(above[-1]) if above else ""


def _said(outline: Outline, first: int, last: int) -> str:
    """The paragraphs between two lines, the last heading before the second being a new beginning."""
    first = max([first, *(line for line in outline.headings if line < last)])
    said = [
        " ".join(line.strip() for line in outline.lines[block.first : block.last])
        for block in outline.blocks
        if first <= block.first and block.last <= last and block.kind == "paragraph"
    ]
    return "\n\n".join(said)


def _from_values(values: object, where: str, fallback_id: str, number: int) -> Example:
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
