"""The records of code files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ingest.code.parser import parse_code
from sennit.ingest.code.records import CodeOptions, code_records
from sennit.records import Record

SAMPLES = {
    file.stem: file.read_text(encoding="utf-8") for file in (Path(__file__).parent / "samples").iterdir()
}


def records_of(path: str, text: str, max_characters: int = 3200) -> dict[str, Record]:
    records = code_records(parse_code(path, text), options=CodeOptions(max_characters=max_characters))
    return {record.id: record for record in records}


def test_an_entity_is_a_record_with_its_key_path_lines_and_parent() -> None:
    found = records_of("src/tree.py", SAMPLES["tree.py"])["src/tree.py::Tree.walk"]
    assert (found.kind, found.path, found.lines, found.parent) == (
        "method",
        "src/tree.py",
        (40, 46),
        "src/tree.py",
    )
    assert found.text.splitlines()[0] == "    @counted"
    assert found.collection == "code"
    assert found.metadata["signature"] == "async def walk( self, depth: int = LIMIT, ) -> None"
    assert found.metadata["calls"] == ["join"]
    assert (found.metadata["language"], found.metadata["role"]) == ("python", "source")


def test_lines_outside_entities_are_passages() -> None:
    found = records_of("src/tree.py", SAMPLES["tree.py"])["src/tree.py#1"]
    assert found.kind == "passage"
    assert "import os.path as paths" in found.text
    assert "def " not in found.text


def test_file_has_an_outline_in_the_outline_collection() -> None:
    found = records_of("src/tree.py", SAMPLES["tree.py"])["src/tree.py"]
    assert (found.kind, found.collection, found.title) == ("module", "code_files", "src/tree.py")
    assert found.lines == (1, 49)
    assert found.text.split("\n") == [
        "Trees of text",
        "LIMIT",
        "counted: A decorator",
        "Tree: A node and what is below",
        "Tree.size",
        "Tree.walk: Go down",
        "Tree.Leaf",
    ]
    assert "dataclasses::field" in found.metadata["imports"]  # type: ignore[operator]  # a list


def test_outline_has_each_name_once_with_its_longest_doc() -> None:
    source = """
