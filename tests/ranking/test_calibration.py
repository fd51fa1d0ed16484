"""The calibrated scale: a cosine means the same for every model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.calibration import (
    MAX_BACKGROUND,
    RESOLUTION,
    TRUE_ANSWERS_50,
    TRUE_ANSWERS_95,
    WORD_MODEL_RESOLUTION,
    Background,
    CosineSample,
)

backgrounds = st.floats(-0.2, MAX_BACKGROUND)
cosines = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20)


@given(backgrounds, cosines)
def test_the_normalised_value_keeps_the_order_and_is_never_negative(mean: float, given: list[float]) -> None:
    values = Background(mean).normalise(np.sort(np.array(given)))
    assert (values >= 0).all()
    assert (np.diff(values) >= 0).all()


@given(backgrounds)
def test_the_background_has_no_lift_and_the_same_text_has_all_of_it(mean: float) -> None:
    assert Background(mean).lift(np.array([mean, 1.0])) == pytest.approx([0.0, 1.0])


@given(st.floats(0.0, 0.9), st.floats(0.0, 0.9), st.floats(0.0, 1.0))
def test_two_models_agree_on_the_same_lift(first: float, second: float, lift: float) -> None:
    values = [Background(mean).normalise(np.array([mean + lift * (1 - mean)]))[0] for mean in (first, second)]
    assert values[0] == pytest.approx(values[1], abs=1e-9)


@given(backgrounds)
def test_the_similarity_is_05_and_07_where_most_and_half_of_true_answers_are_nearer(mean: float) -> None:
    at = np.array([mean + lift * (1 - mean) for lift in (0.0, TRUE_ANSWERS_95, TRUE_ANSWERS_50, 1.0)])
    assert Background(mean).similarity(at) == pytest.approx([0.0, 0.5, 0.7, 1.0])


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
