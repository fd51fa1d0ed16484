"""Every language: the entities in a sample that has one definition of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from sennit.ingest.code.entities import CodeEntity, CodeFile
from sennit.ingest.code.parser import parse_code

SAMPLES = Path(__file__).parent / "samples"

EXPECTED = {
    "tree.py": """
        constant LIMIT 9-9 | function counted 13-23 | class Tree 26-49 | method Tree.size 32-34
        method Tree.size~2 36-38 | method Tree.walk 40-46 | class Tree.Leaf 48-49
    """,
    "auth.go": """
        constant MaxTries 9-10 | constant A 13-13 | constant B 14-14 | constant ErrDenied 17-17
        struct Session 19-23 | interface Checker 25-27 | type ID 30-30 | type Kind 31-31 | function Login 34-37
        method Session.Close 39-39 | method Kind.String 40-40
    """,
    "app.js": """
        constant app 8-8 | method app.use 10-15 | method Server.listen 17-17 | function create 19-19
        class Router 21-27 | method Router.handle 23-23 | method Router.constructor 24-24
        method Router.path 25-25 | method Router.#secret 26-26 | function add 29-29 | constant LIMIT 29-29
        constant TABLE 30-35 | method TABLE.run 31-31 | method TABLE.go 32-34 | function gen 36-36
        function inner 38-38
    """,
    "shapes.ts": """
        interface Point 1-2 | type Id 3-3 | enum Color 4-4 | class Shape 5-11 | method Shape.helper 6-6
        method Shape.area 7-7 | method Shape.constructor 8-8 | method Shape.overlaps 10-10
        module Geo.Util 12-12 | function Geo.Util.dist 12-12 | module foo 13-13 | function foo.bar 13-13
        interface Window 14-14 | function over~2 15-15 | function over 16-16 | function main 17-17
    """,
    "button.tsx": "function Button 2-4",
    "stack.rs": """
        constant LIMIT 6-7 | constant NAME 8-8 | struct Stack 10-14 | enum Shape 16-16 | type Alias 17-17
        trait Area 19-23 | constant Area.SIDES 20-20 | method Area.area 21-21 | method Area.name 22-22
        method Stack.push 26-27 | method Stack.area 31-31 | method Shape.fmt 34-34 | macro square 36-36
        function helper 38-38 | module tests 40-45 | function tests.works 43-44
    """,
    "Login.java": """
        class Login 6-22 | constant Login.MAX 9-9 | method Login.Login 12-12 | method Login.run 14-16
        enum Login.State 18-18 | method Login.State.flip 18-18 | interface Login.Listener 19-19
        method Login.Listener.heard 19-19 | class Login.Pair 20-20 | method Login.Pair.Pair 20-20
        interface Login.Marked 21-21
    """,
    "strings.c": """
        constant MAX 4-4 | macro SQ 5-5 | struct Node 7-7 | type size 8-8 | type compare 9-9 | enum color 10-10
        struct u 11-11 | constant names 13-13 | constant counter 14-14 | function add~2 16-16
        function add 18-22 | function split 24-24 | function open_it 26-26 | function open_it~2 28-28
    """,
    "shapes.cpp": """
        module geo 2-18 | module geo.inner 3-3 | function geo.inner.f 3-3 | class geo.Shape 4-15
        method geo.Shape.Shape 7-7 | method geo.Shape.~Shape 8-8 | method geo.Shape.area~2 9-9
        method geo.Shape.at 10-10 | method geo.Shape.operator== 11-11 | method geo.Shape.make 12-12
        type geo.Points 16-16 | enum geo.Color 17-17 | method geo.Shape.area 19-19 | function make 20-20
        type Addable 21-21 | function max 22-22
    """,
}


def sample(name: str, known_as: str | None = None) -> CodeFile:
    return parse_code(known_as or f"src/{name}", (SAMPLES / f"{name}.txt").read_bytes())


def entity(name: str, qualified: str) -> CodeEntity:
    return next(one for one in sample(name).entities if one.key == f"src/{name}::{qualified}")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_yields_its_definitions_with_kind_key_and_lines(name: str) -> None:
    file = sample(name)
    found = [
        f"{one.kind} {one.key.removeprefix(f'src/{name}::')} {one.lines[0]}-{one.lines[1]}"
        for one in file.entities[1:]
    ]
    expected = [one.strip() for line in EXPECTED[name].splitlines() for one in line.split("|") if one.strip()]
    assert found == expected
    assert file.parsed
    assert not file.broken
    assert (file.module.kind, file.module.key) == ("module", f"src/{name}")


@pytest.mark.parametrize(
    ("name", "qualified", "signature", "doc"),
    [
        ("tree.py", "counted", "def counted(function)", "A decorator.\n\nWith a second paragraph."),
        ("tree.py", "Tree.walk", "async def walk( self, depth: int = LIMIT, ) -> None", "Go down."),
        ("auth.go", "Login", "func Login(user string) (*Session[int], error)", "Login opens a session."),
        ("app.js", "app.use", "app.use = function use(fn)", "Use middleware."),
        ("shapes.ts", "Point", "interface Point", "A point."),
        ("stack.rs", "Stack", "pub struct Stack<T>", "A stack."),
        ("stack.rs", "Stack.push", "pub fn push(&mut self, item: T)", "Puts one on."),
        ("Login.java", "Login.run", "@Override public void run()", "Runs."),
        ("strings.c", "add", "static int add(int a, int b)", "Adds."),
        ("shapes.cpp", "geo.Shape", "class Shape : public Base<T>", ""),
    ],
)
def test_entity_has_its_signature_and_doc(name: str, qualified: str, signature: str, doc: str) -> None:
    found = entity(name, qualified)
    assert (found.signature, found.doc) == (signature, doc)


@pytest.mark.parametrize(
    ("name", "doc"),
    [
        ("tree.py", "Trees of text."),
        ("auth.go", "Package auth checks who is there."),
        ("stack.rs", "A store."),
        ("strings.c", "Strings."),
    ],
)
def test_module_doc_is_the_comment_at_the_top(name: str, doc: str) -> None:
    assert sample(name).module.doc == doc


@pytest.mark.parametrize(
    ("name", "imports"),
    [
        ("tree.py", "os.path dataclasses::dataclass dataclasses::field .base"),
        ("auth.go", "fmt net/http"),
        ("app.js", "http ./util::merge ./util::Foo react::React ./x"),
        ("button.tsx", "react::FC"),
        ("stack.rs", "std::io::Read std::fmt crate::store super"),
        ("Login.java", "java.util.List org.junit.Assert"),
        ("strings.c", "stdio.h list.h"),
    ],
)
def test_a_file_has_its_imports(name: str, imports: str) -> None:
    assert " ".join(map(str, sample(name).imports)) == imports


@pytest.mark.parametrize(
    ("name", "qualified", "calls", "references"),
    [
        ("tree.py", "Tree.walk", "join", "counted LIMIT paths"),
        ("auth.go", "Login", "newSession", "string Session int error"),
        ("app.js", "Server.listen", "Bar", ""),
        ("shapes.ts", "Shape.overlaps", "check", "Point"),
        ("stack.rs", "Stack.area", "helper", ""),
        ("Login.java", "Login.run", "Session open", ""),
        ("strings.c", "add", "SQ", ""),
        ("shapes.cpp", "geo.Shape.area", "compute", "Shape"),
    ],
)
def test_entity_has_its_calls_and_references(name: str, qualified: str, calls: str, references: str) -> None:
    found = entity(name, qualified)
    assert (" ".join(found.calls), " ".join(found.references)) == (calls, references)


def test_header_is_parsed_by_the_grammar_that_fits() -> None:
    assert sample("shapes.cpp", "src/shapes.h").language == "cpp"
    assert sample("strings.c", "src/strings.h").language == "c"


def test_entity_has_the_key_of_the_enclosing_entity() -> None:
    outer = {one.key.removeprefix("src/tree.py"): one.outer for one in sample("tree.py").entities}
    assert outer[""] is None
    assert outer["::Tree"] == "src/tree.py"
    assert outer["::Tree.Leaf"] == "src/tree.py::Tree"


LICENCE = """\
/***************************************************************************
 *                                  _   _ ____  _
 *  Project                     ___| | | |  _ \\| |
 *
 * Copyright (C) Ana Lind, <ana@example.org>, et al.
 *
 * You may use, copy and merge it under the terms of the COPYING file.
 ***************************************************************************/
