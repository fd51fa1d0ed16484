"""Which spellings count as the same name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.graph.names import (
    DECLARED,
    LOWERCASE,
    MAX_NAME_WORDS,
    MAX_NAMES_PER_RECORD,
    MAX_TEXT_WORDS,
    as_signed,
    name_hash,
    phrase_hashes,
    record_names,
    words_of,
)
from sennit.records import Record


def hashes(record: Record) -> set[int]:
    return {name.hash for name in record_names(record)}


def hash_of(name: str) -> int:
    found = name_hash(name)
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
def test_equivalent_spellings_have_the_same_hash(one: str, other: str) -> None:
    assert name_hash(one) == name_hash(other)


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
def test_different_names_have_different_hashes(one: str, other: str) -> None:
    assert name_hash(one) != name_hash(other)


@pytest.mark.parametrize("name", ["", "  ", "!?", "one " * (MAX_NAME_WORDS + 1)])
def test_a_text_without_words_or_with_too_many_is_no_name(name: str) -> None:
    assert name_hash(name) is None
    assert record_names(Record(id="r", text="", title=name)) == []


def test_a_title_without_its_qualifier_is_also_a_name() -> None:
    assert hashes(Record(id="r", text="", title="Jaws (1975 film)")) == {
        hash_of("Jaws (1975 film)"),
        hash_of("Jaws"),
    }
    long = Record(id="r", text="", title="Adolph of Cleves, Lord of Ravenstein")
    assert hash_of("adolph of cleves") in hashes(long)
    assert hash_of("Smith") not in hashes(Record(id="r", text="", title="Smith, John"))


def test_aliases_are_names_and_mark_all_names_of_the_record_as_declared() -> None:
    named = record_names(Record(id="r", text="", title="Priya Sharma", metadata={"aliases": ["Priya", "PS"]}))
    assert {name.hash for name in named} == {hash_of(name) for name in ("Priya Sharma", "Priya", "PS")}
    assert all(name.flags & DECLARED for name in named)
    assert not any(
        name.flags & DECLARED for name in record_names(Record(id="r", text="", title="Priya Sharma"))
    )


def test_a_title_without_capitals_is_flagged_lowercase() -> None:
    assert record_names(Record(id="r", text="", title="numpy arrays"))[0].flags & LOWERCASE
    assert not record_names(Record(id="r", text="", title="The numpy Book"))[0].flags & LOWERCASE


def test_a_record_has_a_bounded_number_of_names() -> None:
    record = Record(id="r", text="", title="x", metadata={"aliases": [f"alias {n}" for n in range(1000)]})
    assert len(record_names(record)) == MAX_NAMES_PER_RECORD


def test_capitals_inside_a_sentence_set_uses_capitals() -> None:
    assert words_of("We met Priya. Then we left.").uses_capitals
    assert not words_of("we met priya. Then I left.").uses_capitals
    assert not words_of("WE MET PRIYA").uses_capitals
    assert not words_of("").uses_capitals


def test_only_the_first_words_of_a_long_text_are_used() -> None:
    assert len(words_of("word " * 10 * MAX_TEXT_WORDS).hashes) == MAX_TEXT_WORDS


@given(st.lists(st.sampled_from("alpha Beta gamma-delta 北京 Łódź 7 it's".split()), min_size=1, max_size=8))
def test_a_phrase_has_the_same_hash_as_the_name(parts: list[str]) -> None:
    words = words_of(" ".join(parts))
    for length, hashes_of_length in enumerate(phrase_hashes(words.hashes), 1):
        for start, found in enumerate(as_signed(hashes_of_length).tolist()):
            assert name_hash(" ".join(words.surfaces[start : start + length])) == found


@given(st.text(max_size=300))
def test_any_text_can_be_split_into_words(text: str) -> None:
    words = words_of(text)
    assert len(words.hashes) == len(words.flags) == len(words.surfaces)
    name_hash(text)
