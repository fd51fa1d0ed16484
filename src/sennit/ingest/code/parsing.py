"""From the text of a file to its entities, by its grammar."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from sennit.ingest.code.entities import MODULE, SEPARATOR, CodeFile, Entity
from sennit.ingest.code.grammars import Grammar, grammar_of, languages_for
from sennit.ingest.code.imports import imports_of
from sennit.ingest.code.places import Place, definitions
from sennit.ingest.code.prose import signature_of
from sennit.ingest.code.roles import role_of
from sennit.ingest.code.sitter import Node, QueryCursor, Tree
from sennit.ingest.languages import kind_of
from sennit.ingest.reading import decode

MOST_BYTES: Final = 4 * 1024 * 1024
LONGEST_MEAN_LINE: Final = 400
"""Beyond these a file was written by a program, and is not worth a name for each part."""


def parse(path: str, text: bytes | str, language: str | None = None) -> CodeFile:
    """The entities of a file; raises Unreadable for bytes that are no text, MissingExtra without its grammar."""
    content = text if isinstance(text, str) else decode(text).text
    if "\r" in content and "\n" not in content:
        content = content.replace("\r", "\n")
    data = content.encode("utf-8", "replace")
    lines = max(data.count(b"\n") + (not data.endswith(b"\n")), 1)
    choices = (language,) if language else languages_for(path)
    whole = Place(MODULE, 0, len(data), (0, lines - 1), name=posixpath.basename(path).split(".")[0])
    if not choices or len(data) > MOST_BYTES or len(data) > LONGEST_MEAN_LINE * lines:
        module = _entity(whole, path, data, {})
        role = role_of(path, data, (module,))
        return CodeFile(path, language or kind_of(path)[1], data, (module,), role=role, parsed=False)
    tree, grammar, name = _best_tree(data, choices)
    root = tree.root_node
    defined = definitions(data, root, grammar)
    imports = imports_of(defined.imports)
    whole.doc = defined.doc
    bound = {one.bound for one in imports} | {place.name for place in defined.places}
    _hand_out(data, QueryCursor(grammar.uses).captures(root), whole, defined.places, bound)
    keys = _keys(path, defined.places)
    entities = tuple(_entity(place, path, data, keys) for place in (whole, *defined.places))
    known_as = "typescript" if name == "tsx" else name
    role = role_of(path, data, entities)
    return CodeFile(path, known_as, data, entities, imports, role, broken=root.has_error)


def _best_tree(data: bytes, choices: Sequence[str]) -> tuple[Tree, Grammar, str]:
    """The tree by the first grammar that understands all of it, else by the one that leaves the least out."""
    best: tuple[int, Tree, Grammar, str] | None = None
    for name in choices:
        grammar = grammar_of(name)
        tree = grammar.parser().parse(data)
        wrong = _errors(tree.root_node) if len(choices) > 1 else 0
        if best is None or wrong < best[0]:
            best = (wrong, tree, grammar, name)
        if not wrong:
            break
    assert best is not None
    return best[1:]


def _errors(root: Node) -> int:
    """How many bytes stand in places the grammar could not read."""
    total = 0
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            total += max(node.end_byte - node.start_byte, 1)
        elif node.has_error:
            waiting += node.children
    return total


def _hand_out(
    data: bytes,
    uses: dict[str, list[Node]],
    module: Place,
    places: Sequence[Place],
    bound: set[str],
) -> None:
    """Give every name in use to the innermost entity it stands in: calls, types, and what the file has bound."""
    known = {name.encode() for name in bound}
    listed = [(node.start_byte, node.end_byte, True) for node in uses.get("call", ())]
    called = {start for start, _, _ in listed}
    listed += ((node.start_byte, node.end_byte, False) for node in uses.get("reference", ()))
    for node in uses.get("mention", ()):
        start, end = node.start_byte, node.end_byte
        if data[start:end] in known and start not in called:
            listed.append((start, end, False))
    listed.sort()
    stack = [module]
    ahead = 0
    for start, end, call in listed:
        while ahead < len(places) and places[ahead].start <= start:
            while stack[-1].end <= places[ahead].start and len(stack) > 1:
                stack.pop()
            stack.append(places[ahead])
            ahead += 1
        while stack[-1].end <= start and len(stack) > 1:
            stack.pop()
        holder = stack[-1]
        (holder.calls if call else holder.references)[data[start:end].decode("utf-8", "replace")] = None


def _entity(place: Place, path: str, data: bytes, keys: dict[int, str]) -> Entity:
    body = place.end if place.body is None else place.body
    head = data[place.head : body].decode("utf-8", "replace")
    outer = path if place.within is None else keys[id(place.within)]
    module = place.what == MODULE and not place.path
    return Entity(
        key=path if module else keys[id(place)],
        kind=place.what,
        name=place.name,
        qualified=".".join(place.path),
        lines=(place.rows[0] + 1, place.rows[1] + 1),
        span=(place.start, place.end),
        body=body,
        signature="" if module else signature_of(head, whole=place.body is not None),
        doc=place.doc,
        outer=None if module else outer,
        calls=tuple(place.calls),
        references=tuple(
            name for name in place.references if name not in place.calls and (module or name != place.name)
        ),
    )


def _keys(path: str, places: Sequence[Place]) -> dict[int, str]:
    """A key for each; of several with one name the longest has it, and the others a number after it."""
    same: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        same[".".join(place.path)].append(place)
    out: dict[int, str] = {}
    for qualified, group in same.items():
        first = max(group, key=lambda place: (place.body is not None, place.end - place.start, -place.start))
        rest = (place for place in group if place is not first)
        out[id(first)] = f"{path}{SEPARATOR}{qualified}"
        for number, place in enumerate(rest, 2):
            out[id(place)] = f"{path}{SEPARATOR}{qualified}~{number}"
    return out