/* tslint:disable */
export function put(key: string): void;
/** @deprecated Name a value. */
export function put(key: string, value: undefined): void;
/** Keeps a value under a key, for as long as the page is open. */
export function put(key: string, value?: number): void {}
"""
    found = records_of("src/store.ts", source)["src/store.ts"]
    assert found.text == "put: Keeps a value under a key, for as long as the page is open"


def test_outline_qualifies_only_the_first_members_of_a_class() -> None:
    methods = "".join(f"    def do_{n}(self): ...\n" for n in range(5))
    found = records_of("a.py", f"class Box:\n{methods}")["a.py"]
    assert found.text.split("\n") == ["Box", "Box.do_0", "Box.do_1", "Box.do_2", "do_3", "do_4"]


def test_outline_splits_camel_case_names_into_words() -> None:
    found = records_of("a.ts", "export class HTTPServer { readFile() {} }")["a.ts"]
    assert found.text.split("\n") == ["HTTPServer HTTP Server", "HTTPServer.readFile HTTP Server.read File"]


def test_outline_has_no_namespaces_and_no_blank_names() -> None:
    found = records_of(
        "a.cpp",
        "namespace db {\nint Get() { return 1; }\nclass Row { int Size() { return 1; } };\n}",
    )
    assert found["a.cpp"].text.split("\n") == ["db", "Get", "Row", "Row.Size"]
    assert records_of("a.go", "package a\n\nvar _ = 1\n\nfunc Run() {}\n")["a.go"].text == "Run"


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("src/color.rs", "pub enum Color {\n    /// No color at all.\n    NeverUsed,\n    Always(u8),\n}\n"),
        (
            "src/color.ts",
            "export enum Color {\n  /** No color at all. */\n  NeverUsed = 'never',\n  Always,\n}\n",
        ),
        (
            "Color.java",
            "enum Color {\n  /** No color at all. */\n  NeverUsed { void paint() {} },\n  Always;\n}\n",
        ),
        ("color.c", "enum Color {\n  /* No color at all. */\n  NeverUsed = 1,\n  Always\n};\n"),
        ("color.c", "typedef enum Color {\n  /* No color at all. */\n  NeverUsed,\n  Always\n} Color;\n"),
    ],
)
def test_outline_has_the_values_of_enums(path: str, source: str) -> None:
    lines = records_of(path, source)[path].text.split("\n")
    assert lines[:3] == ["Color", "NeverUsed Never Used: No color at all", "Always"]


def test_outline_of_a_long_enum_is_cut() -> None:
    variants = "".join(f"    Code{number},\n" for number in range(300))
    lines = records_of("a.rs", f"enum Codes {{\n{variants}}}\nfn last() {{}}\n")["a.rs"].text.split("\n")
    assert (lines[1], lines[100], lines[101:]) == ("Code0", "Code99", ["last"])


@pytest.mark.parametrize(
    ("path", "first_line"),
    [
        ("src/locales/de.ts", "German"),
        ("src/i18n/pt-BR.ts", "Portuguese"),
        ("src/core/de.ts", "error"),
        ("src/locales/base.ts", "error"),
    ],
)
def test_outline_of_translations_names_their_language(path: str, first_line: str) -> None:
    assert records_of(path, "const error = () => 'x';\n")[path].text.split("\n")[0] == first_line


def test_test_module_is_not_in_the_outline_and_its_records_have_the_test_role() -> None:
    source = "fn add() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n}\n"
    found = records_of("src/add.rs", source)
    assert found["src/add.rs"].text == "add"
    roles = {name: record.metadata["role"] for name, record in found.items()}
    assert roles == {
        "src/add.rs": "source",
        "src/add.rs::add": "source",
        "src/add.rs::tests": "test",
        "src/add.rs::tests.adds": "test",
    }


def test_long_class_has_signatures_and_its_methods_are_separate_records() -> None:
    whole = records_of("src/tree.py", SAMPLES["tree.py"])
    outlined = records_of("src/tree.py", SAMPLES["tree.py"], max_characters=400)
    key = "src/tree.py::Tree"
    assert "1 + sum(" in whole[key].text
    assert "1 + sum(" not in outlined[key].text
    assert "async def walk( self, depth: int = LIMIT, ) -> None …" in outlined[key].text
    assert '"""A node and what is below."""' in outlined[key].text
    assert "1 + sum(" in outlined[f"{key}.size"].text


def test_long_function_continues_in_further_records() -> None:
    body = "".join(f"    call_{n}(argument)\n\n" for n in range(400))
    found = records_of("a.py", f"def long():\n{body}")
    parts = [record for record in found.values() if record.metadata["name"] == "long"]
    assert [record.id for record in parts[:2]] == ["a.py::long", "a.py::long#2"]
    assert [record.metadata["part"] for record in parts] == list(range(1, len(parts) + 1))
    assert all(record.metadata["parts"] == len(parts) for record in parts)


def test_a_file_without_a_grammar_becomes_passages() -> None:
    text = "".join(f"def foo_{n}\n  {n}\nend\n\n" for n in range(400))
    found = records_of("a.rb", text)
    assert list(found)[:2] == ["a.rb", "a.rb#1"]


def test_tokens_are_counted_if_a_counter_is_given() -> None:
    found = code_records(parse_code("a.py", "x = 1\n"), options=CodeOptions(count_tokens=len))
    assert found[0].metadata["tokens"] == len(found[0].text)


def test_path_longer_than_an_id_has_records() -> None:
    path = f"{'deep/' * 300}a.py"
    found = records_of(path, "def f():\n    pass\n\ndef g():\n    pass\n")
    assert len(found) == 3
    assert all(record.path == path for record in found.values())


@given(st.data())
def test_no_line_is_lost(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(SAMPLES)))
    lines = SAMPLES[name].split("\n")
    first = data.draw(st.integers(0, len(lines)))
    del lines[first : first + data.draw(st.integers(0, 5))]
    text = "\n".join(lines)
    found = records_of(name, text, max_characters=data.draw(st.sampled_from([80, 400, 3200]))).values()
    for number, line in enumerate(lines, 1):
        if line.strip():
            assert any(
                record.collection == "code"
                and record.lines is not None
                and record.lines[0] <= number <= record.lines[1]
                and line in record.text.split("\n")
                for record in found
            ), (number, line)
