"""Where things are defined in a file: what the query of definitions finds, laid into each other.

Everything is known by its place in the file. No step climbs the tree, so that time stays linear in the file
whatever its shape.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sennit.ingest.code.entities import CALLABLE, HOLDERS
from sennit.ingest.code.grammars import Grammar
from sennit.ingest.code.prose import doc_of, owner_of, parts_of, without_licence
from sennit.ingest.code.sitter import Node, QueryCursor

LONG_FUNCTION: Final = 60
"""Lines. What is defined inside a shorter function is part of it; inside a longer one it is an entity."""

LONGEST_LINE: Final = 2000
"""What begins or ends on a longer line is no entity: records are whole lines, and many could share this one."""

WIDEST_GAP: Final = 200
"""Bytes of indentation between a comment and what it belongs to, at most."""


@dataclass(slots=True)
class Place:
    """Something that the query found, with what is known of it so far."""

    what: str
    """A kind, `scope` or `wrap`."""
    start: int
    end: int
    rows: tuple[int, int]
    name: str = ""
    owner: str = ""
    body: int | None = None
    doc: str = ""
    head: int = 0
    """Where its own text begins: after comments, decorators and other wrapping."""
    inner: int = 0
    """How many places are directly inside."""
    path: tuple[str, ...] = ()
    within: Place | None = None
    """The entity it is written in."""
    hidden: bool = False
    """Whether what is inside is part of it, and no entity of its own."""
    calls: dict[str, None] = field(default_factory=dict)
    references: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Defined:
    """What a file defines, in the order in which it begins, with its imports as they were captured."""

    places: list[Place]
    doc: str
    imports: list[dict[str, str]]


def definitions(data: bytes, root: Node, grammar: Grammar) -> Defined:
    """The definitions of a file that are entities."""
    found: dict[int, tuple[int, Place]] = {}
    imports: list[dict[str, str]] = []
    imported: set[int] = set()
    comments: list[tuple[int, int, bool]] = []
    opening: tuple[int, str] | None = None
    for pattern, captures in QueryCursor(grammar.definitions).matches(root):
        what = next(iter(captures))
        if what in ("comment", "attached"):
            node = captures[what][0]
            comments.append((node.start_byte, node.end_byte, what == "comment"))
            continue
        if "import" in captures:
            imports.append({name: _text(nodes) for name, nodes in captures.items() if "." in name})
            imported.add(captures["import"][0].id)
            continue
        whole = next((n for n in captures if n.startswith("definition.") or n in ("scope", "wrap")), None)
        if whole is None:
            continue
        node = captures[whole][0]
        doc = doc_of(_text(captures["doc"])) if "doc" in captures else ""
        if whole == "definition.file":
            opening = opening or (node.start_byte, doc)
            continue
        known = found.get(node.id)
        if known is None or pattern < known[0]:
            found[node.id] = (pattern, _place(data, whole.removeprefix("definition."), node, captures, doc))
        elif pattern == known[0] and doc:
            # The same definition again, this time with its docstring.
            known[1].doc = doc
    written = _Comments(data, comments)
    places = [place for node_id, (_, place) in found.items() if node_id not in imported]
    kept = _nested(data, sorted(places, key=lambda place: (place.start, -place.end)), written)
    said = without_licence(opening[1] or written.above(opening[0])[1]) if opening else ""
    return Defined(kept, said or written.at_the_top(kept), imports)


def _place(data: bytes, what: str, node: Node, captures: Mapping[str, Sequence[Node]], doc: str) -> Place:
    start, stop = node.start_byte, node.end_byte
    # Some nodes end with their line's break.
    end = start + len(data[start:stop].rstrip())
    return Place(
        what,
        start,
        end,
        (node.start_point[0], node.end_point[0] - data.count(b"\n", end, stop)),
        name=_text(captures.get("name", ())),
        owner=owner_of(_text(captures.get("owner", ()))),
        body=captures["body"][0].start_byte if "body" in captures else None,
        doc=doc,
        head=start,
    )


def _nested(data: bytes, places: Sequence[Place], comments: _Comments) -> list[Place]:
    """The places that are entities, each with what it is in and the text that belongs to it."""
    long_rows = {row for row, line in enumerate(data.split(b"\n")) if len(line) > LONGEST_LINE}
    kept: list[tuple[Place, list[Place]]] = []
    stack: list[Place] = []
    for place in places:
        while stack and stack[-1].end <= place.start:
            stack.pop()
        if stack:
            stack[-1].inner += 1
        around = list(_wraps(stack))
        holder = next((one for one in reversed(stack) if one.what != "wrap"), None)
        stack.append(place)
        if place.what == "wrap":
            continue
        # The same braces under two names, as in `typedef struct node {…} Node`, are one thing.
        twice = holder is not None and place.body is not None and place.body == holder.body
        if twice or (holder is not None and holder.hidden) or not long_rows.isdisjoint(place.rows):
            place.hidden = True
            continue
        _settle(place, holder)
        place.hidden = place.what in CALLABLE and place.rows[1] - place.rows[0] < LONG_FUNCTION
        if place.path and place.what != "scope":
            kept.append((place, around))
    for place, around in kept:
        for wrap in around:
            if wrap.inner > 1:
                break
            place.start, place.end = wrap.start, max(place.end, wrap.end)
            place.rows = (wrap.rows[0], max(place.rows[1], wrap.rows[1]))
        start, said = comments.above(place.start)
        place.rows = (place.rows[0] - data.count(b"\n", start, place.start), place.rows[1])
        place.start = start
        place.doc = place.doc or said
    return sorted((place for place, _ in kept), key=lambda place: (place.start, -place.end))


def _wraps(stack: Sequence[Place]) -> Iterator[Place]:
    """The wraps right around what is about to be put on the stack, innermost first."""
    for place in reversed(stack):
        if place.what != "wrap":
            return
        yield place


def _settle(place: Place, holder: Place | None) -> None:
    """The name and kind of a definition inside what holds it."""
    unnamed = holder is not None and (holder.what == "scope" or not holder.path)
    place.within = holder.within if holder is not None and unnamed else holder
    parts = parts_of(place.name)
    if not parts:
        return
    place.name = parts[-1]
    place.path = (*(holder.path if holder else ()), *parts_of(place.owner), *parts)
    methodical = (holder is not None and holder.what in (*HOLDERS, "scope")) or place.owner or len(parts) > 1
    if place.what == "function" and methodical:
        place.what = "method"


class _Comments:
    """The comments of a file, and the attributes that stand among them."""

    def __init__(self, data: bytes, found: list[tuple[int, int, bool]]) -> None:
        """Each with its first byte, the one after its last, and whether it says something."""
        self._data = data
        self._found = sorted(found)

    def above(self, start: int) -> tuple[int, str]:
        """Where the comments and attributes right above a place begin, and what the comments say."""
        data = self._data
        said: list[bytes] = []
        at = bisect_right(self._found, (start,)) - 1
        while at >= 0:
            begin, end, speaks = self._found[at]
            if not start - WIDEST_GAP <= end <= start:
                break
            between = data[end:start]
            # A line comment may end with its line's break.
            breaks = between.count(b"\n") + data.endswith(b"\n", begin, end)
            if between.strip() or breaks > 1 or data[data.rfind(b"\n", 0, begin) + 1 : begin].strip():
                break
            if speaks:
                said.append(data[begin:end])
            start = begin
            at -= 1
        return start, _said(said[::-1])

    def at_the_top(self, places: Sequence[Place]) -> str:
        """The first comments of a file that say what it is, unless they belong to what is below them."""
        said: list[bytes] = []
        end = 0
        for begin, stop, speaks in self._found:
            between = self._data[end:begin]
            apart = between.count(b"\n") > 1
            if (
                between.strip()
                or (apart and _header(said))
                or any(p.start <= begin < p.end for p in places[:1])
            ):
                break
            if apart:
                said = []
            if speaks:
                said.append(self._data[begin:stop])
            end = stop
        return _header(said)


def _header(comments: Sequence[bytes]) -> str:
    return without_licence(_said(comments))


def _said(comments: Sequence[bytes]) -> str:
    return doc_of(b"\n".join(comments).decode("utf-8", "replace")) if comments else ""


def _text(nodes: Sequence[Node]) -> str:
    raw = nodes[0].text if nodes else None
    return raw.decode("utf-8", "replace") if raw else ""
