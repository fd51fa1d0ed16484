"""The parser that grammars are for; without it, one clear error."""

from __future__ import annotations

from sennit.errors import MissingExtra

try:
    from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree
except ModuleNotFoundError as error:
    raise MissingExtra("Reading code as entities", "code") from error

__all__ = ["Language", "Node", "Parser", "Query", "QueryCursor", "Tree"]
