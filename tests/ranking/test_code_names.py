"""Words of names in code, and which of them a query has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.code_names import MIN_SUFFIX_LETTERS, QueryWords, same_word, split_name

WORDS = st.lists(st.text("abc", min_size=1, max_size=7), max_size=6)


@given(WORDS, WORDS)
def test_word_is_covered_by_a_form_or_a_suffix_in_the_query(said: list[str], words: list[str]) -> None:
    query_words = QueryWords(" ".join(said))
    told = [
        any(
            same_word(word, other) or (len(other) >= MIN_SUFFIX_LETTERS and word.endswith(other))
            for other in said
        )
        for word in words
    ]
    assert query_words.coverage(words) == (sum(told) / len(words) if words else 0.0)


def test_forms_of_a_word_count_as_the_word() -> None:
    query_words = QueryWords("where are SessionCookies authenticated")
    assert query_words.coverage(split_name("session_auth")) == 1.0
    assert query_words.coverage(("session", "routing")) == pytest.approx(0.5)
    assert query_words.coverage(()) == 0.0


@pytest.mark.parametrize(
    ("query", "path", "expected"),
    [
        ("how arguments are parsed", "clap/parser/arg.rs", 1.0),
        ("OpenAPI schema", "api/openapi_docs/utils.py", 0.5),
        ("how routes are found", "app/server/routing/index.ts", 0.0),
        ("the server", "app/server/routing/index.ts", 1.0),
        ("the app", "app/main.py", 0.0),
        ("the app", "app/start.py", 0.0),
        ("anything", "start.py", 0.0),
    ],
)
def test_the_folder_of_a_file_has_a_name_too(query: str, path: str, expected: float) -> None:
    assert QueryWords(query).folder_coverage(path) == expected


@pytest.mark.parametrize(
    ("query", "path", "expected"),
    [
        ("German error messages", "src/locales/de.ts", 1.0),
        ("messages in Brazilian Portuguese", "i18n/pt-BR.json", 1.0),
        ("German error messages", "src/locales/fr.ts", 0.0),
        ("German error messages", "src/core/de.ts", 0.0),
        ("error messages", "src/locales/de.ts", 0.0),
    ],
)
def test_the_name_of_a_language_means_the_file_of_its_locale(query: str, path: str, expected: float) -> None:
    assert QueryWords(query).file_coverage(path) == expected
