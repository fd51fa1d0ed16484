"""Plans under a budget: the invariants of the specification, and the single rules."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from sennit.hydration import Anchor, Budget, Candidate, CodeUnit, HydrationPlan, Tokenizer, make_plan
from sennit.hydration.planner import SEAM_TOKENS
from sennit.hydration.prompt_blocks import render_unit
from sennit.hydration.tokenizer import estimate_tokens, load_tokenizer

from .conftest import unit

COUNT = Tokenizer("estimate", estimate_tokens)
PREVIOUS = ("hydrated_previous_turn", 80)

texts = st.text(max_size=400)
anchored = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([("file", 100), ("symbol", 90), PREVIOUS]), texts),
    unique_by=lambda one: one[0],
    max_size=12,
).map(
    lambda listed: sorted(
        (
            Anchor(unit(f"a.py::a{n}", text, (n + 1, n + 1), signature=text[:20]), p, r)
            for n, (r, p), text in listed
        ),
        key=lambda anchor: -anchor.priority,
    )
)
near = st.lists(
    st.builds(
        lambda n, score, text: Candidate(
            unit(f"a.py::a{n}", text, (n + 1, n + 1), signature=text[:20]), score
        ),
        st.integers(0, 40),
        st.floats(0.7, 1.0).map(lambda score: round(score, 2)),
        texts,
    ),
    max_size=12,
).map(lambda listed: sorted(listed, key=lambda one: -one.score))
budgets = st.builds(
    Budget, st.integers(1, 600), st.integers(1, 15), st.booleans(), st.none() | st.integers(1, 600)
)


def plan(anchors: list[Anchor], candidates: list[Candidate], budget: Budget) -> HydrationPlan:
    return make_plan("the text of a question", anchors, candidates, budget, COUNT)


@given(anchored, near, budgets)
def test_the_budget_is_never_exceeded(
    anchors: list[Anchor], candidates: list[Candidate], budget: Budget
) -> None:
    made = plan(anchors, candidates, budget)
    assert made.tokens <= budget.max_tokens
    semantic = [entry for entry in made.entries if entry.reason.startswith("semantic:")]
    assert len(semantic) <= budget.max_entities
    assert sum(entry.tokens for entry in semantic) <= (budget.semantic_tokens or budget.max_tokens)
    assert estimate_tokens(made.prompt) <= budget.max_tokens
    assert [entry.position for entry in made.entries] == list(range(1, len(made.entries) + 1))


@given(anchored, near, budgets)
def test_no_candidate_comes_before_an_anchor(
    anchors: list[Anchor], candidates: list[Candidate], budget: Budget
) -> None:
    made = plan(anchors, candidates, budget)
    kinds = [entry.reason.startswith("anchor:") for entry in made.entries]
    assert kinds == sorted(kinds, reverse=True)
    for is_anchor in (True, False):
        priorities = [
            entry.priority for entry in made.entries if entry.reason.startswith("anchor:") == is_anchor
        ]
        assert priorities == sorted(priorities, reverse=True)


@given(anchored, near, budgets)
def test_the_priority_of_a_candidate_is_its_score_in_percent(
    anchors: list[Anchor], candidates: list[Candidate], budget: Budget
) -> None:
    for entry in plan(anchors, candidates, budget).entries:
        kind, _, rest = entry.reason.partition(":")
        if kind == "semantic":
            assert entry.priority == int(float(rest) * 100)


@given(anchored, near, budgets)
def test_an_anchor_is_dropped_only_for_the_budget_and_with_a_warning(
    anchors: list[Anchor], candidates: list[Candidate], budget: Budget
) -> None:
    made = plan(anchors, candidates, budget)
    warned = {notice.key for notice in made.warnings}
    # What lower priorities and candidates take is free for an anchor.
    for anchor in anchors:
        if anchor.unit.key in made.keys:
            continue
        taken = sum(
            entry.tokens
            for entry in made.entries
            if entry.reason.startswith("anchor:") and entry.priority >= anchor.priority
        )
        assert taken + estimate_tokens(render_unit(anchor.unit)) + SEAM_TOKENS > budget.max_tokens
        assert anchor.unit.key in warned
        assert anchor.unit.key in {one.key for one in made.dropped}


@given(anchored, near, budgets)
def test_every_entity_is_in_the_plan_or_dropped_with_a_reason(
    anchors: list[Anchor], candidates: list[Candidate], budget: Budget
) -> None:
    made = plan(anchors, candidates, budget)
    wanted = {one.unit.key for one in anchors} | {one.unit.key for one in candidates}
    keys = [*made.keys, *(one.key for one in made.dropped)]
    assert sorted(keys) == sorted(wanted)
    assert all(one.reason and one.selection_reason for one in made.dropped)


@given(anchored, near, budgets)
def test_the_same_inputs_give_the_same_bytes(
    anchors: list[Anchor], candidates: list[Candidate], budget: Budget
) -> None:
    made = plan(anchors, candidates, budget)
    assert made.to_json() == plan(list(anchors), list(candidates), budget).to_json()
    assert HydrationPlan.from_dict(json.loads(made.to_json())) == made


def sized(key: str, tokens: int) -> Anchor:
    """An anchor whose block has so many tokens."""
    empty = unit(key, "x")
    return Anchor(unit(key, "x" * (4 * tokens - len(render_unit(empty)) + 1)), 100, "file")


def test_an_anchor_that_does_not_fit_is_dropped_and_the_next_is_tried() -> None:
    made = plan([sized("a::big", 90), sized("a::small", 20)], [], Budget(50, 10))
    assert made.keys == ("a::small",)
    assert [one.key for one in made.dropped] == ["a::big"]
    assert made.dropped[0].reason == f"it has {90 + SEAM_TOKENS} tokens, and 50 of 50 are left"


def test_the_first_candidate_that_does_not_fit_ends_the_expansion() -> None:
    candidates = [
        Candidate(sized("a::first", 20).unit, 0.9),
        Candidate(sized("a::big", 90).unit, 0.8),
        Candidate(sized("a::small", 10).unit, 0.75),
    ]
    made = plan([], candidates, Budget(50, 10))
    assert made.keys == ("a::first",)
    assert [(one.key, one.reason) for one in made.dropped] == [
        ("a::big", f"it has {90 + SEAM_TOKENS} tokens, and {30 - SEAM_TOKENS} are left for candidates"),
        ("a::small", "after the first candidate that did not fit"),
    ]


def test_candidates_keep_the_order_of_the_search() -> None:
    candidates = [
        Candidate(unit(f"a::{name}"), score) for name, score in [("c", 0.9), ("b", 0.8), ("a", 0.8)]
    ]
    made = plan([], candidates, Budget(1000, 10))
    assert made.keys == ("a::c", "a::b", "a::a")
    assert [entry.reason for entry in made.entries] == ["semantic:0.90", "semantic:0.80", "semantic:0.80"]
    assert [entry.priority for entry in made.entries] == [90, 80, 80]


def function(name: str, lines: int, doc: str = "What it does.") -> CodeUnit:
    """A function of so many lines."""
    body = "".join(f"    step_{n} = compute({n})\n" for n in range(lines))
    text = f'def {name}(one):\n    """{doc}"""\n{body}'.rstrip("\n")
    return unit(f"a.py::{name}", text, signature=f"def {name}(one):", doc=doc)


def test_anchors_are_limited_by_tokens_and_not_by_entities() -> None:
    anchors = [Anchor(function(f"f{n}", 1), 100, "explicit_file_mention") for n in range(8)]
    made = plan(anchors, [Candidate(unit("b::x"), 0.9)], Budget(1000, 1))
    assert len(made.entries) == 9


def test_anchors_that_do_not_all_fit_are_outlined_and_the_most_relevant_are_whole() -> None:
    anchors = [Anchor(function(f"f{n}", 30), 100, "explicit_file_mention") for n in range(6)]
    made = plan(anchors, [], Budget(400, 10))
    assert [entry.qualified for entry in made.entries] == [f"f{n}" for n in range(6)]
    assert [entry.partial for entry in made.entries] == [False, True, True, True, True, True]
    assert made.entries[1].text == 'def f1(one):\n    """What it does."""\n… (30 lines left out)'
    assert [notice.code for notice in made.warnings] == ["anchors_shortened"]


def test_a_long_candidate_is_outlined_and_leaves_room_for_others() -> None:
    candidates = [Candidate(function("long_way", 60), 0.9), Candidate(function("short", 2), 0.8)]
    made = plan([], candidates, Budget(400, 10))
    assert [(entry.qualified, entry.partial) for entry in made.entries] == [
        ("long_way", True),
        ("short", False),
    ]


def test_candidates_have_a_budget_of_their_own() -> None:
    candidates = [Candidate(function(f"f{n}", 3), 0.9) for n in range(9)]
    made = plan([], candidates, Budget(10_000, 20, semantic_tokens=200))
    assert 0 < made.tokens <= 200
    assert len(plan([], candidates, Budget(10_000, 4)).entries) == 4


def test_a_dropped_anchor_does_not_return_as_a_candidate() -> None:
    big = sized("a::big", 90)
    made = plan([big], [Candidate(big.unit, 0.99), Candidate(unit("a::b"), 0.8)], Budget(50, 10))
    assert made.keys == ("a::b",)


def test_a_further_warning_says_that_no_anchor_fits() -> None:
    made = plan([sized("a::a", 90), sized("a::b", 91)], [], Budget(50, 10))
    assert [notice.code for notice in made.warnings] == ["anchor_dropped", "anchor_dropped", "no_anchor_fits"]


def test_an_entity_contained_in_an_entry_is_dropped_and_does_not_end_the_expansion() -> None:
    outer = unit("a::C", "class C\n  def f\n  def g", (1, 3), kind="class")
    inner = unit("a::C.f", "  def f", (2, 2))
    made = plan([Anchor(outer, 100, "file"), Anchor(inner, 100, "file")], [], Budget(1000, 10))
    assert made.keys == ("a::C",)
    assert made.dropped[0].reason == "it is contained in a::C, which is in the plan"
    assert made.warnings == ()
    other = [Candidate(inner, 0.9), Candidate(unit("b::x"), 0.8)]
    assert plan([Anchor(outer, 100, "file")], other, Budget(1000, 10)).keys == ("a::C", "b::x")


def test_a_preview_is_the_first_two_hundred_characters() -> None:
    (entry,) = plan([Anchor(unit("a::x", "y" * 500), 100, "file")], [], Budget(1000, 1)).entries
    assert entry.preview == "y" * 200


def test_tokens_are_counted_by_a_real_tokenizer() -> None:
    assert load_tokenizer().name == "o200k_base"
    assert load_tokenizer().count("hello world") == 2
    assert load_tokenizer().count("") == 0


def test_an_estimate_is_a_token_for_every_four_characters() -> None:
    assert [estimate_tokens("x" * size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]
