"""The recipe `memory`: the numbers of the specification, decay, diversity, and the worked example."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Fact, Record
from sennit.context.briefing import HEADING, briefing, memory_from_record
from sennit.errors import InvalidInput, SettingsError
from sennit.facts import is_fact
from sennit.periods import read_time
from sennit.ranking.answer_form import AnswerForm
from sennit.ranking.decay import Decay
from sennit.ranking.diversity import MMR, jaccard, select
from sennit.ranking.evidence import Evidence
from sennit.ranking.fusion import RRF, fuse
from sennit.ranking.latest import Latest
from sennit.ranking.stages import CandidateList, Ranking, StageContext
from sennit.recipes import BUILTIN_RECIPES, CandidateCount, SourceConfig
from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
RECIPE = BUILTIN_RECIPES["memory"]


def ranked(
    records: Sequence[Record], scores: Sequence[float], lists: Sequence[CandidateList] = (), **more: Any
) -> tuple[Ranking, StageContext]:
    return Ranking(np.arange(1, len(records) + 1), np.array(scores, np.float64), lists), StageContext(
        query="",
        limit=10,
        now=NOW,
        records=lambda keys: {key: records[key - 1] for key in keys},
        vectors=lambda keys: np.eye(len(records) + 1, dtype=np.float32)[keys],
        **more,
    )


def turn(text: str, days: float = 0, kind: str = "", **metadata: Any) -> Record:
    return Record(
        id=text[:40] or "empty", text=text, kind=kind, timestamp=NOW - timedelta(days=days), metadata=metadata
    )


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


# The numbers


def test_default_numbers_match_the_specification() -> None:
    assert {use.name: use.candidates for use in RECIPE.sources} == {
        "keyword": CandidateCount(times=4),
        "vector": CandidateCount(times=2),
        "graph": CandidateCount(times=1),
        "recent": CandidateCount(times=1),
    }
    assert RECIPE.fusion == RRF(k=60, first_rank=1)
    assert RECIPE.stages[-2:] == (
        Decay(30.0, 0.3, ("person", "place", "relationship")),
        MMR(0.7, 20, "jaccard"),
    )
    assert RECIPE.limit == 5


def test_ranks_1_2_2_score_0_0486() -> None:
    lists = [
        ("keyword", np.array([7, 1]), np.array([2.0, 1.0])),
        ("vector", np.array([2, 7]), np.array([2.0, 1.0])),
        ("graph", np.array([3, 7]), np.array([2.0, 1.0])),
    ]
    fused = fuse(RECIPE.fusion, lists)
    score = float(fused.scores[fused.keys == 7][0])
    assert score == pytest.approx(1 / 61 + 1 / 62 + 1 / 62)
    assert int(score * 10_000) == 486


@pytest.mark.parametrize(("days", "factor"), [(0, 1.0), (30, 0.5), (60, 0.25), (120, 0.0625)])
def test_score_halves_in_thirty_days(days: int, factor: float) -> None:
    assert Decay().factor("", days_ago(days), NOW) == pytest.approx(factor)


@pytest.mark.parametrize("kind", ["person", "place", "relationship"])
@pytest.mark.parametrize(("days", "factor"), [(0, 1.0), (30, 0.5), (60, 0.3), (120, 0.3)])
def test_evergreen_kinds_never_fall_below_the_floor(days: int, factor: float, kind: str) -> None:
    assert Decay().factor(kind, days_ago(days), NOW) == pytest.approx(factor)


def test_future_and_missing_timestamps_have_age_0() -> None:
    assert Decay().factor("", days_ago(-10), NOW) == 1.0
    assert Decay().factor("", None, NOW) == 1.0


def test_fact_does_not_decay() -> None:
    fact = Fact(
        subject="A", relation="knows", object="B", timestamp=NOW - timedelta(days=900), kind="relationship"
    )
    assert Decay().apply(*ranked([fact.to_record()], [0.5])).scores.tolist() == [0.5]


@given(st.lists(st.tuples(st.floats(0.001, 10), st.floats(-50, 3000)), min_size=1, max_size=12))
def test_decay_reorders_by_the_new_scores(drawn: list[tuple[float, float]]) -> None:
    records = [turn(f"turn {n}", days) for n, (_, days) in enumerate(drawn)]
    staged = Decay().apply(*ranked(records, [score for score, _ in drawn]))
    expected = {
        n + 1: s * (1 - 0.1 * (1 - Decay().factor("", records[n].timestamp, NOW)))
        for n, (s, _) in enumerate(drawn)
    }
    assert [pytest.approx(expected[key]) for key in staged.keys.tolist()] == staged.scores.tolist()
    assert staged.scores.tolist() == sorted(staged.scores.tolist(), reverse=True)


# Diversity


def test_mmr_prefers_a_result_unlike_those_chosen() -> None:
    texts = ["we sail to the island", "we sail to the island today", "the budget is done"]
    staged = MMR(relevance_weight=0.7).apply(*ranked([turn(text) for text in texts], [1.0, 0.95, 0.8]))
    assert staged.keys.tolist() == [1, 3, 2]
    # 0.7 · 0.8 - 0.3 · 1/8 against 0.7 · 0.95 - 0.3 · 5/6
    assert "0.522" in staged.reasons[3]


def test_mmr_penalises_only_similarity_to_chosen_results() -> None:
    similarity = np.array([[0, 0, 0], [0, 0, 1.0], [0, 1.0, 0]])
    chosen, margins = select(np.array([1.0, 0.9, 0.8]), similarity, np.arange(3), 0.5)
    assert chosen == [0, 1, 2]
    assert margins == pytest.approx([0.5, 0.45, 0.5 * 0.8 - 0.5])


def test_mmr_keeps_the_order_beyond_the_best_20() -> None:
    records = [turn(f"same words number {n}") for n in range(25)]
    staged = MMR().apply(*ranked(records, [1 - n / 100 for n in range(25)]))
    assert staged.keys.tolist()[20:] == [21, 22, 23, 24, 25]
    assert sorted(staged.keys.tolist()) == list(range(1, 26))


def test_texts_with_common_words_are_similar() -> None:
    similarity = jaccard(["Goa in March", "march in goa!", "", "ferry"])
    assert similarity[0, 1] == 1.0
    assert similarity[0, 2] == similarity[2, 2] == similarity[0, 3] == 0.0


@given(st.lists(st.text("aB_é ß1.\x1c-", max_size=12), max_size=6))
def test_similarity_is_the_same_for_ascii_and_unicode(texts: list[str]) -> None:
    words = [set(re.findall(r"\w+", text.casefold())) for text in texts]
    similarity = jaccard(texts)
    for a, left in enumerate(words):
        for b, right in enumerate(words):
            assert similarity[a, b] == (
                len(left & right) / len(left | right) if a != b and left & right else 0.0
            )


def test_cosine_is_selectable() -> None:
    staged = MMR(similarity="cosine").apply(*ranked([turn("a"), turn("b")], [1.0, 0.5]))
    assert staged.keys.tolist() == [1, 2]
    with pytest.raises(ValueError, match="jaccard or cosine"):
        MMR(similarity="levenshtein")  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.floats(0, 1), st.text("abc ", max_size=8)), max_size=15), st.floats(0, 1))
def test_mmr_keeps_all_results_and_starts_with_the_best(
    drawn: list[tuple[float, str]], weight: float
) -> None:
    drawn = sorted(drawn, key=lambda one: -one[0])
    records = [Record(id=f"{n:02}", text=text) for n, (_, text) in enumerate(drawn)]
    staged = MMR(relevance_weight=weight).apply(*ranked(records, [score for score, _ in drawn]))
    assert sorted(staged.keys.tolist()) == list(range(1, len(drawn) + 1))
    if drawn and weight > 0:
        assert staged.scores[0] == drawn[0][0]


# The worked example


class FixedSource:
    """A source that answers these texts in this order."""

    inline = True

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def search(self, request: SourceRequest) -> ScoredKeys:
        keys = [request.context.snapshot.find_key(text) for text in self.texts]
        return ScoredKeys(np.array(keys, np.int64), np.linspace(1, 0.5, len(keys)))

    def scores(self, request: SourceRequest, keys: Any) -> Any:
        return np.full(len(keys), np.nan)


GOA = "We should plan that Goa trip, Priya"
TOLD = "I told Priya we can do March for vacation"
DATES = "Priya said she needs to check dates"
FLIGHTS = "Looking at flights to Goa for next month"


@pytest.fixture
def example() -> sennit.Database:
    db = sennit.open(
        ":memory:",
        sources={"keyword": FixedSource(GOA, TOLD, DATES), "vector": FixedSource(TOLD, GOA, FLIGHTS)},
    )
    ages = {GOA: 5.0, TOLD: 3.0, DATES: 3.0, FLIGHTS: 45.0}
    now = datetime.now(UTC)
    db.add(
        [
            Record(id=text, text=text, timestamp=now - timedelta(days=days), metadata={"speaker": "Rajesh"})
            for text, days in ages.items()
        ]
    )
    db.add_facts(
        [
            Fact(
                subject="Rajesh",
                relation="planning",
                object="Priya",
                text="planning vacation to Goa in March",
            )
        ]
    )
    return db


def test_worked_example_fuses_and_decays_as_specified(example: sennit.Database) -> None:
    result = example.search("What did I tell Priya about vacation?", recipe="memory", recency=1, explain=True)
    hits = {hit.text: hit for hit in result}
    told = hits[TOLD].explanation
    assert told is not None
    assert told.fused == pytest.approx(1 / 62 + 1 / 61)
    assert round(told.fused, 4) == 0.0325
    assert round(hits[TOLD].score, 4) == 0.0303
    flights = hits[FLIGHTS].explanation
    assert flights is not None
    assert round(flights.fused, 4) == 0.0159
    assert round(hits[FLIGHTS].score, 4) == 0.0056
    fact = hits["Rajesh -> Priya: planning vacation to Goa in March"]
    assert fact.score == pytest.approx(1 / 61)
    assert fact.sources == ("graph",)


def test_worked_example_gives_the_specified_prompt_block(example: sennit.Database) -> None:
    result = example.search("What did I tell Priya about vacation?", recipe="memory")
    lines = briefing([memory_from_record(hit.record) for hit in result]).splitlines()
    assert lines[0] == "<memory>"
    assert lines[2] == HEADING
    assert set(lines[3:-1]) == {
        *(f'- Rajesh said: "{text}"' for text in (GOA, TOLD, DATES, FLIGHTS)),
        "- Rajesh -> Priya: planning vacation to Goa in March",
    }
    assert lines[-1] == "</memory>"


# Turns and facts


def test_a_fact_is_found_by_the_graph_and_not_by_its_words() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="s", text="Goa is warm in March", metadata={"speaker": "Priya"})])
        db.add_facts([Fact(subject="Rajesh", relation="visits", object="Goa")])
        found = {
            hit.record.kind or "turn": hit.sources for hit in db.search("When is Goa warm?", recipe="memory")
        }
    assert found == {"turn": ("keyword", "vector"), "fact": ("graph",)}


def test_a_superseded_fact_leaves_the_results_and_stays_in_history() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Rajesh", relation="lives in", object="Pune")])
        db.add_facts([Fact(subject="Rajesh", relation="lives in", object="Goa")], same_relation=True)
        assert [hit.text for hit in db.search("Where is Rajesh?", recipe="memory")] == [
            "Rajesh -> Goa: lives in"
        ]
        assert {record.text for record in db} == {"Rajesh -> Goa: lives in", "Rajesh -> Pune: lives in"}


def test_look_back_excludes_older_records() -> None:
    now = datetime.now(UTC)
    with sennit.open(":memory:") as db:
        db.add(
            [
                Record(id=f"{h}", text="harbour walk", timestamp=now - timedelta(hours=h))
                for h in (1, 100, 167, 169)
            ]
        )

        def ids(look_back: float | bool) -> set[str]:
            return {hit.id for hit in db.search("harbour walk", recipe="memory", look_back=look_back)}

        assert ids(False) == {"1", "100", "167", "169"}
        assert ids(True) == {"1", "100", "167"}
        assert ids(24) == {"1"}
        for wrong in (0, -1, "week", float("nan")):
            with pytest.raises(InvalidInput, match="look_back"):
                db.search("x", recipe="memory", look_back=wrong)  # type: ignore[arg-type]


def test_operators_in_a_query_are_plain_words() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="a", text="harbour and ferry"), Record(id="b", text="tide")])
        found = {hit.id for hit in db.search('"harbour" AND (ferry* OR -tide) NOT +x:y^2 ~', recipe="memory")}
    assert {"a", "b"} <= found


# Evidence


def conversation(*texts: str) -> list[Record]:
    return [Record(id=f"t{n:02}", text=text, parent="session", position=n) for n, text in enumerate(texts)]


def test_turn_adjacent_to_a_match_is_found() -> None:
    filler = [f"talk about nothing in particular, part {n}" for n in range(30)]
    turns = conversation(*filler, "When did you go to the lighthouse?", "Last Tuesday!", *filler)
    with sennit.open(":memory:") as db:
        db.add([*turns, *[Record(id=f"x{n}", text=f"a lighthouse elsewhere, number {n}") for n in range(12)]])
        found = [
            hit.text for hit in db.search("When did you go to the lighthouse?", recipe="memory", limit=5)
        ]
        assert "Last Tuesday!" in found
        alone = sennit.Recipe(
            name="alone", sources=RECIPE.sources, fusion=RECIPE.fusion, stages=RECIPE.stages[1:]
        )
        assert "Last Tuesday!" not in [
            hit.text for hit in db.search("When did you go to the lighthouse?", recipe=alone, limit=5)
        ]
        why = db.why("When did you go to the lighthouse?", turns[31].id, recipe="memory", limit=5)
        assert why.kept


def test_filtered_neighbour_is_not_returned() -> None:
    turns = conversation(*[f"lighthouse visit number {n}" for n in range(12)], "Last Tuesday!")
    turns = [Record(**{**t.to_dict(), "metadata": {"ok": t.text != "Last Tuesday!"}}) for t in turns]  # type: ignore[arg-type]
    with sennit.open(":memory:") as db:
        db.add(turns)
        found = db.search("lighthouse visit number 11", recipe="memory", filters={"ok": True}, limit=20)
        assert all(hit.metadata["ok"] for hit in found)


def test_evidence_does_not_change_a_short_ranking() -> None:
    records = [turn("a"), turn("b")]
    before = ranked(
        records,
        [0.03, 0.02],
        [CandidateList("keyword", np.arange(9), np.ones(9))],
        list_scores=lambda _, k: np.ones(len(k)),
    )
    assert Evidence().apply(*before).scores.tolist() == [0.03, 0.02]


def test_evidence_is_a_setting() -> None:
    with sennit.open(":memory:", memory__evidence=False) as db:
        assert [step.name for step in db.recipes["memory"].stages] == [
            "facts",
            "window",
            "answer_form",
            "latest",
            "decay",
            "mmr",
        ]


def test_custom_recipe_can_express_memory() -> None:
    table = RECIPE.to_dict()
    assert sennit.recipes.recipe_from_dict("memory", table) == RECIPE
    assert SourceConfig(source="keyword", where='kind = "x"').where == 'kind = "x"'


# Time


def remembered(*entries: tuple[str, float | None]) -> sennit.Database:
    """A database of turns, each with its age in days."""
    db = sennit.open(":memory:")
    db.add(
        [
            Record(id=text, text=text, timestamp=None if days is None else days_ago(days))
            for text, days in entries
        ]
    )
    return db


def first(db: sennit.Database, query: str, **options: Any) -> str:
    return db.search(query, recipe="memory", now=NOW, **options)[0].text


def test_age_decides_between_texts_that_say_the_same() -> None:
    with remembered(("the ferry leaves at nine", 300), ("the ferry leaves at ten", 3)) as db:
        assert first(db, "When does the ferry leave?") == "the ferry leaves at ten"


def test_an_old_answer_stands_before_recent_small_talk() -> None:
    talk = [(f"we talked about lunch number {n}", 0.5) for n in range(12)]
    with remembered(("my passport number is 4711", 250), *talk) as db:
        assert first(db, "What is my passport number?") == "my passport number is 4711"


def test_a_question_for_recent_things_counts_age_in_full() -> None:
    with remembered(("a walk by the harbour, with gulls", 60), ("a harbour dinner", 1)) as db:
        query = "harbour walk lately"
        trace = db.search(query, recipe="memory", now=NOW, explain=True).trace
        assert trace is not None
        assert trace.time["recency"] == 1.0
        assert trace.time["recent"] == "lately"
        assert first(db, query) == "a harbour dinner"
        assert first(db, query, recency=0) == "a walk by the harbour, with gulls"


def test_recency_is_a_setting_a_part_of_the_recipe_and_an_argument() -> None:
    assert RECIPE.with_recency(0.4).stages[-2] == Decay(recency=0.4)
    assert BUILTIN_RECIPES["default"].with_recency(1) == BUILTIN_RECIPES["default"]
    with sennit.open(":memory:", memory__recency=0.25) as db:
        assert db.recipes["memory"].stages[-2] == Decay(recency=0.25)
        with pytest.raises(InvalidInput, match="recency must be a number from 0 to 1, or auto"):
            db.search("x", recipe="memory", recency=2)
    with pytest.raises(SettingsError, match="a number from 0 to 1, or auto"):
        sennit.open(":memory:", memory__recency="often")


@given(st.floats(0, 1), st.floats(0, 4000))
def test_recency_is_the_share_of_the_factor_that_counts(recency: float, days: float) -> None:
    decay = Decay(recency=recency)
    (score,) = decay.apply(*ranked([turn("a", days)], [0.5])).scores.tolist()
    assert score == pytest.approx(0.5 * (1 - recency * (1 - 2 ** (-days / 30))))


def test_a_stated_period_comes_first_and_why_says_so() -> None:
    said = [
        ("we painted the boat green", 250),
        ("we painted the boat red", 20),
        ("the boat is painted blue", 2),
    ]
    with remembered(*said) as db:
        query = "What did we say about painting the boat in March?"
        assert first(db, query) == "we painted the boat green"
        why = db.why(query, "we painted the boat green", recipe="memory", now=NOW)
        assert "in March" in str(db.search(query, recipe="memory", now=NOW, explain=True).trace.time)  # type: ignore[union-attr]
        assert why.kept
        hit = db.search(query, recipe="memory", now=NOW, explain=True)[0]
        assert hit.explanation is not None
        reasons = {one.stage: one.reason for one in hit.explanation.adjustments}
        assert "in 'in March' (from 2026-03-01 until 2026-04-01)" in reasons["window"]


def test_a_record_in_the_period_is_found_among_many_others() -> None:
    others = [(f"the boat in the harbour, day {n}", 2.0 + n / 10) for n in range(200)]
    with remembered(("the boat has a leak", 250), *others) as db:
        assert first(db, "What about the boat in the harbour in March?") == "the boat has a leak"


def test_a_period_without_records_is_ignored_and_the_answer_says_so() -> None:
    with remembered(("the boat is green", 20)) as db:
        found = db.search("What about the boat in January 2020?", recipe="memory", now=NOW)
        assert [hit.text for hit in found] == ["the boat is green"]
        (degraded,) = found.degraded
        assert degraded.source == "window"
        assert "'in January 2020'" in degraded.reason


def test_a_period_excludes_neither_records_without_a_time_nor_texts_that_name_it() -> None:
    with remembered(
        ("the boat needs paint", None),
        ("the boat sails in March", 300),
        ("the boat was sold", 250),
        ("a boat", 2),
    ) as db:
        found = db.search("the boat in March", recipe="memory", now=NOW, explain=True)
        window = next(stage for stage in found.trace.stages if stage.name == "window")  # type: ignore[union-attr]
        reasons = {found.trace.ids[key]: reason for key, reason in window.reasons.items()}  # type: ignore[union-attr]
    assert "no time" in reasons["the boat needs paint"]
    assert "names 'in March' itself" in reasons["the boat sails in March"]
    assert reasons["a boat"].startswith("× 0.3, of 2026-11-14, outside of 'in March'")


def test_look_back_keeps_records_without_a_time_and_is_in_the_trace() -> None:
    with remembered(("harbour walk", None), ("harbour walk long ago", 30)) as db:
        found = db.search("harbour walk", recipe="memory", now=NOW, look_back=True, explain=True)
        assert [hit.id for hit in found] == ["harbour walk"]
        assert found.trace is not None
        assert found.trace.time["look_back_since"] == days_ago(7).isoformat()


# Facts that are found


def talk(*lines: str, speaker: str = "Nadia", days: float = 1) -> list[sennit.Turn]:
    return [sennit.Turn(text=line, session="s", speaker=speaker, timestamp=days_ago(days)) for line in lines]


def test_a_fact_is_found_by_its_own_words_without_a_name() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Nadia", relation="favourite restaurant", object="Adega Rita")])
        hit = db.search("Which restaurant is my favourite?", recipe="memory", explain=True)[0]
        assert hit.text == "Nadia -> Adega Rita: favourite restaurant"
        assert hit.explanation is not None
        assert hit.explanation.source_scores[-1].match_reason == "its text matches (1.00)"


def test_a_fact_is_found_by_a_word_that_asks_for_its_relation() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Nadia", relation="works at", object="Brightwater")])
        db.add_turns(talk("the company of good people", "an employer of last resort"))
        assert db.search("Who is my employer?", recipe="memory")[0].text == "Nadia -> Brightwater: works at"


@pytest.mark.parametrize("turns", [2, 40])
def test_the_current_fact_stands_before_small_talk_and_before_what_it_superseded(turns: int) -> None:
    said = [f"I live in Lisbon, so to say, day {n}, where do you live?" for n in range(turns)]
    with sennit.open(":memory:") as db:
        db.add_turns(talk(*said))
        for city, days in (("Lisbon", 300), ("Porto", 90)):
            db.add_facts(
                [Fact(subject="Nadia", relation="lives in", object=city, timestamp=days_ago(days))],
                same_relation=True,
            )
        found = db.search("Where does Nadia live now?", recipe="memory")
        assert found[0].text == "Nadia -> Porto: lives in"
        assert "Nadia -> Lisbon: lives in" not in [hit.text for hit in found]
        former = next(record for record in db if record.text == "Nadia -> Lisbon: lives in")
        why = db.why("Where does Nadia live now?", former.id, recipe="memory")
        assert not why.kept
        assert why.reason.startswith("superseded by 'Nadia -> Porto: lives in'")
        assert "2026-08-18" in why.reason


def test_why_does_not_name_a_successor_that_the_caller_may_not_see() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Nadia", relation="lives in", object="Lisbon")])
        hidden = Fact(subject="Nadia", relation="lives in", object="Porto", sensitivity="private")
        db.add_facts([hidden], same_relation=True)
        former = next(record for record in db if record.metadata.get("object") == "Lisbon")
        caller = sennit.Caller(clearance="normal", scopes=frozenset({"public"}))
        why = db.why("Where does Nadia live?", former.id, recipe="memory", caller=caller)
        assert why.reason.startswith("it ended on")
        assert "Porto" not in str(why)


def test_a_fact_that_shares_only_a_name_gives_way() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Nadia", relation="lives in", object="Porto")])
        db.add_turns(
            talk(*(f"Portuguese lesson {n}" for n in range(12)), "I am learning Portuguese with Nadia")
        )
        found = db.search("Which language is Nadia learning?", recipe="memory")
        assert "Nadia -> Porto: lives in" not in [hit.text for hit in found]
        why = db.why(
            "Which language is Nadia learning?", next(r.id for r in db if r.kind == "fact"), recipe="memory"
        )
        assert (why.stage, why.number) == ("facts", 0.0)


def test_the_question_before_a_session_brings_the_weightiest_facts_and_the_newest_turns() -> None:
    with sennit.open(":memory:") as db:
        db.add_turns(talk("an old conversation about key facts", days=200))
        db.add_turns([*talk("we sold the boat", days=2), *talk("the boat is gone", days=1)])
        db.add_facts(
            [
                Fact(subject="A", relation="knows", object=f"B{n}", weight=weight, timestamp=days_ago(400))
                for n, weight in enumerate((1.0, 9.0, 3.0))
            ]
        )
        found = db.search("recent conversations and key facts", recipe="memory", limit=4, now=NOW)
        assert {hit.text for hit in found} == {
            "A -> B1: knows",
            "A -> B2: knows",
            "the boat is gone",
            "we sold the boat",
        }


def test_the_question_before_a_session_brings_both_where_there_are_many_of_each() -> None:
    facts = [
        Fact(subject="Nadia", relation=f"knows {n}", object=f"person {n}", weight=n, timestamp=days_ago(400))
        for n in range(1, 13)
    ]
    with sennit.open(":memory:") as db:
        db.add_turns([turn for day in range(30) for turn in talk(f"day {day} was fine", days=60 + day)])
        db.add_facts(facts)
        texts = [hit.text for hit in db.memory.context(limit=10, now=NOW).result]
        assert {text for text in texts if "knows" in text} == {fact.line for fact in facts[-5:]}
        assert {text for text in texts if "day" in text} == {f"day {day} was fine" for day in range(5)}


def test_the_question_before_the_first_session_brings_as_many_facts_as_it_may() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="A", relation="knows", object=f"B{n}") for n in range(12)])
        db.add_turns(talk("hello there", days=1))
        found = db.search("recent conversations and key facts", recipe="memory", limit=10, now=NOW)
        assert len(found) == 10
        assert "hello there" in [hit.text for hit in found]


def test_a_question_without_a_topic_brings_what_the_named_person_said_in_the_period() -> None:
    with sennit.open(":memory:") as db:
        db.add_turns([*talk("Lena, I am here", days=1), *talk("the ferry was late", speaker="Lena", days=1)])
        db.add_turns(talk("the train was early", speaker="Lena", days=9))
        found = db.search("What did Lena say yesterday?", recipe="memory", now=NOW)
        assert [hit.text for hit in found] == ["the ferry was late"]


def test_a_changed_fact_of_an_extraction_supersedes_the_former() -> None:
    turns = [*talk("I live in Lisbon now.", days=300), *talk("Big news: I moved to Porto.", days=60)]
    with sennit.open(":memory:") as db:
        db.add_turns(turns)
        db.memory.extract_facts([one.to_record() for one in turns])
        assert db.search("Where do I live?", recipe="memory")[0].text == "Nadia -> Porto: lives in Porto"


# Evidence of conversations


def test_the_turn_after_a_question_answers_it() -> None:
    filler = [f"talk about the weather, part {n}" for n in range(30)]
    turns = conversation(
        *filler, "I bought a cargo bike", "How much did you pay?", "1,200, with a cover", *filler
    )
    with sennit.open(":memory:") as db:
        db.add(turns)
        query = "How much was the cargo bike?"
        assert "1,200, with a cover" in [hit.text for hit in db.search(query, recipe="memory")[:3]]
        hit = next(
            hit for hit in db.search(query, recipe="memory", explain=True) if hit.text.startswith("1,200")
        )
        assert hit.explanation is not None
        assert any("by the question before" in one.reason for one in hit.explanation.adjustments)


def test_texts_that_share_only_a_word_do_not_fill_the_answer() -> None:
    texts = [
        f"the {noun} is quite new"
        for noun in "chair table lamp sofa shelf clock vase mirror rug desk".split()
    ]
    with sennit.open(":memory:") as db:
        db.add(conversation(*texts, "the passport number of Leo is new: 4711"))
        found = db.search("What is the new passport number of Leo?", recipe="memory", limit=10)
        assert found[0].text == "the passport number of Leo is new: 4711"
        assert len(found) < 6


def test_what_a_named_speaker_said_stands_before_texts_with_the_name() -> None:
    with sennit.open(":memory:") as db:
        db.add_turns(talk(*(f"Priya, hello, number {n}" for n in range(12)), speaker="Tom"))
        db.add_turns(talk("I am learning a language with an app", speaker="Priya"))
        assert (
            "learning a language" in db.search("Which language is Priya learning?", recipe="memory")[0].text
        )


def test_a_record_found_by_several_sources_has_all_of_its_metadata() -> None:
    said = {"speaker": "Rajesh", "source_session": "monday", "mood": "calm"}
    with sennit.open(":memory:") as db:
        db.add([Record(id="turn", collection="history", text="Priya wants the aisle seat", metadata=said)])
        (hit,) = db.search("Which seat does Priya want?", recipe="memory")
    assert {"keyword", "vector"} <= set(hit.sources)
    assert said.items() <= hit.metadata.items()


def test_what_a_text_says_is_over_ends_the_stored_fact() -> None:
    turns = [
        *talk("I work at Corvin Bank. I bought a used cargo bike.", days=300),
        *talk("I left Corvin Bank. We sold the bike.", days=60),
    ]
    with sennit.open(":memory:") as db:
        db.add_turns(turns)
        for turn in turns:
            db.memory.extract_facts([turn.to_record()])
        ended = {
            record.metadata["object"]: record.metadata.get("superseded_at")
            for record in db
            if is_fact(record)
        }
        day = days_ago(60).isoformat()
        assert ended == {"Corvin Bank": day, "used cargo bike": day}


def test_what_is_over_may_begin_again_later() -> None:
    turns = [
        *talk("I work at Corvin Bank.", days=300),
        *talk("I left Corvin Bank.", days=200),
        *talk("I work at Corvin Bank, again!", days=100),
    ]
    with sennit.open(":memory:") as db:
        db.memory.extract_facts([turn.to_record() for turn in turns])
        (record,) = [record for record in db if is_fact(record)]
        assert "superseded_at" not in record.metadata


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("What does Lena do for a living?", "Lena -> nurse: works as"),
        ("How old is Lena?", "Lena -> 34: age"),
    ],
)
def test_a_fact_is_found_by_a_phrase_that_asks_for_its_relation(query: str, line: str) -> None:
    facts = (("lives in", "Bremen"), ("works as", "nurse"), ("age", "34"))
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Lena", relation=relation, object=value) for relation, value in facts])
        db.add_turns(talk(*(f"Lena, hello, number {n}" for n in range(12))))
        assert db.search(query, recipe="memory")[0].text == line


# What the question asks for


@pytest.mark.parametrize(
    ("query", "answer", "other"),
    [
        ("How much was the bike?", "the bike was 85 euros", "the bike is blue"),
        ("What does the bike cost?", "the bike was 85 euros", "the bike is blue"),
        ("When is the concert?", "the concert is on Friday", "the concert will be long"),
        ("Who is the vet?", "the vet is called Amsel", "the vet was busy"),
        ("Where is the vet?", "the vet is in the yard", "the vet was busy"),
    ],
)
def test_a_text_without_what_the_question_asks_for_falls_behind(query: str, answer: str, other: str) -> None:
    ranking, context = ranked([turn(other), turn(answer)], [1.0, 0.9])
    output = AnswerForm().apply(ranking, replace(context, query=query))
    assert output.keys.tolist() == [2, 1]
    assert output.scores.tolist() == pytest.approx([0.9, 0.8])
    assert list(output.reasons) == [1]


def test_a_fact_has_what_its_relation_and_object_say() -> None:
    fact = Fact(subject="Nadia", relation="lives in", object="Porto").to_record()
    ranking, context = ranked([fact, turn("Porto is sunny")], [1.0, 0.9])
    output = AnswerForm().apply(ranking, replace(context, query="Where does Nadia live?"))
    assert output.keys.tolist() == [1, 2]
    assert output.scores.tolist() == pytest.approx([1.0, 0.72])


def test_a_question_for_no_form_changes_nothing() -> None:
    ranking, context = ranked([turn("a"), turn("b")], [1.0, 0.9])
    output = AnswerForm().apply(ranking, replace(context, query="What did Nadia plant?"))
    assert output.scores.tolist() == [1.0, 0.9]


def later(query: str, *turns: Record, scores: Sequence[float]) -> list[str]:
    ranking, context = ranked(turns, scores)
    asked = replace(context, query=query, read_time=lambda: read_time(query, NOW))
    return [turns[key - 1].text for key in Latest().apply(ranking, asked).keys]


def test_what_was_said_last_stands_before_what_it_replaced() -> None:
    old, new = turn("the code is 1111", 90), turn("the code is 2222", 20)
    assert later("What is the code?", old, new, scores=[1.0, 0.95])[0] == new.text
    assert later("What was the code?", old, new, scores=[1.0, 0.95])[0] == old.text
    # Something about another matter is no successor.
    assert later("What is the code?", old, new, scores=[1.0, 0.6])[0] == old.text


def test_a_text_that_speaks_of_a_change_needs_to_say_less_about_the_question() -> None:
    old, new = turn("the code of the hut is 1111", 90), turn("the new code is 2222", 20)
    assert later("What is the code of the hut?", old, new, scores=[1.0, 0.88])[0] == new.text


def test_a_question_or_a_fact_replaces_nothing() -> None:
    old = turn("the code is 1111", 90)
    assert later("What is the code?", old, turn("the code?", 20), scores=[1.0, 0.95])[0] == old.text
    fact = Fact(subject="hut", relation="code", object="3", timestamp=days_ago(1)).to_record()
    assert later("What is the code?", old, fact, scores=[1.0, 0.95])[0] == old.text


@pytest.mark.parametrize("name", ["outdated", "min_share", "changed_share"])
@pytest.mark.parametrize("value", [0, 1.1, float("nan")])
def test_impossible_shares_of_the_latest_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        Latest(**{name: value})


def test_a_missing_form_must_leave_something() -> None:
    with pytest.raises(ValueError, match="missing"):
        AnswerForm(missing=0)


def test_a_verb_is_found_in_its_other_forms() -> None:
    with sennit.open(":memory:") as db:
        db.add_turns(talk("I lost my torch", *(f"a loose tooth again, number {n}" for n in range(12))))
        found = db.search("What did I lose?", recipe="memory", explain=True)
        assert found[0].text == "I lost my torch"
        assert found[0].sources[0] == "keyword"


# Whether anything fits


CHAT = (
    "my sister Clara moved into the red house by the lake",
    "Clara wants to grow potatoes there",
    "the ferry was late again",
    *(f"small talk about the weather, part {n}" for n in range(10)),
)


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("Where did Clara move?", True),
        ("What does Clara want to grow?", True),
        ("How tall is Clara?", False),
        ("What is Clara allergic to?", False),
        ("Which school does Clara attend?", False),
        ("What did Nadia say yesterday?", True),
        ("recent conversations", True),
        ("What did Nadia tell me about the ferry yesterday?", True),
    ],
)
def test_a_name_alone_is_no_fit_and_words_about_time_are_no_misfit(query: str, fits: bool) -> None:
    with sennit.open(":memory:") as db:
        db.add_turns(talk(*CHAT))
        assert db.search(query, recipe="memory", now=NOW).fits is fits


def test_a_fact_fits_a_question_in_other_words() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Nadia", relation="works at", object="Brightwater")])
        db.add_turns(talk(*CHAT))
        found = db.search("Who is my employer?", recipe="memory")
        assert found[0].text == "Nadia -> Brightwater: works at"
        assert found.fits


def test_ask_searches_memories_as_a_search_does() -> None:
    with sennit.open(":memory:") as db:
        db.add_turns(talk(*CHAT))
        answer = db.ask("Where did Clara move?", recipe="memory", now=NOW)
        assert answer.trace is not None
        assert answer.trace.transform == {}
        assert answer.text.startswith("Nadia, 15 November 2026: my sister Clara moved into the red house")
        assert answer.citations[0].number == 1
        assert db.ask("How tall is Clara?", recipe="memory", now=NOW).text.startswith("Nothing fits")


def test_a_question_for_news_gets_no_old_fact_about_the_name() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Nadia", relation="sister", object="Clara", timestamp=days_ago(200))])
        db.add_turns(talk(*CHAT, "Clara bought a boat"))
        assert db.search("Who is Clara?", recipe="memory", now=NOW)[0].text == "Nadia -> Clara: sister"
        news = db.search("What is the latest about Clara?", recipe="memory", now=NOW)
        assert not is_fact(news[0].record)
        assert "Clara" in news[0].text
