"""What texts mention, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.graph.linking import MOST_SHARED, Bearers, Find, Linking, Mention, gains, mentions, rareness
from sennit.graph.names import Hashes, joined, names_of, signed, words_of
from sennit.records import Record


def finding(records: Sequence[Record]) -> Find:
    """The names of records; a record's key is its place."""
    known: dict[int, list[tuple[int, int]]] = {}
    for row, record in enumerate(records):
        for name in names_of(record):
            known.setdefault(name.hash, []).append((row, name.flags))

    def find(names: Hashes) -> Bearers:
        found = [
            (place, *bearer)
            for place, name in enumerate(signed(names).tolist())
            for bearer in known.get(name, ())
        ]
        which, rows, flags = zip(*found, strict=True) if found else ((), (), ())
        return Bearers(np.array(which, np.intp), np.array(rows, np.int64), np.array(flags, np.uint8))

    return find


def titled(*titles: str, **metadata: object) -> list[Record]:
    return [Record(id=title, text="", title=title, metadata=metadata) for title in titles]  # type: ignore[arg-type]


def named(text: str, *titles: str, **metadata: object) -> list[str]:
    return [
        mention.written for mention in mentions([words_of(text)], finding(titled(*titles, **metadata)))[0]
    ]


def test_a_text_mentions_the_titles_in_it() -> None:
    assert named("We saw Jaws by Steven Spielberg's team.", "Jaws (film)", "Steven Spielberg", "Alien") == [
        "Jaws",
        "Steven Spielberg",
    ]


def test_the_longest_name_is_meant_and_no_word_is_part_of_two() -> None:
    titles = ("New York", "New York City", "York City Council", "City Council")
    assert named("She moved to New York City Council housing", *titles) == ["New York City"]
    assert named("In New York, the City Council met", *titles) == ["New York", "City Council"]


def test_an_everyday_word_is_a_name_only_where_its_capital_tells_so() -> None:
    assert named("What time is the meeting?", "Time") == []
    assert named("Time is short, and we all know Priya", "Time") == []
    assert named("It was in the magazine Time last week", "Time") == ["Time"]
    assert named("METHODS AND RESULTS We found nothing new", "Methods and Results") == []


def test_a_phrase_in_lower_case_is_no_title_where_the_writer_uses_capitals() -> None:
    assert named("She was the second wife of Henry", "Second Wife (1936 film)") == []
    assert named("Second wife of Henry, she died young", "Second Wife (1936 film)") == []


def test_a_question_in_lower_case_names_things_but_not_certainly() -> None:
    found = mentions([words_of("who is the mother of lothair ii")], finding(titled("Lothair II")))[0]
    assert [(mention.written, mention.certain) for mention in found] == [("lothair ii", False)]
    assert mentions([words_of("the mother of Lothair II")], finding(titled("Lothair II")))[0][0].certain


def test_shouting_says_nothing_about_names() -> None:
    assert named("WHAT TIME IS IT", "Time") == []
    assert named("WHERE IS PRIYA", "Priya") == ["PRIYA"]


def test_a_title_that_is_written_in_lower_case_is_found_in_lower_case() -> None:
    assert named("We use numpy in the Paris office", "numpy") == ["numpy"]


def test_years_and_stop_words_are_no_names() -> None:
    assert named("In 1984 it was The one", "1984 (novel)", "It", "The") == []
    assert named("We heard The Who in London", "The Who") == ["The Who"]


def test_a_declared_name_is_meant_in_any_case() -> None:
    assert named("did rose call about Paris", "Rose", aliases=[]) == ["rose"]
    assert named("what did Will say", "Will", aliases=[]) == ["Will"]
    assert named("what will Rose say", "Will", aliases=[]) == []


def test_a_text_that_is_the_name_and_nothing_else_means_it() -> None:
    assert named("time", "Time") == ["time"]
    assert named("1984", "1984 (novel)") == ["1984"]


def test_names_without_spaces_are_found_inside_a_run() -> None:
    assert named("我在北京大学读书", "北京大学", "北京") == ["北京大学"]
    assert named("我在大街上", "大") == []


