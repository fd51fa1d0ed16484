"""Turns the outline of a page into chunks: the summary, the examples, and one chunk for each other section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sennit.ingest.markdown import Outline, normalise_title
from sennit.ingest.pages.page import EXAMPLES, SECTION, SUMMARY, ChunkKind, PageChunk, PageOptions
from sennit.ingest.pages.splitter import split_section


@dataclass(frozen=True, slots=True)
class PageSection:
    """The lines from one heading to the next."""

    first: int
    last: int
    """The line after it."""
    level: int
    path: tuple[str, ...]
    anchor: str
    is_lead: bool
    """It is the text before the first section, including the page's title."""
    is_empty: bool
    """It consists of a heading only."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Sections that form one chunk unless it is too long, and the section whose heading is its title."""

    sections: Sequence[PageSection]
    kind: ChunkKind
    titled: PageSection


def chunk_sections(
    outline: Outline,
    sections: Sequence[PageSection],
    name: str,
    options: PageOptions,
    *,
    summarised: bool = False,
) -> Iterator[PageChunk]:
    """Yield the chunks of a page's sections, in the order of the source.

    The summary is the section with a summary title. If there is none, it is the lead, the text before the first
    section. If there is no lead, it is the first section, unless the page is summarised elsewhere.
    """
    for group in _group_sections(outline, sections, options, summarised=summarised):
        yield from _chunk_group(outline, group, name, options)


def has_summary(found: Sequence[PageSection], options: PageOptions) -> bool:
    """Return whether a page has a section with a summary title, or starts with a lead."""
    return _find_titled(found, options.summary_titles) is not None or any(
        section.is_lead and not section.is_empty for section in found[:1]
    )


def find_sections(outline: Outline, start: int, title_count: int) -> list[PageSection]:
    """Return the sections of a page from line `start` on. The first `title_count` headings are its title."""
    found: list[PageSection] = []
    used: dict[str, int] = {}
    path: list[tuple[int, str]] = []
    first, own, body, anchor = start, start, start, ""

    def close(last: int, *, lead: bool) -> None:
        is_empty = _is_blank(outline, first, own) and _is_blank(outline, body, last)
        if not is_empty or body > first:
            above = tuple(text for _, text in path)
            found.append(PageSection(first, last, path[-1][0] if path else 0, above, anchor, lead, is_empty))

    for count, (line, heading) in enumerate(outline.headings.items()):
        if count >= title_count:
            close(line, lead=count == title_count)
            first = own = line
        elif count == 0:
            own = line
        while path and path[-1][0] >= heading.level:
            path.pop()
        path.append((heading.level, heading.title))
        body = heading.last
        anchor = heading.anchor
        repeat = used[anchor] = used.get(anchor, -1) + 1
        if repeat:
            anchor = f"{anchor}-{repeat}"
    close(len(outline.lines), lead=len(outline.headings) <= title_count)
    return found


def _is_blank(outline: Outline, first: int, last: int) -> bool:
    """Return whether these lines are blank."""
    lines = outline.lines
    return all(not lines[line] or lines[line].isspace() for line in range(first, last))


def _group_sections(
    outline: Outline, found: Sequence[PageSection], options: PageOptions, *, summarised: bool
) -> Iterator[_Group]:
    """Group the sections by chunk, and give each group its kind."""
    summary = titled_summary = _find_titled(found, options.summary_titles)
    examples = _find_titled(found, options.examples_titles)
    if summary is None and found and not (summarised and (not found[0].is_lead or found[0].is_empty)):
        summary = _default_summary(found, examples)
        if summary == examples:
            examples = None
    roles: tuple[tuple[ChunkKind, int | None], ...] = ((SUMMARY, summary), (EXAMPLES, examples))
    at = 0
    while at < len(found):
        full = at
        while full + 1 < len(found) and _joins_next(found, full, examples):
            full += 1
        kind: ChunkKind = SECTION
        stop = full + 1
        titled = found[full]
        for role, index in roles:
            if index is not None and at <= index <= full and kind == SECTION:
                kind = role
                if index != summary or index == titled_summary:
                    titled = found[index]
                    stop = max(stop, _subtree_end(outline, found, index, options.max_chars))
        yield _Group(found[at:stop], kind, titled)
        at = stop


def _find_titled(found: Sequence[PageSection], titles: Sequence[str]) -> int | None:
    """Return the first section on the outermost level that has one of these titles.

    If there are several below the top level, they belong to other sections and not to the page.
    """
    indexes = [
        index
        for index, section in enumerate(found)
        if section.path and not section.is_lead and _has_title(section.path[-1], titles)
    ]
    if not indexes:
        return None
    level = min(found[index].level for index in indexes)
    outermost = [index for index in indexes if found[index].level == level]
    top = min(section.level for section in found if not section.is_lead)
    return outermost[0] if level == top or len(outermost) == 1 else None


def _has_title(title: str, names: Sequence[str]) -> bool:
    folded = title.casefold()
    return any(name in folded for name in names) and normalise_title(title) in names


def _default_summary(found: Sequence[PageSection], examples: int | None) -> int:
    """Return the section that serves as the summary if no section has a summary title."""
    if examples != 0:
        return 0
    return next((index for index in range(1, len(found)) if found[index].level <= found[0].level), 0)


def _joins_next(found: Sequence[PageSection], at: int, examples: int | None) -> bool:
    """Return whether an empty section belongs to the chunk of the next section."""
    here, following = found[at], found[at + 1]
    if not here.is_empty:
        return False
    return at + 1 != examples if here.is_lead else following.level > here.level


def _subtree_end(outline: Outline, found: Sequence[PageSection], at: int, max_chars: int) -> int:
    """Return the index after a section and its subsections, or after the section alone if they are too long."""
    end = at + 1
    while end < len(found) and found[end].level > found[at].level:
        end += 1
    size = sum(len(line) + 1 for line in outline.lines[found[at].first : found[end - 1].last])
    return end if size <= max_chars else at + 1


def _chunk_group(outline: Outline, group: _Group, name: str, options: PageOptions) -> Iterator[PageChunk]:
    """Yield a group as one chunk or in parts. Only the first part has the kind of the group."""
    lines = outline.lines
    first, last = group.sections[0].first, group.sections[-1].last
    while last > first and (not lines[last - 1] or lines[last - 1].isspace()):
        last -= 1
    while first < last and (not lines[first] or lines[first].isspace()):
        first += 1
    text = "\n".join(lines[first:last])
    numbers = outline.numbers
    path, anchor = group.titled.path, group.titled.anchor
    title = path[-1] if path else name
    if len(text) <= options.max_chars:
        if numbers is not None:
            yield PageChunk(group.kind, title, path, text, numbers[first], numbers[last - 1], anchor)
        else:
            yield PageChunk(group.kind, title, path, text, first + 1, last, anchor)
        return
    parts = list(split_section(outline, first, last, options))
    for part, piece in enumerate(parts, 1):
        begin, end = piece.first, piece.last
        yield PageChunk(
            group.kind if part == 1 else SECTION,
            title,
            path,
            piece.text,
            begin + 1 if numbers is None else numbers[begin],
            end + 1 if numbers is None else numbers[end],
            anchor,
            piece.repeated_lines,
            part,
            len(parts),
        )
