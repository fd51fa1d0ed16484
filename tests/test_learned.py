"""The stage `learned`: a ranker orders the candidates of a recipe, or the answer says why it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

import sennit
from sennit.engine import Database
from sennit.errors import AccessDenied, InvalidInput, NotFound
from sennit.pipeline import CONTRACT_VERSION
from sennit.ranking.features import BASE_FEATURE, FEATURE_NAMES, FEATURES_VERSION, trace_features
from sennit.ranking.learned import Learned
from sennit.ranking.ranker import EVERYONE, Ranker, RankerScope, Training
from sennit.ranking.trees import Tree, TreeSum
from sennit.recipes import Recipe, digest_recipe, recipe_from_dict
from sennit.repositories.feedback import FeedbackOwner
from sennit.repositories.keys import encode_key
from sennit.stores.contract import BM25

ANA = sennit.Caller(name="ana", scopes={"me"})
BEN = sennit.Caller(name="ben", scopes={"me"})

RECORDS = [
    sennit.Record(id="short", text="Prune the vines in March."),
    sennit.Record(id="long", text="The garden has vines, " + "a wall, a gate and a bench, " * 20),
    sennit.Record(
        id="dated", text="In March the vines were pruned.", timestamp=datetime(2026, 3, 1, tzinfo=UTC)
    ),
    sennit.Record(id="other", text="Grapes are harvested in autumn."),
]


@pytest.fixture
def db() -> Iterator[Database]:
    with sennit.open(":memory:") as database:
        database.add(RECORDS)
        yield database


def make_ranker(db: Database, feature: str = "log_length", **changes: Any) -> Ranker:
    """A ranker that puts long texts first."""
    model = db.search("vines", explain=True).trace
    assert model is not None
    tree = Tree((FEATURE_NAMES.index(feature),), (4.0,), (-1,), (-2,), (True,), (-50.0, 50.0), (0.0,))
    training = Training(
        recipe="default",
        recipe_digest=digest_recipe(db.recipes["default"], BM25()),
        model=str(model.state["model"]),
        contract=CONTRACT_VERSION,
        data="feedback",
        queries=10,
        scope=changes.pop("scope", EVERYONE),
    )
    values: dict[str, Any] = {
        "name": "mine",
        "features_version": FEATURES_VERSION,
        "feature_names": FEATURE_NAMES,
        "trees": TreeSum([tree], len(FEATURE_NAMES)),
        "base_feature": BASE_FEATURE,
        "base_weight": 10.0,
        "training": training,
    }
    return Ranker(**{**values, **changes})


def learned_recipe(db: Database, **options: Any) -> Recipe:
    base = db.recipes["default"]
    return replace(base, name="learned", stages=(*base.stages, Learned("mine", **options)))


def test_a_ranker_orders_the_candidates_and_explains_itself(db: Database) -> None:
    recipe = learned_recipe(db)
    assert db.search("prune vines in march")[0].id != "long"
    db.rankers.add(make_ranker(db))
    result = db.search("prune vines in march", recipe=recipe, explain=True)
    assert not result.degraded
    assert result[0].id == "long"
    assert all(0 <= hit.score <= 1 for hit in result)
    assert [hit.id for hit in db.search("prune vines in march", recipe=recipe)] == [hit.id for hit in result]
    assert result[0].explanation is not None
    (adjustment,) = result[0].explanation.adjustments
    assert adjustment.shares["log_length"] == 50.0
    assert BASE_FEATURE in adjustment.to_dict()["shares"]  # type: ignore[operator]
    assert "log_length +50.000" in db.why("prune vines in march", "long", recipe=recipe).reason
    assert result.trace is not None
    assert result.trace.to_dict()["candidates"]


def test_a_recipe_table_names_the_ranker() -> None:
    table = {"base": "default", "stages": [{"stage": "rescore"}, {"stage": "learned", "ranker": "mine"}]}
    recipe = recipe_from_dict("mine", table)
    assert recipe.stages[-1] == Learned("mine")
    assert recipe_from_dict("mine", recipe.to_dict()) == recipe
    with pytest.raises(InvalidInput, match="depth"):
        recipe_from_dict(
            "mine", {"base": "default", "stages": [{"stage": "learned", "ranker": "m", "depth": 0}]}
        )


def test_without_a_ranker_the_recipe_ranks_and_says_so(db: Database) -> None:
    result = db.search("prune vines in march", recipe=learned_recipe(db))
    plain = db.search("prune vines in march")
    assert [(hit.id, hit.score) for hit in result] == [(hit.id, hit.score) for hit in plain]
    (degraded,) = result.degraded
    assert degraded.source == "learned"
    assert "no ranker 'mine'" in degraded.reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"recipe_digest": "other"}, "another form of the recipe"),
        ({"model": "other"}, "embedding model other"),
        ({"contract": CONTRACT_VERSION + 1}, "ranking contract"),
    ],
)
def test_a_ranker_that_was_trained_for_other_searches_is_not_used(
    db: Database, change: dict[str, Any], reason: str
) -> None:
    ranker = make_ranker(db)
    db.rankers.add(replace(ranker, training=replace(ranker.training, **change)))
    result = db.search("prune vines in march", recipe=learned_recipe(db))
    assert result[0].id == db.search("prune vines in march")[0].id
    assert reason in result.degraded[0].reason


def test_a_ranker_over_other_features_is_not_used(db: Database) -> None:
    db.rankers.add(make_ranker(db, features_version=FEATURES_VERSION - 1))
    result = db.search("prune vines in march", recipe=learned_recipe(db))
    assert "of the features" in result.degraded[0].reason
    with pytest.raises(InvalidInput, match="'size', which this program does not know"):
        db.rankers.add(
            make_ranker(db, feature_names=("size", *FEATURE_NAMES[1:]), base_feature=FEATURE_NAMES[1])
        )


@pytest.mark.parametrize("stored", [b"{}", b"\xff", b'{"format": "sennit-ranker", "version": 99}'])
def test_a_stored_ranker_that_cannot_be_read_is_named_and_can_be_removed(db: Database, stored: bytes) -> None:
    scope = RankerScope("acme\0", "ana")
    db.rankers.add(make_ranker(db, scope=scope))
    db.rankers.add(make_ranker(db))
    with db.store.transaction() as transaction:
        key = encode_key("ranker", "mine", "acme\0", "ana")
        assert transaction.state.get(key) is not None
        transaction.state.put([(key, stored)])
    assert [one.training.scope for one in db.rankers.all()] == [RankerScope()]
    (broken,) = db.rankers.unreadable()
    assert (broken.name, broken.scope) == ("mine", scope)
    assert [bool(one.problem) for one in db.status().rankers] == [False, True]
    db.rankers.remove(broken.name, broken.scope)
    assert db.rankers.unreadable() == ()


def test_a_search_says_that_its_ranker_cannot_be_read(db: Database) -> None:
    db.rankers.add(make_ranker(db))
    with db.store.transaction() as transaction:
        transaction.state.put([(encode_key("ranker", "mine", 0, 0), b"\xff")])
    result = db.search("prune vines in march", recipe=learned_recipe(db))
    assert result.hits
    assert "cannot be read" in result.degraded[0].reason


def test_what_is_not_ranked_stays_behind_in_its_order(db: Database) -> None:
    db.rankers.add(make_ranker(db))
    plain = [hit.id for hit in db.search("prune vines in march")]
    result = db.search("prune vines in march", recipe=learned_recipe(db, depth=1))
    assert [hit.id for hit in result] == plain
    scores = [hit.score for hit in result]
    assert scores == sorted(scores, reverse=True)


def test_a_search_has_the_features_that_its_trace_has(db: Database) -> None:
    db.rankers.add(make_ranker(db))
    now = datetime(2026, 5, 1, tzinfo=UTC)
    query = "prune vines in march"
    plain = db.search(query, explain=True, now=now)
    ranked = db.search(query, recipe=learned_recipe(db), explain=True, now=now)
    assert plain.trace is not None
    assert ranked.trace is not None
    by_id = {hit.id: row for hit, row in zip(ranked, trace_features(ranked.trace, ranked.hits), strict=True)}
    expected = {
        hit.id: row for hit, row in zip(plain, trace_features(plain.trace, plain.hits, now), strict=True)
    }
    assert by_id.keys() == expected.keys()
    for name, row in expected.items():
        np.testing.assert_array_equal(by_id[name], row)


def test_each_caller_is_ranked_by_its_own_ranker(db: Database) -> None:
    ana, ben = (FeedbackOwner.of(who) for who in (ANA, BEN))
    db.rankers.add(make_ranker(db, scope=RankerScope(ana.tenant, ana.identity)))
    recipe, query = learned_recipe(db), "prune vines in march"
    assert db.search(query, recipe=recipe, caller=ANA)[0].id == "long"
    others = db.search(query, recipe=recipe, caller=BEN)
    assert others[0].id != "long"
    assert "no ranker" in others.degraded[0].reason
    assert [one.name for one in db.rankers.all(caller=ANA)] == ["mine"]
    assert db.rankers.all(caller=BEN) == ()
    other_tenant = sennit.Caller(name="ana", scopes={"me"}, tenant="acme")
    with pytest.raises(NotFound):
        db.rankers.find("mine", caller=other_tenant)
    with pytest.raises(AccessDenied):
        db.rankers.remove("mine", RankerScope(ana.tenant, ana.identity), caller=BEN)
    db.rankers.add(make_ranker(db, scope=RankerScope(ben.tenant)))
    assert db.search(query, recipe=recipe, caller=BEN)[0].id == "long"
    db.rankers.remove("mine", RankerScope(ana.tenant, ana.identity), caller=ANA)
    assert len(db.rankers.all()) == 1
