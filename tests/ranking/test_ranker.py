"""A ranker is text: it is read back as it was, and a hostile file gets a clear error."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.errors import InvalidInput
from sennit.ranking.ranker import MAX_RANKER_BYTES, Ranker, RankerScope, Training, ranker_from_json
from sennit.ranking.trees import Tree, TreeSum

NAMES = ("score", "length")


def make_ranker(**changes: Any) -> Ranker:
    tree = Tree((0,), (0.5,), (-1,), (-2,), (True,), (1.0, 2.0), (1.25,))
    values: dict[str, Any] = {
        "name": "mine",
        "features_version": 2,
        "feature_names": NAMES,
        "trees": TreeSum([tree], 2),
        "base_feature": "score",
        "base_weight": 10.0,
        "training": Training(
            recipe="default", recipe_digest="d", model="m", contract=2, data="feedback", queries=3
        ),
        "evidence": {"difference": 0.1},
        "created": "2026-01-01T00:00:00+00:00",
    }
    return Ranker(**{**values, **changes})


def as_json(**changes: Any) -> str:
    return json.dumps({**json.loads(make_ranker().to_json()), **changes})


def test_a_ranker_is_read_back_as_it_was() -> None:
    ranker = make_ranker(
        training=Training(
            recipe="default",
            recipe_digest="d",
            model=None,
            contract=2,
            data="feedback",
            queries=3,
            scope=RankerScope("acme", "me"),
            examination={"curve": [1.0, 0.5]},
        )
    )
    read = ranker_from_json(ranker.to_json(), NAMES)
    assert read.to_json() == ranker.to_json()
    features = np.array([[0.2, 1.0], [0.7, 1.0], [np.nan, 1.0]])
    assert read.scores(features).tolist() == ranker.scores(features).tolist() == [3.0, 9.0, 1.0]
    assert read.training == ranker.training


def test_shares_name_what_each_feature_adds() -> None:
    shares = make_ranker().shares(np.array([[0.2, 1.0], [0.7, 1.0]]))
    assert shares.tolist() == [[2.0 - 0.25, 0.0], [7.0 + 0.75, 0.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no ranker"),
        (" " * (MAX_RANKER_BYTES + 1), "are allowed"),
        (as_json(format="pickle"), "no ranker"),
        (as_json(version=2), "train it again"),
        (as_json(feature_names=["score", "size"]), "'size', which this program does not know"),
        (as_json(feature_names=["length", "score"]), "in their order"),
        (as_json(feature_names=["score", "score"]), "different names"),
        (as_json(feature_names="score"), "list of names"),
        (as_json(base={"feature": "rank", "weight": 1}), "no feature of it"),
        (as_json(base={"feature": "score", "weight": "1"}), "must be a number"),
        (as_json(base={"feature": "score", "weight": 1e200}), "must be a number"),
        (as_json(trees={}), "list of objects"),
        (as_json(trees=[{}]), "no 'features'"),
        (as_json(trees=[{"features": 1}]), "must be a list"),
        (as_json(name=""), "printable"),
        (as_json(training=[]), "must be an object"),
        (as_json(training={}), "no 'scope'"),
        (as_json(features_version=-1), "whole number"),
        (make_ranker().to_json().replace("0.5", "NaN"), "NaN is not a number of JSON"),
        (make_ranker().to_json().replace("0.5", "1e999"), "not a finite number"),
        (make_ranker().to_json().replace('"left": [-1]', '"left": [0]'), "neither a later node nor a leaf"),
    ],
)
def test_a_hostile_file_gets_a_clear_error(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ranker_from_json(text, NAMES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(json.loads(make_ranker().to_json()))), JSON)
def test_any_value_in_any_place_is_read_or_refused(name: str, value: Any) -> None:
    with contextlib.suppress(InvalidInput):
        ranker_from_json(as_json(**{name: value}), NAMES)


@given(st.sampled_from(["features", "thresholds", "left", "right", "missing_left", "leaves", "means"]), JSON)
def test_any_value_in_a_tree_is_read_or_refused(name: str, value: Any) -> None:
    tree = json.loads(make_ranker().to_json())["trees"][0]
    with contextlib.suppress(InvalidInput):
        ranker_from_json(as_json(trees=[{**tree, name: value}]), NAMES)


def test_a_ranker_says_whose_feedback_it_is_made_of() -> None:
    assert RankerScope().about == "everyone"
    assert "'acme'" in RankerScope("acme").about
    assert "one caller" in RankerScope("acme", "me").about
    assert RankerScope("acme", "me").admits("acme", "me")
    assert not RankerScope("acme", "me").admits("acme", "you")
    assert not RankerScope("acme").admits("other", "me")
    assert RankerScope().admits("other", "you")


def test_a_ranker_says_what_differs_from_its_training() -> None:
    training = make_ranker().training
    assert training.difference("d", "m", 2) == ""
    assert "another form of the recipe 'default'" in training.difference("e", "m", 2)
    assert "embedding model m" in training.difference("d", "n", 2)
    assert "ranking contract" in training.difference("d", "m", 3)
