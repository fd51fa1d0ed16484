"""Which files and symbols a question names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.hydration.mentions import SymbolMention as Symbol
from sennit.hydration.mentions import (
    file_mentions,
    matches_qualifier,
    resolve_path,
    spelling_variants,
    symbol_mentions,
)

KNOWN = ["/p/src/auth.go", "/p/pkg/deep/auth.go", "/p/my file.py", "/p/src/app/[id].tsx", "/p/Makefile"]


def named(query: str) -> list[tuple[str, tuple[int, int] | None]]:
    return [(one.path, one.lines) for one in file_mentions(query)]


@pytest.mark.parametrize(
    ("query", "path", "lines"),
    [
        ("Fix the bug in auth.go", "auth.go", None),
        ("fix auth.go.", "auth.go", None),
        ("is auth.go's login wrong?", "auth.go", None),
        ("(see auth.go)", "auth.go", None),
        ("see `src/auth.go`", "src/auth.go", None),
        ('see "my file.py" please', "my file.py", None),
        ("see 'auth.go'", "auth.go", None),
        ("see ./src/auth.go", "./src/auth.go", None),
        (r"see src\auth.go", "src/auth.go", None),
        (r"see C:\code\src\auth.go:12", "/code/src/auth.go", (12, 12)),
        ("auth.go:12", "auth.go", (12, 12)),
        ("auth.go:12:7: denied", "auth.go", (12, 12)),
        ("auth.go:12-20", "auth.go", (12, 20)),
        ("`auth.go:12`", "auth.go", (12, 12)),
        ("auth.go#L10", "auth.go", (10, 10)),
        (
            "https://example.org/blob/main/src/auth.go#L10-L20",
            "https://example.org/blob/main/src/auth.go",
            (10, 20),
        ),
        ("auth.go line 12", "auth.go", (12, 12)),
        ("in `auth.go`, lines 12 to 20", "auth.go", (12, 20)),
        ("auth.ts(12,5): error", "auth.ts", (12, 12)),
        ("look at Makefile", "Makefile", None),
    ],
)
def test_a_file_is_found_however_it_is_written(query: str, path: str, lines: tuple[int, int] | None) -> None:
    assert (path, lines) in named(query)


@pytest.mark.parametrize("query", ["fix the login", "what is main?", "e g o", "", "...", "a -- b"])
def test_plain_words_are_no_files(query: str) -> None:
    assert named(query) == []


@given(st.text())
def test_any_text_can_be_parsed(query: str) -> None:
    for mention in file_mentions(query):
        assert 0 <= mention.at <= len(query)
        resolve_path(mention.path, KNOWN)
    symbol_mentions(query)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/p/src/auth.go", ["/p/src/auth.go"]),
        ("src/auth.go", ["/p/src/auth.go"]),
        ("./src/auth.go", ["/p/src/auth.go"]),
        ("/elsewhere/src/auth.go", ["/p/src/auth.go"]),
        ("auth.go", ["/p/src/auth.go", "/p/pkg/deep/auth.go"]),
        ("other/auth.go", ["/p/src/auth.go", "/p/pkg/deep/auth.go"]),
        ("deep/auth.go", ["/p/pkg/deep/auth.go"]),
        ("uth.go", []),
        ("", []),
    ],
)
def test_a_path_means_the_files_with_the_longest_shared_suffix(path: str, found: list[str]) -> None:
    assert resolve_path(path, KNOWN) == found


def symbols(query: str, *, type_only: bool = False) -> list[str]:
    return [".".join(one.parts) for one in symbol_mentions(query) if one.type_only is type_only]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("where is `login` used", "login"),
        ("where is login() used", "login"),
        ("where is check_password used", "check_password"),
        ("where is checkPassword used", "checkPassword"),
        ("where is HTTPServer used", "HTTPServer"),
        ("where is Session.login used", "Session.login"),
        ("where is Session::login used", "Session.login"),
        ("where is session->login used", "session.login"),
        ("login", "login"),
        ("what is _private?", "_private"),
    ],
)
def test_text_that_is_marked_as_code_or_looks_like_code_is_a_symbol(query: str, name: str) -> None:
    assert name in symbols(query)


@pytest.mark.parametrize("query", ["where is the login used", "Login fails. Session too.", "fix it: Login"])
def test_common_words_are_no_symbols(query: str) -> None:
    assert symbols(query) == []
    assert symbols(query, type_only=True) == []


def test_a_capitalised_word_inside_a_sentence_may_name_a_type() -> None:
    assert symbols("The Session ends. Token too", type_only=True) == ["Session"]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("read_file", "readFile"),
        ("read_file", "ReadFile"),
        ("readFile", "read_file"),
        ("ReadFile", "read_file"),
        ("parse_url", "ParseURL"),
        ("parseURL", "parse_url"),
        ("maxAttempts", "MAX_ATTEMPTS"),
    ],
)
def test_a_name_has_variants_in_other_naming_styles(name: str, other: str) -> None:
    found = spelling_variants(name)
    assert found[0] == name
    assert other in found


@pytest.mark.parametrize(
    ("mention", "qualified", "path", "fits"),
    [
        ("login", "Session.login", "a/b.py", True),
        ("Session.login", "Session.login", "a/b.py", True),
        ("session.login", "Session.login", "a/b.py", True),
        ("b.Session.login", "Session.login", "a/b.py", True),
        ("a.b.Session.login", "Session.login", "a/b.py", True),
        ("a.login", "login", "a/b.go", True),
        ("b.login", "login", "a/b.py", True),
        ("self.login", "Session.login", "a/b.py", True),
        ("Other.login", "Session.login", "a/b.py", False),
        ("b.login", "Session.login", "a/b.py", False),
        ("c.login", "login", "a/b.py", False),
        ("os.path.join", "join", "a/b.py", False),
    ],
)
def test_the_qualifier_of_a_name_must_fit_the_entity(
    mention: str, qualified: str, path: str, fits: bool
) -> None:
    assert matches_qualifier(Symbol(tuple(mention.split(".")), 0), qualified, path) is fits
