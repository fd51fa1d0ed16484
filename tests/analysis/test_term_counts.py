"""Counting many documents at once gives the same result as counting each alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sennit.analysis import count_terms
from sennit.analysis.term_counts import count_documents

WORDS = st.sampled_from(
    [
        "the",
        "cats",
        "cat",
        "HTTPServer",
        "snake_case",
        "e-mail",
        "3.11.4",
        "c++",
        "東京都",
        "Straße",
        "é",
        "-",
        "",
    ]
)
TEXTS = st.one_of(st.lists(WORDS, max_size=12).map(" ".join), st.text(max_size=40))


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=8))
def test_counts_of_a_batch_equal_the_counts_of_each_document(documents: list[tuple[str, str]]) -> None:
    fields = [[text for text, _ in documents], [title for _, title in documents]]
    found = count_documents(fields)
    counted: list[tuple[dict[int, int], ...]] = [({}, {}) for _ in documents]
    for term, position, *counts in zip(
        found.terms.tolist(), found.positions.tolist(), *(c.tolist() for c in found.counts), strict=True
    ):
        assert any(counts)
        for field, count in enumerate(counts):
            if count:
                counted[position][field][term] = count
    for position, (text, title) in enumerate(documents):
        for field, value in enumerate((text, title)):
            alone, length = count_terms(value)
            assert counted[position][field] == alone
            assert found.lengths[field, position] == length


@given(st.lists(TEXTS, max_size=8))
def test_rows_ascend_by_term_and_then_by_document(texts: list[str]) -> None:
    found = count_documents([texts])
    pairs = list(zip(found.terms.tolist(), found.positions.tolist(), strict=True))
    assert pairs == sorted(set(pairs))


def test_no_documents_have_no_terms() -> None:
    found = count_documents([[], []])
    assert found.lengths.shape == (2, 0)
    assert len(found.terms) == len(found.positions) == 0
    assert found.terms.dtype == np.uint64
