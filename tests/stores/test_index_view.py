"""Where the records of a segment are."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from sennit.stores.embedded.vector_math import Float16Vectors
from sennit.stores.embedded.vector_segment import VectorSegment

ROWS = st.lists(st.integers(1, 40), unique=True, max_size=20)


def segment_of(rows: list[int]) -> VectorSegment:
    return VectorSegment(np.array(rows, np.int64), Float16Vectors(np.zeros((len(rows), 4), np.float16)), None)


@given(ROWS, ROWS)
@example([5, 6, 7], [4, 5, 7, 8])  # without gaps
@example([5, 7, 9], [4, 5, 6, 9, 10])
@example([5, 7, 6, 8], [4, 5, 6, 7, 8, 9])  # a late vector: without gaps, but not in order
def test_rows_are_found_with_gaps_and_without_and_in_any_order(rows: list[int], wanted: list[int]) -> None:
    found = segment_of(rows).find_rows(np.array(wanted, np.int64))
    places = {row: place for place, row in enumerate(rows)}
    assert found.tolist() == [places.get(row, -1) for row in wanted]
