"""Definitions inside macros, which the grammar of Rust reads as tokens."""

from __future__ import annotations

import pytest

from sennit.ingest.code.parser import parse_code


def kinds_and_lines(text: str) -> dict[str, tuple[str, tuple[int, int]]]:
    entities = parse_code("src/net.rs", text).entities[1:]
    return {entity.qualified: (entity.kind, entity.lines) for entity in entities}


def test_definitions_in_macros_are_entities_at_their_places() -> None:
    text = """
cfg_net! {
    /// Listens for connections.
    pub struct Listener {
        fd: u32,
    }

    cfg_unix! {
        pub fn bind(path: &str) -> Listener { open(path) }
    }
}

impl Listener {
    cfg_io! {
        pub fn accept(&self) -> u32 { self.fd }
    }
}
"""
    assert kinds_and_lines(text) == {
        "Listener": ("struct", (3, 6)),
        "bind": ("function", (9, 9)),
        "Listener.accept": ("method", (15, 15)),
    }
    entities = parse_code("src/net.rs", text).entities
    assert entities[1].doc == "Listens for connections."
    assert entities[2].calls == ("open",)


@pytest.mark.parametrize(
    "text",
    [
        "bitflags! { struct Flags: u32 { const A = 1; } }",
        "forward_to! { (a, b) => c }",
        "numbers![1, 2];",
        "broken! { fn half( }",
        "fn run() { json! { fn inner() {} } }",
    ],
)
def test_a_macro_with_another_syntax_stays_a_macro(text: str) -> None:
    found = kinds_and_lines(f"{text}\nfn after() {{}}\n")
    assert {"Flags", "half", "inner"}.isdisjoint(found)
    assert found["after"] == ("function", (2, 2))


def test_a_macro_that_does_not_parse_leaves_the_others() -> None:
    found = kinds_and_lines("odd! { fn half( }\ncfg_net! {\n    fn whole() {}\n}\n")
    assert found == {"whole": ("function", (3, 3))}


def test_macros_without_end_are_read_to_a_fixed_depth() -> None:
    found = kinds_and_lines("cfg! { " * 50 + "fn deep() {}" + " }" * 50 + "\nfn after() {}\n")
    assert found == {"after": ("function", (2, 2))}
