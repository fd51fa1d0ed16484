"""What counts as the same name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.graph.names import (
    MAX_NAME_WORDS,
    MAX_NAMES,
    MAX_WORDS,
    PLAIN,
    SURE,
    name_number,
    names_of,
    phrases,
    signed,
    words_of,
)
from sennit.records import Record


def numbers(record: Record) -> set[int]:
    return {name.hash for name in names_of(record)}


def number(name: str) -> int:
    found = name_number(name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Priya", "priya"),
        ("Priya", "PRIYA's"),
        ("Priya", "Priya’s"),
        ("Łódź", "lodz"),
        ("Müller", "Mu\u0308ller"),
        ("Straße", "STRASSE"),
        ("Kim Ki-young", "Kim Ki young"),
        ("O'Brien", "O’Brien"),
        ("Priya   S.", "Priya S"),
        ("Ｐｒｉｙａ", "Priya"),
        ("प्रिया", "प्रिया"),
        ("北京大学", "北京 大学"),
        ("U.S. Army", "U S Army"),
    ],
)
def test_names_that_a_reader_takes_for_the_same_are_the_same(one: str, other: str) -> None:
    assert name_number(one) == name_number(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Priya", "Prija"),
        ("New York", "York New"),
        ("Anna Bell", "Annabell"),
        ("प्रिया", "परया"),
        ("北京", "京北"),
    ],
)
def test_other_names_are_other_names(one: str, other: str) -> None:
    assert name_number(one) != name_number(other)


@pytest.mark.parametrize("name", ["", "  ", "!?", "one " * (MAX_NAME_WORDS + 1)])
def test_what_has_no_words_or_too_many_is_no_name(name: str) -> None:
    assert name_number(name) is None
    assert names_of(Record(id="r", text="", title=name)) == []


def test_a_title_is_also_a_name_without_what_tells_it_from_others() -> None:
    assert numbers(Record(id="r", text="", title="Jaws (1975 film)")) == {
        number("Jaws (1975 film)"),
        number("Jaws"),
    }
    long = Record(id="r", text="", title="Adolph of Cleves, Lord of Ravenstein")
    assert number("adolph of cleves") in numbers(long)
    assert number("Smith") not in numbers(Record(id="r", text="", title="Smith, John"))


def test_aliases_are_names_and_make_all_names_of_the_record_sure() -> None:
    named = names_of(Record(id="r", text="", title="Priya Sharma", metadata={"aliases": ["Priya", "PS"]}))
    assert {name.hash for name in named} == {number(name) for name in ("Priya Sharma", "Priya", "PS")}
    assert all(name.flags & SURE for name in named)
    assert not any(name.flags & SURE for name in names_of(Record(id="r", text="", title="Priya Sharma")))


def test_a_title_without_capitals_is_known_as_such() -> None:
    assert names_of(Record(id="r", text="", title="numpy arrays"))[0].flags & PLAIN
    assert not names_of(Record(id="r", text="", title="The numpy Book"))[0].flags & PLAIN


def test_a_record_has_a_bounded_number_of_names() -> None:
    record = Record(id="r", text="", title="x", metadata={"aliases": [f"alias {n}" for n in range(1000)]})
    assert len(names_of(record)) == MAX_NAMES


def test_capitals_inside_a_sentence_show_that_a_writer_uses_them() -> None:
    assert words_of("We met Priya. Then we left.").shows_case
    assert not words_of("we met priya. Then I left.").shows_case
    assert not words_of("WE MET PRIYA").shows_case
    assert not words_of("").shows_case


def test_a_long_text_is_read_up_to_a_limit() -> None:
    assert len(words_of("word " * 10 * MAX_WORDS).hashes) == MAX_WORDS


@given(st.lists(st.sampled_from("alpha Beta gamma-delta 北京 Łódź 7 it's".split()), min_size=1, max_size=8))
def test_a_phrase_of_a_text_has_the_number_of_the_name_that_reads_the_same(parts: list[str]) -> None:
    words = words_of(" ".join(parts))
    for length, numbers_of_length in enumerate(phrases(words.hashes), 1):
        for start, found in enumerate(signed(numbers_of_length).tolist()):
            assert name_number(" ".join(words.written[start : start + length])) == found


@given(st.text(max_size=300))
def test_any_text_has_words_or_none(text: str) -> None:
    words = words_of(text)
    assert len(words.hashes) == len(words.flags) == len(words.written)
    name_number(text)
