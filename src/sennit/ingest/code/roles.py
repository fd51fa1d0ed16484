"""The role of a file, by its name and by what it defines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sennit.ingest.code.entities import CALLABLE_KINDS, MODULE, CodeEntity, Role

_TEST_FOLDER: Final = re.compile(r"(?:^|/)(?:tests?|__tests__|specs?|testdata|__mocks__|fixtures)/", re.I)
_TEST_FILE: Final = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_tests?|[^/]*[._-](?:test|spec)(?:-d)?|[^/]*Tests?|conftest)\.\w+$"
)
_ONLY_TESTS: Final = re.compile(r"_test\.go$|(?:^|/)tests\.rs$")
"""Files that their language compiles only for tests, whatever they contain."""

_TEST_NAME: Final = re.compile(r"(?:test|Test|TEST|Benchmark|Example|Fuzz)(?:[_A-Z0-9]|$)")
_TEST_MODULES: Final = frozenset({"tests", "test"})
_TEST_CALLS: Final = frozenset({"describe", "it", "test", "suite"})

_ENTRY_MODULE: Final = re.compile(r"(?:^|/)(?:__init__\.pyi?|index\.[cm]?[jt]sx?|mod\.rs|lib\.rs)$")
"""Files that re-export what other files define."""

_HEADER: Final = re.compile(r"\.(?:h|hh|hpp|hxx)$")
"""Files that may only declare what other files implement, like type stubs."""

_EXAMPLE_FOLDER: Final = re.compile(r"(?:^|/)(?:examples?|samples?|demos?|benchmarks?|benches)/", re.I)

_GENERATED_MARK_BYTES: Final = 1000
"""A generator marks its files within their first bytes."""
_GENERATED: Final = re.compile(
    rb"""^[ \t]*(?://|/\*|\#|--|;|\*)[/*\#!; \t]*
    (?: @generated\b
      | .{0,60}\bDO[ ]NOT[ ]EDIT\b
      | (?:this\ file\ (?:is|was)\ |code\ |file\ )? (?:auto(?:matically[ -]|-)?)? generated\ (?:by|from|with|automatically)\b
    )""",
    re.I | re.M | re.X,
)

_MAX_OWN_SHARE: Final = 0.5
"""An entry module with more than this share of its lines in functions and classes is an ordinary source file. So is a
header in which at least this share of the functions has a body."""


def file_role(path: str, data: bytes, entities: Sequence[CodeEntity]) -> Role:
    """Decide the role of a file from its path, its first bytes and its entities."""
    if _GENERATED.search(data[:_GENERATED_MARK_BYTES]):
        return "generated"
    if path.endswith((".pyi", ".d.ts", ".d.mts", ".d.cts")):
        return "stub"
    is_test_path = _TEST_FOLDER.search(path) or _ONLY_TESTS.search(path)
    if is_test_path or (_TEST_FILE.search(path) and _has_tests(entities)):
        return "test"
    if _EXAMPLE_FOLDER.search(path):
        return "example"
    if _HEADER.search(path) and _only_declares(entities):
        return "stub"
    if _ENTRY_MODULE.search(path):
        own_lines = sum(
            entity.lines[1] - entity.lines[0] + 1
            for entity in entities[1:]
            if entity.outer == entities[0].key and entity.kind != "constant"
        )
        if own_lines <= _MAX_OWN_SHARE * entities[0].lines[1]:
            return "reexport"
    return "source"


def test_module_prefixes(entities: Sequence[CodeEntity]) -> tuple[str, ...]:
    """The prefixes of qualified names inside test modules, which Rust puts below the code they test."""
    return tuple(
        f"{entity.qualified}."
        for entity in entities
        if entity.kind == MODULE and entity.name in _TEST_MODULES
    )


def _only_declares(entities: Sequence[CodeEntity]) -> bool:
    """Whether most functions of a header have no body in it."""
    functions = [entity for entity in entities[1:] if entity.kind in ("function", "method")]
    return sum(entity.body < entity.span[1] for entity in functions) < _MAX_OWN_SHARE * len(functions)


def _has_tests(entities: Sequence[CodeEntity]) -> bool:
    """Whether a file contains tests: helpers often have the name of a test file."""
    return any(
        (entity.kind in CALLABLE_KINDS or entity.kind == "class") and _TEST_NAME.match(entity.name)
        for entity in entities[1:]
    ) or not _TEST_CALLS.isdisjoint(entities[0].calls)
