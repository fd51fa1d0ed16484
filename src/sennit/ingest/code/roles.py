"""What a file is for, by its name and by what it defines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sennit.ingest.code.entities import CALLABLE, MODULE, Entity, Role

_TEST_FOLDER: Final = re.compile(r"(?:^|/)(?:tests?|__tests__|specs?|testdata|__mocks__|fixtures)/", re.I)
_TEST_FILE: Final = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_tests?|[^/]*[._-](?:test|spec)(?:-d)?|[^/]*Tests?|conftest)\.\w+$"
)
_ONLY_TESTS: Final = re.compile(r"_test\.go$|(?:^|/)tests\.rs$")
"""Files that their language reads for tests alone, whatever is in them."""

_TEST_NAME: Final = re.compile(r"(?:test|Test|TEST|Benchmark|Example|Fuzz)(?:[_A-Z0-9]|$)")
_TEST_MODULES: Final = frozenset({"tests", "test"})
_TEST_CALLS: Final = frozenset({"describe", "it", "test", "suite"})

_DOORS: Final = re.compile(r"(?:^|/)(?:__init__\.pyi?|index\.[cm]?[jt]sx?|mod\.rs|lib\.rs)$")
"""Files through which others are reached."""

_HEADER: Final = re.compile(r"\.(?:h|hh|hpp|hxx)$")
"""Files that may say only what others do, as those of types do elsewhere."""

_EXAMPLE_FOLDER: Final = re.compile(r"(?:^|/)(?:examples?|samples?|demos?|benchmarks?|benches)/", re.I)

_HEAD: Final = 1000
"""Bytes in which a program says that it wrote the file."""
_GENERATED: Final = re.compile(
    rb"""^[ \t]*(?://|/\*|\#|--|;|\*)[/*\#!; \t]*
    (?: @generated\b
      | .{0,60}\bDO[ ]NOT[ ]EDIT\b
      | (?:this\ file\ (?:is|was)\ |code\ |file\ )? (?:auto(?:matically[ -]|-)?)? generated\ (?:by|from|with|automatically)\b
    )""",
    re.I | re.M | re.X,
)

_MOST_OWN: Final = 0.5
"""A door with more than this share of its lines in functions and classes is a source like any other; so is a header in
which at least this share of the functions has a body."""


def role_of(path: str, data: bytes, entities: Sequence[Entity]) -> Role:
    """The role of a file with these entities."""
    if _GENERATED.search(data[:_HEAD]):
        return "generated"
    if path.endswith((".pyi", ".d.ts", ".d.mts", ".d.cts")):
        return "stub"
    by_place = _TEST_FOLDER.search(path) or _ONLY_TESTS.search(path)
    if by_place or (_TEST_FILE.search(path) and _tests(entities)):
        return "test"
    if _EXAMPLE_FOLDER.search(path):
        return "example"
    if _HEADER.search(path) and _declares(entities):
        return "stub"
    if _DOORS.search(path):
        own = sum(
            entity.lines[1] - entity.lines[0] + 1
            for entity in entities[1:]
            if entity.outer == entities[0].key and entity.kind != "constant"
        )
        if own <= _MOST_OWN * entities[0].lines[1]:
            return "reexport"
    return "source"


def test_modules(entities: Sequence[Entity]) -> tuple[str, ...]:
    """How the names begin that stand in modules of tests, as Rust has them below what they test."""
    return tuple(
        f"{entity.qualified}."
        for entity in entities
        if entity.kind == MODULE and entity.name in _TEST_MODULES
    )


def _declares(entities: Sequence[Entity]) -> bool:
    """Whether the functions of a header are written elsewhere."""
    functions = [entity for entity in entities[1:] if entity.kind in ("function", "method")]
    return sum(entity.body < entity.span[1] for entity in functions) < _MOST_OWN * len(functions)


def _tests(entities: Sequence[Entity]) -> bool:
    """Whether a file has tests: helpers for tests are often named like them."""
    return any(
        (entity.kind in CALLABLE or entity.kind == "class") and _TEST_NAME.match(entity.name)
        for entity in entities[1:]
    ) or not _TEST_CALLS.isdisjoint(entities[0].calls)
