"""The definitions of a file: the matches of the definition query, nested by their positions.

Everything works with byte offsets. No step walks up the syntax tree, so the time stays linear in the size of the file,
whatever the shape of the tree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sennit.ingest.code.descriptions import assignment_owner, clean_doc, split_qualified_name, strip_licence
from sennit.ingest.code.entities import CALLABLE_KINDS, CLASS_KINDS
from sennit.ingest.code.grammars import Grammar, Node, QueryCursor

LONG_FUNCTION_LINES: Final = 60
"""A definition inside a shorter function is part of that function; inside a longer one it is an entity."""

MAX_LINE_BYTES: Final = 2000
"""A definition that begins or ends on a longer line is no entity: records hold whole lines, and many definitions could
share this one."""

MAX_COMMENT_GAP_BYTES: Final = 200
"""The most indentation between a comment and the definition below it."""


@dataclass(slots=True)
class Definition:
    """A match of the definition query, completed step by step."""

    kind: str
    """The kind of an entity, or `scope`, `wrap` or `variant`."""
    start: int
    end: int
    rows: tuple[int, int]
    name: str = ""
    owner: str = ""
    body: int | None = None
    doc: str = ""
    header_start: int = 0
    """Where the definition itself begins, after comments, decorators and other wrapping."""
    inner_count: int = 0
    """The number of definitions directly inside."""
    path: tuple[str, ...] = ()
    enclosing: Definition | None = None
    absorbs_inner: bool = False
    """Whether the definitions inside are part of this one, and no entities of their own."""
    variants: list[tuple[str, str]] = field(default_factory=list)
    """The values of an enum: name and doc."""
    calls: dict[str, None] = field(default_factory=dict)
    references: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileDefinitions:
    """The definitions of a file in source order, its docstring, and its imports as captured."""

    definitions: list[Definition]
    doc: str
    imports: list[dict[str, str]]


def find_definitions(data: bytes, root: Node, grammar: Grammar) -> FileDefinitions:
    """Find the definitions of a file that are entities."""
    found: dict[int, tuple[int, Definition]] = {}
    imports: list[dict[str, str]] = []
    imported: set[int] = set()
    comments: list[tuple[int, int, bool]] = []
    file_doc: tuple[int, str] | None = None
    for pattern, captures in QueryCursor(grammar.definitions).matches(root):
        capture = next(iter(captures))
        if capture in ("comment", "attached"):
            node = captures[capture][0]
            comments.append((node.start_byte, node.end_byte, capture == "comment"))
            continue
        if "import" in captures:
            imports.append({name: _node_text(nodes) for name, nodes in captures.items() if "." in name})
            imported.add(captures["import"][0].id)
            continue
        main_capture = next(
            (n for n in captures if n.startswith("definition.") or n in ("scope", "wrap", "variant")), None
        )
        if main_capture is None:
            continue
        node = captures[main_capture][0]
        doc = clean_doc(_node_text(captures["doc"])) if "doc" in captures else ""
        if main_capture == "definition.file":
            file_doc = file_doc or (node.start_byte, doc)
            continue
        known = found.get(node.id)
        if known is None or pattern < known[0]:
            kind = main_capture.removeprefix("definition.")
            found[node.id] = (pattern, _create_definition(data, kind, node, captures, doc))
        elif pattern == known[0] and doc:
            # The pattern matches the same definition again, now with its docstring.
            known[1].doc = doc
    comment_index = _CommentIndex(data, comments)
    candidates = [one for node_id, (_, one) in found.items() if node_id not in imported]
    kept = _nest(data, sorted(candidates, key=lambda one: (one.start, -one.end)), comment_index)
    doc = strip_licence(file_doc[1] or comment_index.above(file_doc[0])[1]) if file_doc else ""
    return FileDefinitions(kept, doc or comment_index.at_the_top(kept), imports)


def _create_definition(
    data: bytes, kind: str, node: Node, captures: Mapping[str, Sequence[Node]], doc: str
) -> Definition:
    start, stop = node.start_byte, node.end_byte
    # Some nodes include the line break at their end.
    end = start + len(data[start:stop].rstrip())
    return Definition(
        kind,
        start,
        end,
        (node.start_point[0], node.end_point[0] - data.count(b"\n", end, stop)),
        name=_node_text(captures.get("name", ())),
        owner=assignment_owner(_node_text(captures.get("owner", ()))),
        body=captures["body"][0].start_byte if "body" in captures else None,
        doc=doc,
        header_start=start,
    )


def _nest(data: bytes, definitions: Sequence[Definition], comments: _CommentIndex) -> list[Definition]:
    """Keep the definitions that are entities, and set what encloses them and which text belongs to them."""
    long_rows = {row for row, line in enumerate(data.split(b"\n")) if len(line) > MAX_LINE_BYTES}
    kept: list[tuple[Definition, list[Definition]]] = []
    stack: list[Definition] = []
    for definition in definitions:
        while stack and stack[-1].end <= definition.start:
            stack.pop()
        if stack:
            stack[-1].inner_count += 1
        wraps = list(_enclosing_wraps(stack))
        outer = next((one for one in reversed(stack) if one.kind != "wrap"), None)
        if definition.kind == "variant":
            if outer is not None:
                outer.variants.append((definition.name, comments.above(definition.start)[1]))
            continue
        stack.append(definition)
        if definition.kind == "wrap":
            continue
        # One body under two names, as in `typedef struct node {…} Node`, is one definition.
        if outer is not None and definition.body is not None and definition.body == outer.body:
            definition.variants = outer.variants
            definition.absorbs_inner = True
            continue
        if (outer is not None and outer.absorbs_inner) or not long_rows.isdisjoint(definition.rows):
            definition.absorbs_inner = True
            continue
        _set_name_and_kind(definition, outer)
        first_row, last_row = definition.rows
        definition.absorbs_inner = (
            definition.kind in CALLABLE_KINDS and last_row - first_row < LONG_FUNCTION_LINES
        )
        if definition.path and definition.kind != "scope":
            kept.append((definition, wraps))
    for definition, wraps in kept:
        for wrap in wraps:
            if wrap.inner_count > 1:
                break
            definition.start, definition.end = wrap.start, max(definition.end, wrap.end)
            definition.rows = (wrap.rows[0], max(definition.rows[1], wrap.rows[1]))
        start, doc = comments.above(definition.start)
        definition.rows = (
            definition.rows[0] - data.count(b"\n", start, definition.start),
            definition.rows[1],
        )
        definition.start = start
        definition.doc = definition.doc or doc
    return sorted((one for one, _ in kept), key=lambda one: (one.start, -one.end))


def _enclosing_wraps(stack: Sequence[Definition]) -> Iterator[Definition]:
    """The wraps directly around the next definition, the innermost first."""
    for definition in reversed(stack):
        if definition.kind != "wrap":
            return
        yield definition


def _set_name_and_kind(definition: Definition, outer: Definition | None) -> None:
    """Set the qualified name and the kind of a definition from the definition around it."""
    outer_is_unnamed = outer is not None and (outer.kind == "scope" or not outer.path)
    definition.enclosing = outer.enclosing if outer is not None and outer_is_unnamed else outer
    parts = split_qualified_name(definition.name)
    if not parts:
        return
    definition.name = parts[-1]
    definition.path = (*(outer.path if outer else ()), *split_qualified_name(definition.owner), *parts)
    is_method = (
        (outer is not None and outer.kind in (*CLASS_KINDS, "scope")) or definition.owner or len(parts) > 1
    )
    if definition.kind == "function" and is_method:
        definition.kind = "method"


class _CommentIndex:
    """The comments of a file, with the attributes between them."""

    def __init__(self, data: bytes, found: list[tuple[int, int, bool]]) -> None:
        """Takes start byte, end byte and whether it is a comment (or else an attribute)."""
        self._data = data
        self._found = sorted(found)

    def above(self, start: int) -> tuple[int, str]:
        """Where the comments and attributes directly above a position begin, and the text of the comments."""
        data = self._data
        texts: list[bytes] = []
        index = bisect_right(self._found, (start,)) - 1
        while index >= 0:
            begin, end, is_comment = self._found[index]
            if not start - MAX_COMMENT_GAP_BYTES <= end <= start:
                break
            between = data[end:start]
            # A line comment may include the line break at its end.
            breaks = between.count(b"\n") + data.endswith(b"\n", begin, end)
            if between.strip() or breaks > 1 or data[data.rfind(b"\n", 0, begin) + 1 : begin].strip():
                break
            if is_comment:
                texts.append(data[begin:end])
            start = begin
            index -= 1
        return start, _comment_text(texts[::-1])

    def at_the_top(self, definitions: Sequence[Definition]) -> str:
        """The comments at the top of a file that describe it, unless they belong to the definition below."""
        texts: list[bytes] = []
        end = 0
        for begin, stop, is_comment in self._found:
            between = self._data[end:begin]
            is_apart = between.count(b"\n") > 1
            if (
                between.strip()
                or (is_apart and _header_text(texts))
                or any(one.start <= begin < one.end for one in definitions[:1])
            ):
                break
            if is_apart:
                texts = []
            if is_comment:
                texts.append(self._data[begin:stop])
            end = stop
        return _header_text(texts)


def _header_text(comments: Sequence[bytes]) -> str:
    return strip_licence(_comment_text(comments))


def _comment_text(comments: Sequence[bytes]) -> str:
    return clean_doc(b"\n".join(comments).decode("utf-8", "replace")) if comments else ""


def _node_text(nodes: Sequence[Node]) -> str:
    raw = nodes[0].text if nodes else None
    return raw.decode("utf-8", "replace") if raw else ""
