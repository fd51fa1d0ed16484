"""The entities of a code file: the module, and the functions, classes, types and constants in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["source", "test", "stub", "reexport", "example", "generated"]
"""What a file is for: implementation, tests, type stubs, re-exports of other files, examples, or generated code."""

MODULE: Final = "module"
CALLABLE_KINDS: Final = frozenset({"function", "method", "macro"})
CLASS_KINDS: Final = frozenset({"class", "struct", "enum", "interface", "trait"})
"""Kinds that have methods."""

SEPARATOR: Final = "::"


@dataclass(frozen=True, slots=True)
class Import:
    """An import: a whole module, or one name from it."""

    module: str
    name: str = ""
    bound: str = ""
    """The name that the import binds in the file."""

    def __str__(self) -> str:
        return f"{self.module}{SEPARATOR}{self.name}" if self.name else self.module


@dataclass(frozen=True, slots=True)
class CodeEntity:
    """A named definition in a file. Its key is `path::Outer.inner`; the key of the module is the path."""

    key: str
    kind: str
    """module, function, method, macro, class, struct, enum, interface, trait, type or constant."""
    name: str
    qualified: str
    """`Outer.inner`; empty for the module."""
    lines: tuple[int, int]
    span: tuple[int, int]
    """Byte range, with the comment and the decorators above the definition."""
    body: int
    """The byte where the body begins, or the end of the span if there is no body."""
    signature: str
    doc: str
    outer: str | None
    """The key of the enclosing entity; None for the module."""
    calls: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    """Types, and names that the file defines or imports, without its own name and the names it calls."""
    variants: tuple[tuple[str, str], ...] = ()
    """The values of an enum: name and doc."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file with its entities: the module first, then the others in source order."""

    path: str
    language: str
    data: bytes
    """The text in UTF-8; spans are offsets into it."""
    entities: tuple[CodeEntity, ...]
    imports: tuple[Import, ...] = ()
    role: Role = "source"
    parsed: bool = True
    """False if there is no grammar for the file, or if it was not written by hand. It then has only the module."""
    broken: bool = False
    """Whether the parser found syntax errors."""

    @property
    def module(self) -> CodeEntity:
        return self.entities[0]

    def text(self, entity: CodeEntity) -> str:
        """The source text of an entity."""
        start, end = entity.span
        return self.data[start:end].decode()
