"""What a file of code is made of: a module, and the functions, classes, types and constants in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["source", "test", "stub", "reexport", "example", "generated"]
"""What a file is for: the thing itself, its tests, its types only, a door to other files, its use shown, or what a
program wrote."""

MODULE: Final = "module"
CALLABLE: Final = frozenset({"function", "method", "macro"})
HOLDERS: Final = frozenset({"class", "struct", "enum", "interface", "trait"})
"""Kinds in which a function is a method."""

SEPARATOR: Final = "::"


@dataclass(frozen=True, slots=True)
class Import:
    """What a file takes from elsewhere: a whole module, or one name of it."""

    module: str
    name: str = ""
    bound: str = ""
    """The name by which the file knows it."""

    def __str__(self) -> str:
        return f"{self.module}{SEPARATOR}{self.name}" if self.name else self.module


@dataclass(frozen=True, slots=True)
class Entity:
    """A named part of a file. Its key is `path::Outer.inner`; the module's is the path."""

    key: str
    kind: str
    """module, function, method, macro, class, struct, enum, interface, trait, type or constant."""
    name: str
    qualified: str
    """`Outer.inner`; empty for the module."""
    lines: tuple[int, int]
    span: tuple[int, int]
    """First byte and the one after the last, its comment and decorators included."""
    body: int
    """The byte where its body begins, or the end of the span when it has none."""
    signature: str
    doc: str
    outer: str | None
    """The key of the entity it is written in; None for the module."""
    calls: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    """Types it names, and names that the file defines or imports; neither its own nor those it calls."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """One file with its entities, the module first and the others in the order they begin."""

    path: str
    language: str
    data: bytes
    """The text in UTF-8, which spans count in."""
    entities: tuple[Entity, ...]
    imports: tuple[Import, ...] = ()
    role: Role = "source"
    parsed: bool = True
    """False: there is no grammar for it, or it is not written by hand; the module is all there is."""
    broken: bool = False
    """Whether some of it could not be parsed."""

    @property
    def module(self) -> Entity:
        return self.entities[0]

    def text(self, entity: Entity) -> str:
        """The entity as the file has it, without what is around it."""
        first, end = entity.span
        return self.data[first:end].decode()