"""


@pytest.mark.parametrize(
    ("path", "text", "doc"),
    [
        ("a.c", f"{LICENCE}\nint f(void) {{ return 1; }}\n", ""),
        ("a.c", f"{LICENCE}\n/* Finds hosts. */\n\nint x = 1;\n", "Finds hosts."),
        (
            "a.h",
            "// Copyright (c) 2011 Ana Lind. All rights reserved.\n// See the LICENSE file.\n//\n// Keeps blocks.\n\nint x;",
            "Keeps blocks.",
        ),
        ("a.go", "// Copyright 2020 Ana Lind.\n\n// Package a adds.\npackage a\n", "Package a adds."),
        ("A.java", "/* Copyright (C) 2008 Ana Lind */\npackage a;\nclass A {}\n", ""),
        (
            "a.ts",
            "/* eslint-disable no-console */\n\n// Writes logs.\n\nexport const a = 1;\n",
            "Writes logs.",
        ),
        ("a.py", "# Reads the licence of a package.\n\nx = 1\n", "Reads the licence of a package."),
    ],
)
def test_licences_and_tool_directives_are_not_part_of_the_doc(path: str, text: str, doc: str) -> None:
    assert parse_code(path, text).module.doc == doc


def test_rulers_are_not_part_of_the_doc() -> None:
    file = parse_code(
        "a.c", "/*******************\n * Checks the list.\n *****/\nint f(void) { return 1; }\n"
    )
    assert file.entities[1].doc == "Checks the list."


def test_a_class_with_a_macro_before_its_name_is_a_class() -> None:
    source = "class API Policy {\n public:\n  virtual int Match(int key) const = 0;\n  int Size() { return 1; }\n};\n"
    file = parse_code("a.hpp", source)
    found = [(entity.kind, entity.qualified) for entity in file.entities[1:]]
    assert found == [("class", "Policy"), ("method", "Policy.Match"), ("method", "Policy.Size")]


def test_member_of_a_required_module_is_an_import_and_not_a_definition() -> None:
    file = parse_code("a.js", "var join = require('path').join;\nvar own = 1;\n")
    assert [entity.name for entity in file.entities[1:]] == ["own"]
    assert [(one.module, one.name, one.bound) for one in file.imports] == [("path", "join", "join")]
