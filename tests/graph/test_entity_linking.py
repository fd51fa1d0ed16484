"""Mentions in texts, and the scores that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.graph.entity_linking import (
    MAX_SHARING_RECORDS,
    LinkOptions,
    Mention,
    NameLookup,
    NameMatches,
    find_mentions,
    name_rarity,
    score_links,
)
from sennit.graph.names import Hashes, as_signed, join_words, record_names, words_of
from sennit.records import Record


def lookup_in(records: Sequence[Record]) -> NameLookup:
    """A lookup of the names of records. The key of a record is its index."""
    known: dict[int, list[tuple[int, int]]] = {}
    for row, record in enumerate(records):
        for name in record_names(record):
            known.setdefault(name.hash, []).append((row, name.flags))

    def find(names: Hashes) -> NameMatches:
        found = [
            (position, *match)
            for position, name in enumerate(as_signed(names).tolist())
            for match in known.get(name, ())
        ]
        which, rows, flags = zip(*found, strict=True) if found else ((), (), ())
        return NameMatches(np.array(which, np.intp), np.array(rows, np.int64), np.array(flags, np.uint8))

    return find


def titled(*titles: str, **metadata: object) -> list[Record]:
    return [Record(id=title, text="", title=title, metadata=metadata) for title in titles]  # type: ignore[arg-type]


def mentioned(text: str, *titles: str, **metadata: object) -> list[str]:
    return [
        mention.surface
        for mention in find_mentions([words_of(text)], lookup_in(titled(*titles, **metadata)))[0]
    ]


def test_a_text_mentions_the_titles_in_it() -> None:
    assert mentioned(
        "We saw Jaws by Steven Spielberg's team.", "Jaws (film)", "Steven Spielberg", "Alien"
    ) == [
        "Jaws",
        "Steven Spielberg",
    ]


def test_the_longest_name_wins_and_mentions_do_not_overlap() -> None:
    titles = ("New York", "New York City", "York City Council", "City Council")
    assert mentioned("She moved to New York City Council housing", *titles) == ["New York City"]
    assert mentioned("In New York, the City Council met", *titles) == ["New York", "City Council"]


def test_a_common_word_is_a_name_only_with_a_capital_inside_a_sentence() -> None:
    assert mentioned("What time is the meeting?", "Time") == []
    assert mentioned("Time is short, and we all know Priya", "Time") == []
    assert mentioned("It was in the magazine Time last week", "Time") == ["Time"]
    assert mentioned("METHODS AND RESULTS We found nothing new", "Methods and Results") == []


def test_a_phrase_in_lower_case_is_no_title_where_the_writer_uses_capitals() -> None:
    assert mentioned("She was the second wife of Henry", "Second Wife (1936 film)") == []
    assert mentioned("Second wife of Henry, she died young", "Second Wife (1936 film)") == []


def test_a_question_in_lower_case_names_things_but_not_certainly() -> None:
    found = find_mentions([words_of("who is the mother of lothair ii")], lookup_in(titled("Lothair II")))[0]
    assert [(mention.surface, mention.certain) for mention in found] == [("lothair ii", False)]
    assert find_mentions([words_of("the mother of Lothair II")], lookup_in(titled("Lothair II")))[0][
        0
    ].certain


def test_text_in_all_capitals_does_not_mark_names() -> None:
    assert mentioned("WHAT TIME IS IT", "Time") == []
    assert mentioned("WHERE IS PRIYA", "Priya") == ["PRIYA"]


def test_a_title_that_is_written_in_lower_case_is_found_in_lower_case() -> None:
    assert mentioned("We use numpy in the Paris office", "numpy") == ["numpy"]


def test_years_and_stop_words_are_no_names() -> None:
    assert mentioned("In 1984 it was The one", "1984 (novel)", "It", "The") == []
    assert mentioned("We heard The Who in London", "The Who") == ["The Who"]


def test_a_declared_name_is_found_in_any_case() -> None:
    assert mentioned("did rose call about Paris", "Rose", aliases=[]) == ["rose"]
    assert mentioned("what did Will say", "Will", aliases=[]) == ["Will"]
    assert mentioned("what will Rose say", "Will", aliases=[]) == []


def test_a_text_that_is_only_the_name_mentions_it() -> None:
    assert mentioned("time", "Time") == ["time"]
    assert mentioned("1984", "1984 (novel)") == ["1984"]


def test_names_without_spaces_are_found_inside_a_run() -> None:
    assert mentioned("我在北京大学读书", "北京大学", "北京") == ["北京大学"]
    assert mentioned("我在大街上", "大") == []


def test_a_name_shared_by_too_many_records_is_no_mention() -> None:
    few, many = titled(*["Report X"] * MAX_SHARING_RECORDS), titled(*["Report X"] * (MAX_SHARING_RECORDS + 1))
    text = [words_of("See the Report X of last year")]
    assert len(find_mentions(text, lookup_in(few))[0][0].rows) == MAX_SHARING_RECORDS
    assert find_mentions(text, lookup_in(many)) == [[]]


def test_mentions_do_not_span_two_texts() -> None:
    find = lookup_in(titled("New York", "York"))
    found = find_mentions([words_of("we say New"), words_of("York is old")], find)
    assert [[mention.surface for mention in text] for text in found] == [[], ["York"]]
    assert find_mentions([], find) == []
    assert find_mentions([words_of("")], find) == [[]]


@given(
    st.lists(st.text("ABab 北.", max_size=30), max_size=5),
    st.lists(st.text("ABab 北", min_size=1), max_size=5),
)
def test_mentions_occur_in_their_text_and_do_not_depend_on_other_texts(
    texts: list[str], titles: list[str]
) -> None:
    find = lookup_in(titled(*titles))
    words = [words_of(text) for text in texts]
    together = find_mentions(words, find)
    assert together == [find_mentions([one], find)[0] for one in words]
    for text, found in zip(words, together, strict=True):
        whole = join_words(text.surfaces)
        assert all(mention.surface in whole for mention in found)


def spread(
    named: list[Mention],
    seeds: Mapping[int, float],
    linked: Mapping[int, list[Mention]],
    relevance: Mapping[int, float] | None = None,
) -> dict[int, object]:
    known = relevance or {}
    found = score_links(
        named, seeds, linked, lambda keys: [known.get(key, 0.0) for key in keys], lambda _: 1.0, LinkOptions()
    )
    return {row: pytest.approx(gain.score) for row, gain in found.items()}


def mention(*rows: int, certain: bool = True) -> Mention:
    return Mention("X", rows, certain)


def test_a_named_record_shares_the_weight_of_its_name_with_others_of_that_name() -> None:
    assert spread([mention(1)], {}, {}) == {1: 1.0}
    assert spread([mention(1, 2, 3, 4)], {}, {}) == dict.fromkeys((1, 2, 3, 4), 0.5)


def test_a_mentioned_record_scores_by_its_seed_and_its_own_relevance() -> None:
    found = spread([mention(1)], {}, {1: [mention(2), mention(3)]}, {3: 0.5})
    assert found == {1: 1.0, 2: 0.8, 3: 1.3}


def test_a_keyword_hit_passes_on_less_than_a_named_record() -> None:
    assert spread([], {1: 1.0}, {1: [mention(2)]}) == {2: 0.4}
    assert spread([], {1: 0.5}, {1: [mention(2)]}) == {2: 0.2}


def test_of_several_seeds_the_best_counts_and_being_named_adds() -> None:
    assert spread([mention(1)], {9: 1.0}, {9: [mention(2)], 1: [mention(2)]}) == {1: 1.0, 2: 0.8}
    assert spread([mention(1), mention(2)], {}, {1: [mention(2)]}) == {1: 1.0, 2: 1.8}


def test_self_mentions_and_uncertain_mentions_score_nothing() -> None:
    assert spread([], {1: 1.0}, {1: [mention(1, 2), mention(3, certain=False)]}) == {}


def test_a_rarer_name_has_a_higher_rarity() -> None:
    assert name_rarity(1 / 1000, 1000) == pytest.approx(1.0)
    assert name_rarity(0.1, 1000) < name_rarity(0.01, 1000) < 1.0
    assert name_rarity(1.0, 1000) == pytest.approx(math.log(2) / math.log(1001))
    assert name_rarity(0.0, 0) == pytest.approx(1.0)


def test_uncertain_names_have_to_be_rare() -> None:
    assert name_rarity(0.02, 1000, certain=False) == 0.0
    assert name_rarity(0.01, 1000, certain=False) == name_rarity(0.01, 1000)
    assert name_rarity(3 / 10, 10, certain=False) > 0
    assert name_rarity(4 / 10, 10, certain=False) == 0.0


@pytest.mark.parametrize(
    "wrong", [{"seeds": -1}, {"max_links": 1.5}, {"floor": math.inf}, {"seed_share": "x"}]
)
def test_invalid_options_are_rejected(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        LinkOptions(**wrong)  # type: ignore[arg-type]
