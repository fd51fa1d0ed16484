"""Anchors: the entities that a query and its episode name, in order, each once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.hydration import AnchorOptions, CodeUnit, find_anchors
from sennit.hydration.anchors import strip_extensions

from .conftest import ListCatalogue, unit

UNITS = [
    unit("/p/auth.py#1", lines=(1, 3), kind="passage", name=""),
    unit("/p/auth.py::Session", lines=(5, 20), kind="class"),
    unit("/p/auth.py::Session.login", lines=(7, 12), outer="/p/auth.py::Session", calls=("check", "log")),
    unit("/p/auth.py::Session.logout", lines=(14, 20), outer="/p/auth.py::Session"),
    unit("/p/auth.py::check", lines=(22, 30), calls=("digest",)),
    unit("/p/lib/text.py::check", lines=(1, 5)),
    unit("/p/lib/text.py::log", lines=(7, 9)),
    unit("/p/lib/auth.py::digest", lines=(1, 4)),
    unit("/p/web/main.ts::handleLogin", lines=(1, 9), calls=("login",)),
    unit("/p/web/main.ts::login", lines=(11, 12)),
]
ALL = ListCatalogue(UNITS)


def found(
    query: str,
    previous: tuple[str, ...] = (),
    options: AnchorOptions = AnchorOptions(),  # noqa: B008
) -> list[tuple[str, str, int]]:
    return [
        (one.unit.key.removeprefix("/p/"), one.reason, one.priority)
        for one in find_anchors(query, ALL, previous, options)
    ]


def test_a_file_mention_anchors_all_its_entities_in_file_order() -> None:
    assert found("what is in web/main.ts ?") == [
        ("web/main.ts::handleLogin", "explicit_file_mention", 100),
        ("web/main.ts::login", "explicit_file_mention", 100),
    ]


def test_the_most_relevant_anchors_of_a_priority_come_first() -> None:
    scores = {"/p/auth.py::check": 2.0, "/p/auth.py::Session.logout": 1.0, "/p/lib/text.py::log": 9.0}
    anchors = find_anchors("fix `log` in /p/auth.py", ALL, relevance=lambda units: scores)
    assert [one.unit.key.removeprefix("/p/") for one in anchors][:6] == [
        "auth.py::check",
        "auth.py::Session.logout",
        "auth.py#1",
        "auth.py::Session",
        "auth.py::Session.login",
        "lib/text.py::log",
    ]


def test_a_name_of_several_files_anchors_all_of_them_shortest_path_first() -> None:
    keys = [key for key, _, _ in found("fix auth.py")]
    assert keys == [
        "auth.py#1",
        "auth.py::Session",
        "auth.py::Session.login",
        "auth.py::Session.logout",
        "auth.py::check",
        "lib/auth.py::digest",
    ]


def test_a_line_anchors_the_innermost_entity_before_the_rest_of_the_file() -> None:
    anchors = found("fix /p/auth.py:8")
    assert anchors[0] == ("auth.py::Session.login", "explicit_file_mention", 100)
    rest = [key for key, reason, priority in anchors if (reason, priority) == ("same_file", 70)]
    assert rest == ["auth.py#1", "auth.py::Session", "auth.py::Session.logout", "auth.py::check"]


def test_a_line_outside_every_entity_anchors_the_whole_file() -> None:
    assert {priority for _, _, priority in found("fix web/main.ts:99")} == {100}


def test_a_line_range_anchors_every_entity_in_it() -> None:
    anchors = found("fix /p/auth.py#L10-L15")
    assert [key for key, _, priority in anchors if priority == 100] == [
        "auth.py::Session",
        "auth.py::Session.login",
        "auth.py::Session.logout",
    ]


def test_a_symbol_anchors_its_type_callees_and_callers_at_a_lower_priority() -> None:
    assert found("why does `Session.login` fail") == [
        ("auth.py::Session.login", "explicit_symbol_mention", 90),
        ("auth.py::Session", "enclosing_type", 60),
        # Of two that are called check, the one in the same file.
        ("auth.py::check", "callee", 60),
        ("lib/text.py::log", "callee", 60),
        ("web/main.ts::handleLogin", "caller", 60),
    ]


def test_callers_and_callees_are_at_most_five_each() -> None:
    many = [unit(f"/p/m.py::f{n}", calls=("hub",)) for n in range(20)]
    hub = unit("/p/m.py::hub", calls=tuple(f"f{n}" for n in range(20)))
    anchors = find_anchors("what does hub() do", ListCatalogue([hub, *many]))
    reasons = [anchor.reason for anchor in anchors]
    assert reasons.count("callee") == 5
    # Those that are both are callees; the highest priority stays, of equal ones the first.
    assert reasons.count("caller") <= 5


def test_a_name_of_hundreds_of_entities_anchors_them_all_and_expands_few() -> None:
    many = [unit(f"/p/m{n:03}.py::get", calls=(f"helper{n}",)) for n in range(100)]
    helpers = [unit(f"/p/h.py::helper{n}") for n in range(100)]
    reasons = [one.reason for one in find_anchors("what does `get` do", ListCatalogue([*many, *helpers]))]
    assert reasons.count("explicit_symbol_mention") == 100
    assert reasons.count("callee") == 20


def test_a_repeated_mention_does_not_hide_a_single_one() -> None:
    assert "auth.py::check" in [
        key for key, _, _ in found("`login` " * 1000 + "lib/none.py " * 1000 + "`check`")
    ]
    assert found("none.py " * 1000 + "lib/text.py")[0][0] == "lib/text.py::check"


@pytest.mark.parametrize("query", ["fix handle_login()", "fix HandleLogin", "fix `handleLogin`"])
def test_a_symbol_is_found_in_any_naming_style(query: str) -> None:
    assert found(query)[0] == ("web/main.ts::handleLogin", "explicit_symbol_mention", 90)


def test_an_exact_name_excludes_other_naming_styles() -> None:
    both = ListCatalogue([unit("a.py::read_file"), unit("a.ts::readFile")])
    assert [one.unit.key for one in find_anchors("fix read_file", both)] == ["a.py::read_file"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("log it", ["lib/text.py::log"]),
        ("fix login", ["auth.py::Session.login", "web/main.ts::login"]),
        ("handle login better", ["web/main.ts::handleLogin", "auth.py::Session.login", "web/main.ts::login"]),
        ("look at main", ["web/main.ts::handleLogin", "web/main.ts::login"]),
        ("what is in lib", ["lib/text.py::check", "lib/text.py::log", "lib/auth.py::digest"]),
    ],
)
def test_a_plain_word_that_is_a_name_is_an_inferred_mention(query: str, expected: list[str]) -> None:
    anchors = found(query)
    assert sorted(key for key, _, _ in anchors) == sorted(expected)
    assert {(reason, priority) for _, reason, priority in anchors} == {("inferred_mention", 70)}


def test_common_words_anchor_nothing() -> None:
    assert found("why does it fail when we check this") == []
    many = ListCatalogue([unit(f"/p/m{n}.py::run", "run") for n in range(4)])
    assert find_anchors("how does it run", many) == []
    frequent = [unit(f"/p/m{n}.py::f{n}", "the request of a user") for n in range(200)]
    assert find_anchors("what is a request", ListCatalogue([*frequent, unit("/p/r.py::request")])) == []


def test_at_most_three_entities_of_a_file_are_inferred_the_most_relevant_ones() -> None:
    scores = {"/p/auth.py::check": 2.0, "/p/auth.py#1": 1.0}
    one_file = ListCatalogue([one for one in UNITS if one.path == "/p/auth.py"])
    anchors = find_anchors("Fix auth bug", one_file, relevance=lambda units: scores)
    assert [one.unit.key.removeprefix("/p/") for one in anchors] == [
        "auth.py::check",
        "auth.py#1",
        "auth.py::Session",
    ]


def test_the_extension_of_a_named_file_is_not_searched_for() -> None:
    assert (
        strip_extensions("fix web/main.ts:11 and Session.login", ALL)
        == "fix web/main   :11 and Session.login"
    )


def test_a_capitalised_word_inside_a_sentence_means_only_a_type() -> None:
    assert found("why does a Session end")[0][:2] == ("auth.py::Session", "explicit_symbol_mention")
    assert "explicit_symbol_mention" not in [reason for _, reason, _ in found("why does a Login end")]


def test_a_stack_trace_anchors_the_functions_of_its_frames() -> None:
    trace = 'File "/srv/lib/text.py", line 2, in check\n  File "/srv/web/gone.py", line 3, in digest\n'
    anchors = found(trace)
    assert anchors[0] == ("lib/text.py::check", "explicit_file_mention", 100)
    assert ("lib/auth.py::digest", "explicit_symbol_mention", 90) in anchors


def test_a_stack_trace_with_moved_lines_is_resolved_by_name() -> None:
    anchors = found('File "lib/text.py", line 2, in log')
    assert [key for key, _, priority in anchors if priority == 100] == [
        "lib/text.py::check",
        "lib/text.py::log",
    ]


def test_earlier_turns_come_after_named_entities_and_before_related_ones() -> None:
    anchors = found(
        "why does `login` fail", ("/p/lib/auth.py::digest", "/p/gone.py::x", "/p/auth.py::Session")
    )
    assert [(key, priority) for key, _, priority in anchors][:4] == [
        ("auth.py::Session.login", 90),
        ("web/main.ts::login", 90),
        ("lib/auth.py::digest", 80),
        ("auth.py::Session", 80),
    ]


def test_each_kind_of_anchor_can_be_switched_off() -> None:
    query, previous = "why does `login` in lib/text.py fail", ("/p/lib/auth.py::digest",)
    assert {priority for _, _, priority in found(query, previous)} == {100, 90, 80, 60}
    assert 100 not in {p for _, _, p in found(query, previous, AnchorOptions(files=False))}
    assert {p for _, _, p in found(query, previous, AnchorOptions(symbols=False))} == {100, 80}
    assert 80 not in {p for _, _, p in found(query, previous, AnchorOptions(previous=False))}


WORDS = st.sampled_from(
    ["fix", "auth.py", "auth.py:8", "`login`", "Session", "handle_login", "lib/text.py", "check()", "the"]
)


@given(st.lists(WORDS), st.lists(st.sampled_from([one.key for one in UNITS])))
def test_every_entity_occurs_once_and_priorities_descend(words: list[str], previous: list[str]) -> None:
    anchors = find_anchors(" ".join(words), ALL, previous)
    keys = [anchor.unit.key for anchor in anchors]
    priorities = [anchor.priority for anchor in anchors]
    assert len(set(keys)) == len(keys)
    assert priorities == sorted(priorities, reverse=True)
    assert set(previous) <= set(keys)
    assert anchors == find_anchors(" ".join(words), ListCatalogue(list(reversed_files(UNITS))), previous)


def reversed_files(units: list[CodeUnit]) -> list[CodeUnit]:
    """The same units with the files in another order."""
    paths = sorted({one.path for one in units}, reverse=True)
    return [one for path in paths for one in units if one.path == path]
