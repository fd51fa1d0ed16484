"""Macros around definitions, as in Rust: `cfg_net! { pub struct Socket { … } }`.

A grammar reads what is between the braces of a macro as tokens. Where these tokens are definitions, the macro is
replaced by spaces and the file parsed again, so that the definitions are found at their places.
"""

from __future__ import annotations

from typing import Final

from sennit.ingest.code.grammars import Grammar, QueryCursor, Tree

MAX_DEPTH: Final = 4
"""How many macros around each other are replaced."""


def parse_item_macros(data: bytes, tree: Tree, grammar: Grammar) -> Tree:
    """The tree of a file in which macros around definitions are spaces; the same tree if there are none."""
    if grammar.item_macros is None:
        return tree
    parser = grammar.parser()
    text = bytearray(data)
    rejected: set[int] = set()
    for _ in range(MAX_DEPTH):
        found = False
        for _, captures in QueryCursor(grammar.item_macros).matches(tree.root_node):
            start, items = captures["macro"][0].start_byte, captures["items"][0]
            opening, closing = items.start_byte, items.end_byte - 1
            if text[opening : opening + 1] != b"{" or start in rejected:
                continue
            if parser.parse(bytes(text[opening + 1 : closing])).root_node.has_error:
                rejected.add(start)
                continue
            text[start : opening + 1] = _blank(text[start : opening + 1])
            text[closing : closing + 1] = b" "
            found = True
        if not found:
            break
        tree = parser.parse(bytes(text))
    return tree


def _blank(text: bytearray) -> bytes:
    """As many spaces, with the line breaks of the text."""
    return bytes(byte if byte in b"\r\n" else 32 for byte in text)
