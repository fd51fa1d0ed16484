"""Parsing broken, unusual, long and hostile files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ingest.code.entities import CodeFile
from sennit.ingest.code.parser import parse_code

SAMPLES = Path(__file__).parent / "samples"
TEXTS = {file.stem: file.read_text(encoding="utf-8") for file in SAMPLES.iterdir()}


def keys_of(file: CodeFile) -> list[str]:
    return [entity.key.removeprefix(f"{file.path}::") for entity in file.entities[1:]]


def test_a_file_with_errors_yields_what_parses() -> None:
    file = parse_code(
        "a.py", "def good(a):\n    return 1\n\ndef bad(a):\n    x = = 3\n\ndef also():\n    return 2\n"
    )
    assert file.broken
    assert {"good", "also"} <= set(keys_of(file))


def test_a_language_without_a_grammar_is_one_module() -> None:
    file = parse_code("a.rb", "def foo\n  1\nend\n")
    assert (file.parsed, file.language, len(file.entities)) == (False, "ruby", 1)


def test_a_language_can_be_named() -> None:
    assert keys_of(parse_code("script", "def f():\n    pass\n", "python")) == ["f"]


@pytest.mark.parametrize("text", ["", "\n", "   \n\n", "\ufeff", "# only a comment", "x"])
def test_almost_empty_file_is_a_module(text: str) -> None:
    file = parse_code("a.py", text)
    assert [entity.kind for entity in file.entities] == ["module"]


def test_lines_are_numbered_as_in_an_editor() -> None:
    unix = parse_code("a.py", "a = 1\n\ndef f():\n    pass\n")
    windows = parse_code("a.py", "a = 1\r\n\r\ndef f():\r\n    pass\r\n")
    old = parse_code("a.py", "a = 1\r\rdef f():\r    pass\r")
    lines = [(entity.key, entity.lines) for entity in unix.entities]
    assert [(e.key, e.lines) for e in windows.entities] == lines
    assert [(e.key, e.lines) for e in old.entities] == lines


def test_non_ascii_letters_do_not_shift_spans() -> None:
    file = parse_code("a.py", '"""Größe 😀"""\ndef größe():\n    """Wie groß 😀."""\n    return länge()\n')
    found = file.entities[1]
    assert (found.qualified, found.doc, found.calls) == ("größe", "Wie groß 😀.", ("länge",))
    assert file.text(found).startswith("def größe()")


def test_minified_file_is_not_parsed() -> None:
    minified = "".join(f"function f{n}(){{return {n}}}" for n in range(1000))
    assert not parse_code("a.min.js", minified).parsed


def test_definition_on_a_very_long_line_is_no_entity() -> None:
    shared = "".join(f"function f{n}(){{return {n}}}" for n in range(200))
    file = parse_code("a.js", "\n".join(["// short"] * 100 + ["function plain() {}", shared]))
    assert keys_of(file) == ["plain"]


def test_inner_function_is_an_entity_only_in_a_long_function() -> None:
    def source(filler: int) -> str:
        return "def outer():\n    def inner():\n        pass\n" + "    work()\n" * filler

    assert keys_of(parse_code("a.py", source(10))) == ["outer"]
    assert keys_of(parse_code("a.py", source(100))) == ["outer", "outer.inner"]


def test_definition_with_a_body_gets_the_plain_key() -> None:
    file = parse_code(
        "a.ts", "export function over(a: string, b: string): void;\nfunction over(a: any) { go(); }\n"
    )
    assert keys_of(file) == ["over~2", "over"]
    assert file.entities[2].calls == ("go",)


@pytest.mark.parametrize(
    ("type_", "owner"),
    [
        ("Tree", "Tree"),
        ("Tree<T>", "Tree"),
        ("crate::node::Tree", "Tree"),
        ("crate::node::Tree<T>", "Tree"),
        ("&'a Tree", "Tree"),
        ("&'a mut Tree<T>", "Tree"),
        ("u8", "u8"),
        ("&str", "str"),
    ],
)
def test_a_method_of_a_rust_impl_has_the_name_of_the_type(type_: str, owner: str) -> None:
    entities = parse_code(
        "a.rs", f"impl<'a, T> fmt::Display for {type_} {{\n    fn fmt(&self) {{}}\n}}\n"
    ).entities
    assert [(one.qualified, one.kind) for one in entities[1:]] == [(f"{owner}.fmt", "method")]


@pytest.mark.parametrize(
    ("path", "text", "role"),
    [
        ("src/app.py", "def run(): pass", "source"),
        ("tests/helpers.py", "def run(): pass", "test"),
        ("pkg/test_app.py", "def test_run(): pass", "test"),
        ("pkg/test_utils.py", "def make_app(): pass", "source"),
        ("pkg/app_test.go", "package app\nfunc TestRun(t *testing.T) {}", "test"),
        ("web/app.test.ts", "describe('app', () => { it('runs', () => {}) })", "test"),
        ("src/AppTest.java", "class AppTest { void testRun() {} }", "test"),
        ("pkg/fakes_test.go", "package app\nfunc fake() {}", "test"),
        ("src/client/tests.rs", "fn client() {}", "test"),
        ("src/app.test-d.ts", "test('types', () => {})", "test"),
        ("util/cache_test.cc", "TEST(CacheTest, Empty) { check(); }", "test"),
        ("lib/hash.h", "int hash_add(struct hash *h, int key);\nvoid hash_clean(struct hash *h);", "stub"),
        ("lib/list.h", "struct list { int size; };\n", "source"),
        ("lib/swap.h", "inline void swap(int *a, int *b) { int c = *a; *a = *b; *b = c; }", "source"),
        ("pkg/app.pyi", "def run() -> None: ...", "stub"),
        ("types/app.d.ts", "export function run(): void;", "stub"),
        ("pkg/__init__.py", "from .app import run\n__all__ = ['run']", "reexport"),
        ("pkg/__init__.py", "import os\n\ndef run():\n    a = 1\n    b = 2\n    return a\n", "source"),
        ("pkg/__init__.py", "", "reexport"),
        ("web/index.ts", "export { run } from './app';\nexport * from './b';", "reexport"),
        ("src/mod.rs", "mod app;\npub use app::run;", "reexport"),
        ("src/testing.py", "class TestClient: pass", "source"),
        ("examples/app.py", "def run(): pass", "example"),
        ("api/app.pb.go", "// Code generated by protoc. DO NOT EDIT.\npackage api", "generated"),
        ("src/parser.c", "/* Generated by Cython 3.1 */\nint x = 1;", "generated"),
        ("src/docs.py", '"""Serves documentation generated by hand."""', "source"),
    ],
)
def test_a_file_has_a_role(path: str, text: str, role: str) -> None:
    assert parse_code(path, text).role == role


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n" * 3000,
        "class A:\n" + "".join(f"{' ' * n}class A{n}:\n" for n in range(1, 300)),
        "(" * 20_000,
        "@x\n" * 5000 + "def f(): pass",
        "# c\n" * 20_000 + "def f(): pass",
        "x = " + "[" * 5000,
        'def f():\n    """' + "a" * 100_000,
    ],
    ids=["unfinished", "deep", "brackets", "decorators", "comments", "lists", "open string"],
)
def test_hostile_files_are_read_too(text: str) -> None:
    file = parse_code("a.py", text)
    assert file.entities[0].key == "a.py"


@given(st.data())
def test_parsing_a_damaged_file_is_deterministic(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(TEXTS)))
    text = TEXTS[name]
    start = data.draw(st.integers(0, len(text)))
    cut = text[:start] + data.draw(st.text(max_size=5)) + text[start + data.draw(st.integers(0, 80)) :]
    file = parse_code(name, cut)
    assert file == parse_code(name, cut)
    assert len({entity.key for entity in file.entities}) == len(file.entities)
    last = file.module.lines[1]
    for entity in file.entities:
        assert 1 <= entity.lines[0] <= entity.lines[1] <= last
        assert 0 <= entity.span[0] <= entity.body <= entity.span[1] <= len(file.data)
        assert entity.outer is None or any(entity.outer == other.key for other in file.entities)
