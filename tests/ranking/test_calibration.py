"""The calibrated scale: a cosine means the same for every model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.calibration import (
    MAX_BACKGROUND,
    RELATED_COVERAGE,
    RELATED_SIMILARITY,
    RESOLUTION,
    TRUE_ANSWERS_50,
    TRUE_ANSWERS_95,
    WORD_MODEL_RESOLUTION,
    Background,
    CosineSample,
    relatedness,
)

backgrounds = st.floats(-0.2, MAX_BACKGROUND)
cosines = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20)


@given(backgrounds, cosines)
def test_the_normalised_value_keeps_the_order_and_is_never_negative(mean: float, given: list[float]) -> None:
    values = Background(mean).normalise(np.sort(np.array(given)))
    assert (values >= 0).all()
    assert (np.diff(values) >= -1e-15).all()  # equal to the last bit but one


@given(backgrounds)
def test_the_background_has_no_lift_and_the_same_text_has_all_of_it(mean: float) -> None:
    assert Background(mean).lift(np.array([mean, 1.0])) == pytest.approx([0.0, 1.0])


@given(st.floats(0.0, 0.9), st.floats(0.0, 0.9), st.floats(0.0, 1.0))
def test_two_models_agree_on_the_same_lift(first: float, second: float, lift: float) -> None:
    values = [Background(mean).normalise(np.array([mean + lift * (1 - mean)]))[0] for mean in (first, second)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


@given(backgrounds)
def test_the_distance_is_05_and_03_where_most_and_half_of_true_answers_are_nearer(mean: float) -> None:
    at = np.array([mean + lift * (1 - mean) for lift in (0.0, TRUE_ANSWERS_95, TRUE_ANSWERS_50, 1.0)])
    assert Background(mean).similarity(at) == pytest.approx([0.0, 0.75, 0.85, 1.0])
    assert Background(mean).distance(at) == pytest.approx([2.0, 0.5, 0.3, 0.0])


@given(backgrounds, cosines)
def test_what_is_near_enough_for_a_file_is_related_enough_for_a_plan(mean: float, given: list[float]) -> None:
    background = Background(mean)
    near = background.distance(np.array(given)) < 0.5
    related = background.similarity(np.array(given)) > RELATED_SIMILARITY
    assert (related | ~near).all()


shares = st.floats(0.0, 1.0)


@given(shares, shares, shares)
def test_words_meaning_and_relevance_never_make_a_text_less_related(
    similarity: float, coverage: float, relevance: float
) -> None:
    (value,) = relatedness(np.array([similarity]), np.array([coverage]), np.array([relevance]), 0.18)
    assert similarity <= value <= 1
    if coverage > RELATED_COVERAGE or relevance >= 0.18:
        assert value > RELATED_SIMILARITY


def test_words_and_meaning_together_relate_what_neither_does_alone() -> None:
    similarity, coverage = np.array([0.6, 0.6, 0.0]), np.array([0.3, 0.0, 0.3])
    related = relatedness(similarity, coverage, np.zeros(3), 0.18) > RELATED_SIMILARITY
    assert related.tolist() == [True, False, False]


def test_records_that_are_known_to_be_related_are_no_background() -> None:
    sample = CosineSample(0.3, 20).without(np.full(10, 0.5), 1.0)
    assert sample.mean == pytest.approx(0.1)
    assert sample.records == 10
    assert CosineSample(0.3, 300).without(np.full(10, 0.5), 0.003).mean == pytest.approx(0.3, abs=1e-3)
    assert CosineSample(0.5, 10).without(np.full(10, 0.5), 1.0) == (0.0, 0)


def test_a_small_sample_leans_on_the_usual_background_of_a_known_model() -> None:
    one_record = Background.estimate("onnx/bge-small", CosineSample(0.8, 1))
    many = Background.estimate("onnx/bge-small", CosineSample(0.8, 300))
    unknown = Background.estimate("ollama/some-model", CosineSample(0.8, 1))
    assert one_record.mean == pytest.approx((0.8 + 10 * 0.47) / 11)
    assert many.mean == pytest.approx(0.8, abs=0.02)
    assert unknown.mean == 0.8


def test_without_any_record_the_background_is_the_usual_one_or_0() -> None:
    assert Background.estimate("onnx/e5-small", CosineSample(0.0, 0)).mean == 0.74
    assert Background.estimate("ollama/some-model", CosineSample(0.0, 0)).mean == 0.0


def test_word_vectors_have_half_the_voice() -> None:
    sample = CosineSample(0.1, 300)
    assert Background.estimate("static/sennit-static-256", sample).resolution == WORD_MODEL_RESOLUTION
    assert Background.estimate("openai/text-embedding-3-small", sample).resolution == RESOLUTION


def test_a_database_of_equal_texts_still_has_a_scale() -> None:
    assert Background.estimate("ollama/x", CosineSample(1.0, 300)).mean == MAX_BACKGROUND
