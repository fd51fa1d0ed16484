"""Terms: scripts, identifiers, numbers, stop words, and the properties that hold for every text."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sennit import analysis
from sennit.analysis import (
    content_terms,
    count_terms,
    index_terms,
    is_stop_word,
    query_terms,
    tables,
    term_hash,
    terms_in,
    tokenizer,
)

MAX_TERM_CHARS = 128
MEGABYTE = 1_000_000

texts = st.text(max_size=60) | st.text("aZs9_-.@&'’,#+ éßŁ\u0301\u200b漢かガ한ก์ह👍🏽", max_size=40)


def searched(query: str) -> list[str]:
    return [term.term for term in query_terms(query)]


def finds(query: str, text: str) -> bool:
    """Whether the text has every term of the query."""
    return bool(searched(query)) and set(searched(query)) <= set(index_terms(text))


def shares_a_term(query: str, text: str) -> bool:
    return not set(searched(query)).isdisjoint(index_terms(text))


# Case, accents and forms of letters


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("Müller", "muller"),
        ("Donaudampfschifffahrtsgesellschaft", "DONAUDAMPFSCHIFFFAHRTSGESELLSCHAFT"),
        ("Übergrößenträger", "ubergrossentrager"),
        ("Łódź", "lodz"),
        ("smørrebrød", "smorrebrod"),
        ("Æsir", "aesir"),
        ("İstanbul", "istanbul"),
        ("ΣΊΣΥΦΟΣ", "σισυφος"),
        ("Ёлка", "елка"),
        ("ﬁnance", "finance"),
        ("Ｆｕｌｌ", "full"),
        ("e\u0301te\u0301", "été"),
        ("pub\u00adlic", "public"),
        ("zero\u200bwidth", "zerowidth"),
        ("مُحَمَّد", "محمد"),
        ("٣٤", "34"),
        ("ｶﾞｽ", "ガス"),
        ("\u1112\u1161\u11ab", "한"),
    ],
)
def test_spellings_of_one_word_have_the_same_terms(one: str, other: str) -> None:
    assert index_terms(one) == index_terms(other)


@pytest.mark.parametrize(
    ("one", "other"), [("が", "か"), ("パ", "ハ"), ("हिन्दी", "हनद"), ("ที่", "ท"), ("한", "하")]
)
def test_marks_that_change_the_letter_are_kept(one: str, other: str) -> None:
    assert set(index_terms(one)).isdisjoint(index_terms(other))


def test_english_words_are_stemmed() -> None:
    assert index_terms("connected") == index_terms("Connections") == ["connect"]


@pytest.mark.parametrize("word", ["dog's", "dog’s", "Dogs'", "DOGS"])
def test_possessives_and_plurals_have_the_term_of_the_word(word: str) -> None:
    assert index_terms(word) == ["dog"]


@pytest.mark.parametrize(
    ("written", "found"), [("don't", "dont"), ("O’Brien", "obrien"), ("l'homme", "homme")]
)
def test_apostrophes_may_be_left_out(written: str, found: str) -> None:
    assert finds(found, written)


# Scripts without spaces


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("东京", "我住在东京都"),
        ("京", "我住在东京都"),
        ("検索", "全文検索エンジンの仕組み"),
        ("エンジン", "全文検索エンジンの仕組み"),
        ("한국어", "한국어를 배우다"),
        ("검색", "전문검색엔진은 빠르다"),
        ("ไทย", "ภาษาไทยง่าย"),
        ("ភាសា", "ខ្ញុំរៀនភាសាខ្មែរ"),
        ("入門", "Python入門"),
        ("python", "Python入門"),
        ("C#", "C#入門"),
        ("1000", "1,000円"),
    ],
)
def test_a_word_inside_an_unspaced_run_is_found(query: str, text: str) -> None:
    assert finds(query, text)


def test_longer_unspaced_queries_search_pairs_and_not_single_characters() -> None:
    assert searched("东京都") == ["东京", "京都"]
    assert searched("东") == ["东"]


def test_a_single_ideograph_between_kana_is_searched_as_a_word() -> None:
    assert shares_a_term("猫が好き", "黒い猫")
    assert "が" not in searched("猫が好き")


def test_folding_does_not_change_the_fold_invariant_characters() -> None:
    invariant = re.compile(f"[{tables.FOLD_INVARIANT}]")
    characters = "".join(filter(invariant.match, map(chr, range(0x10000))))
    assert len(characters) > 30_000
    assert tokenizer.fold(unicodedata.normalize("NFKC", characters)) == characters
    assert not any(map(unicodedata.combining, characters))


def test_the_length_of_unspaced_text_is_its_number_of_pairs() -> None:
    assert count_terms("东京都")[1] == 2
    assert count_terms("东")[1] == 1


# Identifiers


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
        ("os.path.join", ["os.path.join", "os", "path", "join"]),
        ("client.getUserName", ["client.getusername", "client", "getusername", "user"]),
        ("kebab-case-name", ["kebab", "case", "name", "kebabcasenam"]),
        ("Base64Encoder", ["base64encoder", "base64", "encod"]),
        ("i18nHelper", ["i18n", "helper"]),
        ("utf8", ["utf8", "utf"]),
        ("utf-8", ["utf8", "utf", "8"]),
        ("COVID-19", ["covid", "19", "covid19"]),
        ("userIDs", ["userid", "user", "id"]),
        ("C++", ["c++", "c"]),
        ("c#", ["c#", "c"]),
        ("AT&T", ["at&t", "t"]),
        ("joe.b@example.org", ["joe.b@example.org", "example.org", "joe", "org"]),
        ("https://example.org/a_b?x=1", ["https", "example.org", "a_b", "x", "1"]),
        ("#MachineLearning", ["machinelearning", "machin", "learn"]),
        ("@some_name", ["some_name", "name"]),
        ("__init__", ["init"]),
    ],
)
def test_an_identifier_has_terms_for_its_parts_and_for_the_whole(
    identifier: str, expected: list[str]
) -> None:
    assert set(expected) <= set(index_terms(identifier))


def test_the_parts_as_words_find_an_identifier() -> None:
    assert finds("user name", "def getUserName(self):")


def test_an_exact_identifier_shares_more_terms_than_its_parts_do() -> None:
    exact, parts = index_terms("getUserName"), index_terms("get the user name")
    assert len(set(searched("getUserName")) & set(exact)) > len(set(searched("getUserName")) & set(parts))


def test_a_plural_identifier_differs_from_its_singular() -> None:
    assert "getusers" in searched("getUsers")
    assert "getusers" not in index_terms("getUser")


@pytest.mark.parametrize(
    "spelling", ["userName", "UserName", "user_name", "USER_NAME", "user-name", "username"]
)
def test_styles_of_one_identifier_find_each_other(spelling: str) -> None:
    assert shares_a_term("username", spelling)
    assert shares_a_term(spelling, "username")


@pytest.mark.parametrize(
    "text", ["getUserName", "get_user_name", "get.user.name", "get-user-name", "get user name"]
)
def test_the_length_counts_parts_and_not_whole_identifiers(text: str) -> None:
    assert count_terms(text)[1] == 3


# Numbers and symbols


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("3.14", ["3.14"]),
        ("1,000", ["1000"]),
        ("1,234,567.89", ["1234567.89"]),
        ("1,2", ["1", "2"]),
        ("2020,100", ["2020", "100"]),
        ("v1.2.3", ["1.2.3", "1.2", "1", "2", "3"]),
        ("2024-01-15", ["2024-01-15", "2024", "01", "15"]),
        ("U.S.A.", ["usa"]),
    ],
)
def test_terms_of_numbers_and_acronyms(written: str, expected: list[str]) -> None:
    assert index_terms(written) == expected


@pytest.mark.parametrize(
    ("query", "text"), [("👍", "well done 👍🏽"), ("👧", "👨‍👩‍👧"), ("🇩🇪", "from 🇩🇪🇫🇷"), ("❤", "I ❤️ it")]
)
def test_emoji_are_found_as_terms(query: str, text: str) -> None:
    assert finds(query, text)


# Stop words


def test_stop_words_are_indexed_without_length() -> None:
    counts, length = count_terms("the cat and the hat")
    assert counts[term_hash("the")] == 2
    assert length == 2
    assert [term for term in index_terms("the cat") if is_stop_word(term)] == ["the"]


def test_a_query_drops_stop_words_and_counts_the_rest() -> None:
    assert [(term.term, term.count) for term in query_terms("What is the cat doing with a cat?")] == [
        ("cat", 2),
        ("doing", 1),
    ]


@pytest.mark.parametrize("query", ["to be or not to be", "The Who", "it"])
def test_a_query_of_stop_words_only_keeps_them(query: str) -> None:
    assert searched(query) == list(dict.fromkeys(query.lower().split()))
    assert content_terms(query) == set(query.lower().split())


def test_a_word_whose_stem_is_a_stop_word_is_not_one() -> None:
    assert searched("willing") == ["willing"]


def test_words_compare_texts_by_content() -> None:
    assert content_terms("The connected cats") == content_terms("cat connections, and their cat")


# Properties of every text


@given(texts)
@example("a’s ʼ ½ ⑴ \u037a ﷺ ㌀")
@example("e\u0301" * 40)
@example("ก⼀็")
@example("ก⼀็" * 20)
def test_any_word_of_a_text_as_a_query_finds_the_text(text: str) -> None:
    indexed = set(index_terms(text))
    for word in text.split():
        assert indexed.issuperset(searched(word))
        assert bool(searched(word)) == bool(index_terms(word))


@given(st.lists(st.from_regex(r"[A-Z][a-z]{1,8}[0-9]{0,2}", fullmatch=True), min_size=2, max_size=5))
def test_any_part_of_an_identifier_finds_it(parts: list[str]) -> None:
    camel, snake, dotted = "".join(parts), "_".join(parts), ".".join(parts)
    for part in parts:
        for identifier in (camel, camel[0].lower() + camel[1:], snake.lower(), snake.upper(), dotted):
            assert set(index_terms(identifier)).issuperset(index_terms(part))


@given(texts)
def test_counts_equal_the_occurrences_of_the_terms(text: str) -> None:
    counts, length = count_terms(text)
    assert counts == Counter(map(term_hash, index_terms(text)))
    assert 0 <= length <= sum(counts.values())


@given(st.lists(texts, max_size=3), texts)
def test_the_terms_in_texts_are_those_that_they_count(several: list[str], other: str) -> None:
    asked = count_terms(other)[0].keys()
    counted = [count_terms(text)[0].keys() for text in several]
    assert terms_in(several, asked) == [asked & one for one in counted]
    assert terms_in(several, asked | set().union(*counted)) == counted


@given(st.text("abcXYZs019_-.@&',#+ ", max_size=60))
def test_ascii_text_has_the_same_terms_next_to_other_scripts(text: str) -> None:
    assert index_terms(f"{text} 中")[:-1] == index_terms(text)


@given(texts.filter(lambda text: not re.search(r"[\u0300-\u036f\u0e47-\u0e4e]{8}", text)))
@example("ガA#")
@example("A#Ù 1,000é")
def test_composed_and_decomposed_text_have_the_same_terms(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert index_terms(composed) == index_terms(decomposed)


@given(texts)
def test_terms_are_short_and_can_be_encoded(text: str) -> None:
    for term in index_terms(text):
        assert 0 < len(term) <= MAX_TERM_CHARS
        assert not re.search(r"\s", term)
        term.encode()


@given(st.text("ab Cd.", max_size=2000))
def test_query_terms_are_distinct_and_bounded(text: str) -> None:
    found = searched(text)
    assert len(found) == len(set(found)) <= analysis.MAX_QUERY_TERMS


def test_a_long_query_keeps_its_most_frequent_terms_then_the_earliest() -> None:
    found = searched(" ".join(f"x{n}y" for n in range(300)) + " x299y")
    assert found == [f"x{n}y" for n in range(255)] + ["x299y"]


@pytest.mark.parametrize(
    "text",
    [
        "a" * MEGABYTE,
        "aB" * (MEGABYTE // 2),
        "a." * (MEGABYTE // 2),
        "a'" * (MEGABYTE // 2),
        "1,000" + ",000" * (MEGABYTE // 4),
        "c++" * (MEGABYTE // 3),
        "e" + "\u0301\u0323" * (MEGABYTE // 2),
        "\u0301\u0323" * (MEGABYTE // 2),
        "か" + "\u3099\u0323" * (MEGABYTE // 2),
        "漢" * (MEGABYTE // 4),
        "\ufdfa" * (MEGABYTE // 100),
        "\u200b" * MEGABYTE,
        "\ud800" * MEGABYTE,
        "\x00" * MEGABYTE,
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_hostile_text_is_analysed_in_linear_time_to_short_terms(text: str) -> None:
    """Quadratic time would take hours here, and the suite has a limit of minutes."""
    counts, length = count_terms(text)
    assert len(counts) <= 20
    assert length <= len(text) * 4
    assert max(map(len, index_terms(text[:5000])), default=0) <= MAX_TERM_CHARS


def test_long_tokens_that_differ_at_the_end_have_different_terms() -> None:
    assert index_terms("x" * 300 + "a") != index_terms("x" * 300 + "b")


def test_terms_do_not_depend_on_the_cache() -> None:
    text = "getUserName saw 東京タワー, Straße and 1,000 dogs"
    before = index_terms(text), count_terms(text)
    for number in range(2 * analysis._MAX_CACHED_TOKENS + 1):
        count_terms(f"filler{number}")
    assert (index_terms(text), count_terms(text)) == before
    assert len(analysis._cache) + len(analysis._cache._old) <= 2 * analysis._MAX_CACHED_TOKENS


def test_concurrent_threads_get_the_same_terms() -> None:
    corpus = [f"Connections{n} connecting thread{n % 7} userName{n}" for n in range(2000)]
    results: list[list[list[str]]] = []
    readers = [
        threading.Thread(target=lambda: results.append([index_terms(t) for t in corpus])) for _ in range(4)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert results == [[index_terms(text) for text in corpus]] * 4


def test_term_hashes_do_not_change() -> None:
    """Indexes on disk contain these hashes."""
    assert term_hash("sennit") == 0x65AF58C58D473666
    assert term_hash("東京") == 0x469B7AB5870CF9B6


def test_the_analysis_id_changes_with_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    assert analysis._compute_analysis_id() == analysis.ANALYSIS_ID
    monkeypatch.setattr("sennit.analysis.tables.STOP_WORDS", frozenset({"the"}))
    assert analysis._compute_analysis_id() != analysis.ANALYSIS_ID


def test_a_change_of_terms_needs_a_new_revision() -> None:
    """If the change is intended, increase `_REVISION` and enter the new digest."""
    sample = (
        "getUserName os.path.join snake_case utf-8 don't O'Brien's 1,000 v1.2.3 U.S.A. C++ AT&T e-mail "
        "Straße Łódź 東京タワー 한국어를 ภาษาไทย हिन्दी 👍🏽 ½ to be or not 2024-01-15 Base64Encoder mRNAs"
    )
    digest = term_hash("\n".join([*index_terms(sample), *searched(sample), str(count_terms(sample)[1])]))
    assert (analysis._REVISION, f"{digest:016x}") == (1, "9321077ad8afd5ff")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("plain text. Next one, 12,5", ["plain", "text", "Next", "one", "12", "5"]),
        ("a- b, c", ["a", "b", "c"]),
        ("é. è", ["é", "è"]),
        ("1,000 and 1,00", ["1,000", "and", "1", "00"]),
    ],
)
def test_a_joiner_without_a_word_after_it_belongs_to_no_token(text: str, tokens: list[str]) -> None:
    assert tokenizer.tokenize(text) == tokens