def test_a_name_that_too_many_share_names_none_of_them() -> None:
    few, many = titled(*["Report X"] * MOST_SHARED), titled(*["Report X"] * (MOST_SHARED + 1))
    text = [words_of("See the Report X of last year")]
    assert len(mentions(text, finding(few))[0][0].rows) == MOST_SHARED
    assert mentions(text, finding(many)) == [[]]


def test_names_do_not_reach_from_one_text_into_the_next() -> None:
    find = finding(titled("New York", "York"))
    found = mentions([words_of("we say New"), words_of("York is old")], find)
    assert [[mention.written for mention in text] for text in found] == [[], ["York"]]
    assert mentions([], find) == []
    assert mentions([words_of("")], find) == [[]]


@given(
    st.lists(st.text("ABab 北.", max_size=30), max_size=5),
    st.lists(st.text("ABab 北", min_size=1), max_size=5),
)
def test_mentions_stand_in_their_text_and_do_not_depend_on_its_neighbours(
    texts: list[str], titles: list[str]
) -> None:
    find = finding(titled(*titles))
    words = [words_of(text) for text in texts]
    together = mentions(words, find)
    assert together == [mentions([one], find)[0] for one in words]
    for text, found in zip(words, together, strict=True):
        whole = joined(text.written)
        assert all(mention.written in whole for mention in found)


def spread(
    named: list[Mention],
    seeds: Mapping[int, float],
    linked: Mapping[int, list[Mention]],
    relevance: Mapping[int, float] | None = None,
) -> dict[int, object]:
    known = relevance or {}
    found = gains(
        named, seeds, linked, lambda keys: [known.get(key, 0.0) for key in keys], lambda _: 1.0, Linking()
    )
    return {row: pytest.approx(gain.score) for row, gain in found.items()}


def mention(*rows: int, certain: bool = True) -> Mention:
    return Mention("X", rows, certain)


def test_a_named_record_gets_the_worth_of_its_name_shared_among_its_bearers() -> None:
    assert spread([mention(1)], {}, {}) == {1: 1.0}
    assert spread([mention(1, 2, 3, 4)], {}, {}) == dict.fromkeys((1, 2, 3, 4), 0.5)


def test_what_a_named_record_mentions_gets_its_share_by_its_own_relevance() -> None:
    found = spread([mention(1)], {}, {1: [mention(2), mention(3)]}, {3: 0.5})
    assert found == {1: 1.0, 2: 0.8, 3: 1.3}


def test_a_keyword_hit_hands_on_less_than_a_named_record() -> None:
    assert spread([], {1: 1.0}, {1: [mention(2)]}) == {2: 0.4}
    assert spread([], {1: 0.5}, {1: [mention(2)]}) == {2: 0.2}


def test_of_several_seeds_the_best_counts_and_being_named_adds() -> None:
    assert spread([mention(1)], {9: 1.0}, {9: [mention(2)], 1: [mention(2)]}) == {1: 1.0, 2: 0.8}
    assert spread([mention(1), mention(2)], {}, {1: [mention(2)]}) == {1: 1.0, 2: 1.8}


def test_its_own_name_and_uncertain_mentions_lead_nowhere() -> None:
    assert spread([], {1: 1.0}, {1: [mention(1, 2), mention(3, certain=False)]}) == {}


def test_the_rarer_a_name_the_more_it_says() -> None:
    assert rareness(1 / 1000, 1000) == pytest.approx(1.0)
    assert rareness(0.1, 1000) < rareness(0.01, 1000) < 1.0
    assert rareness(1.0, 1000) == pytest.approx(math.log(2) / math.log(1001))
    assert rareness(0.0, 0) == pytest.approx(1.0)


def test_uncertain_names_have_to_be_rare() -> None:
    assert rareness(0.02, 1000, certain=False) == 0.0
    assert rareness(0.01, 1000, certain=False) == rareness(0.01, 1000)
    assert rareness(3 / 10, 10, certain=False) > 0
    assert rareness(4 / 10, 10, certain=False) == 0.0


@pytest.mark.parametrize(
    "wrong", [{"seeds": -1}, {"most_links": 1.5}, {"floor": math.inf}, {"seed_share": "x"}]
)
def test_settings_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Linking(**wrong)  # type: ignore[arg-type]
