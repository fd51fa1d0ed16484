"""From the outline of a page to its chunks: a summary, its examples, and one chunk for each other section."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sennit.ingest.pages.headings import anchor, compared, plain
from sennit.ingest.pages.model import EXAMPLES, SECTION, SUMMARY, Chunk, ChunkKind, PageOptions
from sennit.ingest.pages.outline import Outline
from sennit.ingest.pages.splitting import pieces


@dataclass(frozen=True, slots=True)
class Section:
    """The lines from one heading to the next."""

    first: int
    last: int
    """The line after it."""
    level: int
    path: tuple[str, ...]
    anchor: str
    lead: bool
    """What stands before the first section, the page's title included."""
    hollow: bool
    """It is only a heading."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Sections that make one chunk, when it is not too long, and the one whose heading is its title."""

    sections: Sequence[Section]
    kind: ChunkKind
    named: Section


def chunks(
    outline: Outline, found: Sequence[Section], name: str, options: PageOptions, *, summarised: bool = False
) -> Iterator[Chunk]:
    """The chunks of a page's sections, in the order of the source.

    The summary is the section of that name; else the lead, the text before the first section; else, unless the
    page is summarised elsewhere, the first section.
    """
    for group in _grouped(outline, found, options, summarised=summarised):
        yield from _chunks(outline, group, name, options)


def has_summary(found: Sequence[Section], options: PageOptions) -> bool:
    """Whether a page says of some of its text that it is a summary, or begins with a lead."""
    return _named(found, options.summary_titles) is not None or any(
        section.lead and not section.hollow for section in found[:1]
    )


def sections(outline: Outline, start: int, titles: int) -> list[Section]:
    """The sections of the page from line `start` on; its first `titles` headings are its title."""
    found: list[Section] = []
    used: dict[str, int] = {}
    path: list[tuple[int, str]] = []
    first, own, body, mark = start, start, start, ""

    def close(last: int, *, lead: bool) -> None:
        hollow = _is_blank(outline, first, own) and _is_blank(outline, body, last)
        if not hollow or body > first:
            above = tuple(text for _, text in path)
            found.append(Section(first, last, path[-1][0] if path else 0, above, mark, lead, hollow))

    for count, (line, heading) in enumerate(outline.headings.items()):
        if count >= titles:
            close(line, lead=count == titles)
            first = own = line
        elif count == 0:
            own = line
        shown = plain(heading.text)
        while path and path[-1][0] >= heading.level:
            path.pop()
        path.append((heading.level, shown))
        body = heading.last
        mark = anchor(heading.text, shown)
        again = used[mark] = used.get(mark, -1) + 1
        if again:
            mark = f"{mark}-{again}"
    close(len(outline.lines), lead=len(outline.headings) <= titles)
    return found


def _is_blank(outline: Outline, first: int, last: int) -> bool:
    """Whether there is nothing on these lines."""
    lines = outline.lines
    return all(not lines[line] or lines[line].isspace() for line in range(first, last))


def _grouped(
    outline: Outline, found: Sequence[Section], options: PageOptions, *, summarised: bool
) -> Iterator[_Group]:
    """The sections by the chunk they are for, each with its kind."""
    summary = named_summary = _named(found, options.summary_titles)
    examples = _named(found, options.examples_titles)
    if summary is None and found and not (summarised and (not found[0].lead or found[0].hollow)):
        summary = _stand_in(found, examples)
        if summary == examples:
            examples = None
    roles: tuple[tuple[ChunkKind, int | None], ...] = ((SUMMARY, summary), (EXAMPLES, examples))
    at = 0
    while at < len(found):
        full = at
        while full + 1 < len(found) and _leans_on_next(found, full, examples):
            full += 1
        kind: ChunkKind = SECTION
        stop = full + 1
        named = found[full]
        for role, index in roles:
            if index is not None and at <= index <= full and kind == SECTION:
                kind = role
                if index != summary or index == named_summary:
                    named = found[index]
                    stop = max(stop, _tree_end(outline, found, index, options.most))
        yield _Group(found[at:stop], kind, named)
        at = stop


def _named(found: Sequence[Section], titles: Sequence[str]) -> int | None:
    """The section that has one of these titles: the outermost, the first of several.

    Several that are deeper than the page's own sections belong to these, and not to the page.
    """
    places = [
        index
        for index, section in enumerate(found)
        if section.path and not section.lead and _is_called(section.path[-1], titles)
    ]
    if not places:
        return None
    level = min(found[index].level for index in places)
    outermost = [index for index in places if found[index].level == level]
    top = min(section.level for section in found if not section.lead)
    return outermost[0] if level == top or len(outermost) == 1 else None


def _is_called(title: str, names: Sequence[str]) -> bool:
    folded = title.casefold()
    return any(name in folded for name in names) and compared(title) in names


def _stand_in(found: Sequence[Section], examples: int | None) -> int:
    """The section that is the summary of a page which names none."""
    if examples != 0:
        return 0
    return next((index for index in range(1, len(found)) if found[index].level <= found[0].level), 0)


def _leans_on_next(found: Sequence[Section], at: int, examples: int | None) -> bool:
    """Whether a heading with nothing under it stands at the top of the next section's chunk."""
    here, following = found[at], found[at + 1]
    if not here.hollow:
        return False
    return at + 1 != examples if here.lead else following.level > here.level


def _tree_end(outline: Outline, found: Sequence[Section], at: int, most: int) -> int:
    """The section after those below this one; after this one itself when all are too long for a chunk."""
    end = at + 1
    while end < len(found) and found[end].level > found[at].level:
        end += 1
    size = sum(len(line) + 1 for line in outline.lines[found[at].first : found[end - 1].last])
    return end if size <= most else at + 1


def _chunks(outline: Outline, group: _Group, name: str, options: PageOptions) -> Iterator[Chunk]:
    """A group as one chunk, or in parts; only the first of these is the page's summary or examples."""
    lines = outline.lines
    first, last = group.sections[0].first, group.sections[-1].last
    while last > first and (not lines[last - 1] or lines[last - 1].isspace()):
        last -= 1
    while first < last and (not lines[first] or lines[first].isspace()):
        first += 1
    text = "\n".join(lines[first:last])
    numbers = outline.numbers
    title = group.named.path[-1] if group.named.path else name
    path, mark = group.named.path, group.named.anchor
    if len(text) <= options.most:
        if numbers is not None:
            yield Chunk(group.kind, title, path, text, numbers[first], numbers[last - 1], mark)
        else:
            yield Chunk(group.kind, title, path, text, first + 1, last, mark)
        return
    parts = list(pieces(outline, first, last, options))
    for part, piece in enumerate(parts, 1):
        begin, end = piece.first, piece.last
        yield Chunk(
            group.kind if part == 1 else SECTION,
            title,
            path,
            piece.text,
            begin + 1 if numbers is None else numbers[begin],
            end + 1 if numbers is None else numbers[end],
            mark,
            piece.carried,
            part,
            len(parts),
        )
