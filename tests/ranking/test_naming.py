"""Words of names, and whether a question says them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.naming import LEAST_ENDING, Said, alike, parts_of

WORDS = st.lists(st.text("abc", min_size=1, max_size=7), max_size=6)


@given(WORDS, WORDS)
def test_a_word_is_said_if_any_word_of_the_question_is_a_form_or_the_end_of_it(
    said: list[str], words: list[str]
) -> None:
    question = Said(" ".join(said))
    told = [
        any(alike(word, other) or (len(other) >= LEAST_ENDING and word.endswith(other)) for other in said)
        for word in words
    ]
    assert question.share(words) == (sum(told) / len(words) if words else 0.0)


def test_forms_of_a_word_count_as_the_word() -> None:
    question = Said("where are SessionCookies authenticated")
    assert question.share(parts_of("session_auth")) == 1.0
    assert question.share(("session", "routing")) == pytest.approx(0.5)
    assert question.share(()) == 0.0
