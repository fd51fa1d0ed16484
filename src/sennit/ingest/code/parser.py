"""Parsing a code file into its entities, with its tree-sitter grammar."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from sennit.ingest.code.definitions import Definition, find_definitions
from sennit.ingest.code.descriptions import format_signature
from sennit.ingest.code.entities import MODULE, SEPARATOR, CodeEntity, CodeFile
from sennit.ingest.code.grammars import (
    Grammar,
    Node,
    QueryCursor,
    Tree,
    candidate_languages,
    load_grammar,
)
from sennit.ingest.code.imports import collect_imports
from sennit.ingest.code.item_macros import parse_item_macros
from sennit.ingest.code.roles import file_role
from sennit.ingest.file_reader import decode
from sennit.ingest.languages import file_kind

MAX_PARSED_BYTES: Final = 4 * 1024 * 1024
MAX_MEAN_LINE_BYTES: Final = 400
"""A larger file, or one with longer lines, is generated or minified. It is not parsed."""


def parse_code(path: str, text: bytes | str, language: str | None = None) -> CodeFile:
    """Parse a file; raises UnreadableFile for bytes that are not text, MissingExtra if the grammar is missing."""
    content = text if isinstance(text, str) else decode(text).text
    if "\r" in content and "\n" not in content:
        content = content.replace("\r", "\n")
    data = content.encode("utf-8", "replace")
    lines = max(data.count(b"\n") + (not data.endswith(b"\n")), 1)
    languages = (language,) if language else candidate_languages(path)
    module = Definition(MODULE, 0, len(data), (0, lines - 1), name=posixpath.basename(path).split(".")[0])
    if not languages or len(data) > MAX_PARSED_BYTES or len(data) > MAX_MEAN_LINE_BYTES * lines:
        entity = _create_entity(module, path, data, {})
        role = file_role(path, data, (entity,))
        return CodeFile(path, language or file_kind(path)[1], data, (entity,), role=role, parsed=False)
    tree, grammar, grammar_name = _parse_best(data, languages)
    root = parse_item_macros(data, tree, grammar).root_node
    found = find_definitions(data, root, grammar)
    imports = collect_imports(found.imports)
    module.doc = found.doc
    bound = {item.bound for item in imports} | {one.name for one in found.definitions}
    _assign_uses(data, QueryCursor(grammar.uses).captures(root), module, found.definitions, bound)
    keys = _assign_keys(path, found.definitions)
    entities = tuple(_create_entity(one, path, data, keys) for one in (module, *found.definitions))
    name = "typescript" if grammar_name == "tsx" else grammar_name
    role = file_role(path, data, entities)
    return CodeFile(path, name, data, entities, imports, role, broken=root.has_error)


def _parse_best(data: bytes, languages: Sequence[str]) -> tuple[Tree, Grammar, str]:
    """Parse with the first grammar that reports no errors, else with the one that reports the fewest."""
    best: tuple[int, Tree, Grammar, str] | None = None
    for name in languages:
        grammar = load_grammar(name)
        tree = grammar.parser().parse(data)
        errors = _count_error_bytes(tree.root_node) if len(languages) > 1 else 0
        if best is None or errors < best[0]:
            best = (errors, tree, grammar, name)
        if not errors:
            break
    assert best is not None
    return best[1:]


def _count_error_bytes(root: Node) -> int:
    """The number of bytes in syntax errors."""
    total = 0
    pending = [root]
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            total += max(node.end_byte - node.start_byte, 1)
        elif node.has_error:
            pending += node.children
    return total


def _assign_uses(
    data: bytes,
    uses: dict[str, list[Node]],
    module: Definition,
    definitions: Sequence[Definition],
    bound: set[str],
) -> None:
    """Assign every used name to the innermost definition around it: calls, types, and names bound in the file."""
    bound_names = {name.encode() for name in bound}
    used = [(node.start_byte, node.end_byte, True) for node in uses.get("call", ())]
    called = {start for start, _, _ in used}
    used += ((node.start_byte, node.end_byte, False) for node in uses.get("reference", ()))
    for node in uses.get("mention", ()):
        start, end = node.start_byte, node.end_byte
        if data[start:end] in bound_names and start not in called:
            used.append((start, end, False))
    used.sort()
    stack = [module]
    next_index = 0
    for start, end, is_call in used:
        while next_index < len(definitions) and definitions[next_index].start <= start:
            while stack[-1].end <= definitions[next_index].start and len(stack) > 1:
                stack.pop()
            stack.append(definitions[next_index])
            next_index += 1
        while stack[-1].end <= start and len(stack) > 1:
            stack.pop()
        innermost = stack[-1]
        (innermost.calls if is_call else innermost.references)[data[start:end].decode("utf-8", "replace")] = (
            None
        )


def _create_entity(definition: Definition, path: str, data: bytes, keys: dict[int, str]) -> CodeEntity:
    body = definition.end if definition.body is None else definition.body
    header = data[definition.header_start : body].decode("utf-8", "replace")
    outer = path if definition.enclosing is None else keys[id(definition.enclosing)]
    is_module = definition.kind == MODULE and not definition.path
    return CodeEntity(
        key=path if is_module else keys[id(definition)],
        kind=definition.kind,
        name=definition.name,
        qualified=".".join(definition.path),
        lines=(definition.rows[0] + 1, definition.rows[1] + 1),
        span=(definition.start, definition.end),
        body=body,
        signature="" if is_module else format_signature(header, has_body=definition.body is not None),
        doc=definition.doc,
        outer=None if is_module else outer,
        calls=tuple(definition.calls),
        references=tuple(
            name
            for name in definition.references
            if name not in definition.calls and (is_module or name != definition.name)
        ),
        variants=tuple(definition.variants),
    )


def _assign_keys(path: str, definitions: Sequence[Definition]) -> dict[int, str]:
    """A key for each definition. Of several with one name, the longest gets the plain key, the others a number."""
    by_name: dict[str, list[Definition]] = defaultdict(list)
    for definition in definitions:
        by_name[".".join(definition.path)].append(definition)
    out: dict[int, str] = {}
    for qualified, group in by_name.items():
        first = max(group, key=lambda one: (one.body is not None, one.end - one.start, -one.start))
        rest = (definition for definition in group if definition is not first)
        out[id(first)] = f"{path}{SEPARATOR}{qualified}"
        for number, definition in enumerate(rest, 2):
            out[id(definition)] = f"{path}{SEPARATOR}{qualified}~{number}"
    return out
