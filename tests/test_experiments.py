"""Experiments: who takes part, what is shown, what counts, and when a winner is called."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Caller, Database
from sennit.errors import Conflict, InvalidInput, NotFound
from sennit.evaluation.experiments import report_experiment
from sennit.evaluation.sequential import log_e_values
from sennit.ranking.interleaving import CONTROL, TREATMENT, team_draft
from sennit.repositories.experiments import Experiment, ExperimentStore
from sennit.repositories.feedback import FeedbackOwner
from sennit.testing.naive import naive_backend

ANA = Caller(name="ana")


def experiment(**values: object) -> Experiment:
    return Experiment(**{"name": "x", "control": "a", "treatment": "b", "seed": "s", **values})  # type: ignore[arg-type]


# Interleaving

_rankings = st.lists(st.integers(0, 30), max_size=15, unique=True)
_coins = st.lists(st.booleans(), min_size=1, max_size=8).map(cycle)


@given(_rankings, _rankings, st.integers(1, 20), _coins)
def test_a_draft_keeps_the_order_of_both_rankings(
    control: list[int], treatment: list[int], limit: int, coins: Iterator[bool]
) -> None:
    picks = team_draft(control, treatment, limit, coins)
    shown = [(treatment if pick.team == TREATMENT else control)[pick.place] for pick in picks]
    assert len(set(shown)) == len(shown) == min(limit, len({*control, *treatment}))
    for team in (CONTROL, TREATMENT):
        indexes = [pick.place for pick in picks if pick.team == team]
        assert indexes == sorted(indexes)
    # After each round the sides are even, as long as both have results left.
    counts = Counter(pick.team for pick in picks[: 2 * min(len(control), len(treatment), limit) // 2])
    left = min(len(set(control) - set(treatment)), len(set(treatment) - set(control)))
    if left >= limit:
        assert abs(counts[CONTROL] - counts[TREATMENT]) <= 1


def test_equal_rankings_stay_as_they_are() -> None:
    ranking = ["a", "b", "c", "d"]
    picks = team_draft(ranking, ranking, 4, cycle([True, False]))
    assert [pick.place for pick in picks] == [0, 1, 2, 3]
    assert [pick.team for pick in picks] == [TREATMENT, CONTROL, CONTROL, TREATMENT]


# Assignment


def test_assignment_is_stable_and_balanced() -> None:
    half = experiment(share=0.3)
    units = [f"user {number}" for number in range(4000)]
    part = [half.takes_part(unit) for unit in units]
    assert part == [half.takes_part(unit) for unit in units]
    assert 0.27 < np.mean(part) < 0.33
    assert all(experiment(share=1.0).takes_part(unit) for unit in units[:100])
    other = [experiment(share=0.3, seed="t").takes_part(unit) for unit in units]
    assert 0.06 < np.mean(np.array(part) & np.array(other)) < 0.12


def test_coins_are_fair_and_the_same_for_the_same_query() -> None:
    one = experiment()
    first = [next(one.coins("ana", f"query {number}")) for number in range(4000)]
    assert 0.47 < np.mean(first) < 0.53
    coins, again = one.coins("ana", "How  do I?"), one.coins("ana", "how do i?")
    assert [next(coins) for _ in range(200)] == [next(again) for _ in range(200)]


def test_the_unit_is_the_user_or_the_session() -> None:
    owner, other = FeedbackOwner.of(ANA), FeedbackOwner.of(Caller(name="ana", tenant="t"))
    by_user, by_session = experiment(), experiment(unit="session")
    assert by_user.unit_of(owner, "ana", "1") == by_user.unit_of(owner, "ana", "2")
    assert by_user.unit_of(owner, "ana", "") != by_user.unit_of(other, "ana", "")
    assert by_user.unit_of(owner, "", "1") == ""
    assert by_session.unit_of(owner, "ana", "1") != by_session.unit_of(owner, "ana", "2")
    assert by_session.unit_of(owner, "ana", "") == ""


# The repository


def test_at_most_one_experiment_runs() -> None:
    backend = naive_backend()
    store = ExperimentStore(backend.records)
    first = store.start(experiment(name="first"))
    assert first.is_active
    with pytest.raises(Conflict, match="'first' runs"):
        store.start(experiment(name="second"))
    with pytest.raises(Conflict, match="already"):
        store.start(experiment(name="first"))
    ended = store.stop("first")
    assert store.stop("first") == ended
    second = store.start(experiment(name="second"))
    assert second.seed != first.seed
    assert [one.name for one in store.all()] == ["first", "second"]
    with pytest.raises(NotFound):
        store.stop("third")
    backend.records.close()


@pytest.mark.parametrize(
    "values",
    [
        {"name": ""},
        {"name": "a\n"},
        {"treatment": "a"},
        {"unit": "tab"},
        {"share": 0},
        {"share": 1.1},
        {"alpha": 1},
        {"alpha": True},
    ],
)
def test_an_experiment_that_makes_no_sense_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        experiment(**values)


# Searches


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with sennit.open(tmp_path / "db", privacy__open=True) as db:
        db.add(
            [
                {"id": f"r{at}", "text": f"vines {'grapes ' * (at % 5)}row {at} wine cellar"}
                for at in range(40)
            ]
        )
        yield db


def test_a_search_in_an_experiment_shows_both_recipes(db: Database) -> None:
    alone = {
        name: [hit.id for hit in db.search("grapes vines", recipe=name)] for name in ("keyword", "vector")
    }
    db.experiments.start("e", "keyword", "vector")
    result = db.search("grapes vines", recipe="keyword", caller=ANA)
    assert [hit.rank for hit in result] == list(range(1, 11))
    assert {hit.id for hit in result} <= {*alone["keyword"], *alone["vector"]}
    assert "team" not in str(result.to_dict())
    assert db.search("grapes vines", recipe="keyword", caller=ANA).to_dicts() == result.to_dicts()
    (found, _) = db.feedback.read(caller=ANA)
    assert found.query.experiment == "e"
    assert found.query.object_ids == tuple(hit.id for hit in result)
    assert Counter(hit.team for hit in found.query.shown) == {CONTROL: 5, TREATMENT: 5}
    for team, name in ((CONTROL, "keyword"), (TREATMENT, "vector")):
        own = [hit.object_id for hit in found.query.shown if hit.team == team]
        assert own == [one for one in alone[name] if one in own]


def test_each_search_of_nobody_is_a_unit_of_its_own(db: Database) -> None:
    """With the same coins each time, everybody's first choice for a query would count for the same recipe."""
    begun = db.experiments.start("e", "keyword", "vector", share=0.5)
    for _ in range(80):
        result = db.search("grapes vines", recipe="keyword")
        db.feedback.add(result, "click", result[0])
    found = [one for one in db.feedback.read() if one.query.experiment]
    assert 10 < len(found) < 70
    assert {one.query.shown[0].team for one in found} == {CONTROL, TREATMENT}
    assert len(report_experiment(begun, found).outcomes) == len(found)


def test_a_search_in_an_experiment_names_what_failed_in_either_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "sennit.toml"
    config.write_text('[recipes.mine]\nbase = "rrf"\nstages = [{stage = "learned", ranker = "missing"}]\n')
    monkeypatch.setenv("SENNIT_CONFIG", str(config))
    with sennit.open(":memory:") as db:
        db.add([{"id": "a", "text": "vines"}, {"id": "b", "text": "grapes of the vines"}])
        db.experiments.start("e", "rrf", "mine")
        assert [one.source for one in db.search("vines", recipe="rrf").degraded] == ["learned"]


def test_other_searches_are_no_part_of_an_experiment(db: Database) -> None:
    db.experiments.start("e", "keyword", "vector")
    db.search("vines")
    db.search("vines", recipe="vector")
    db.search("vines", recipe="keyword", explain=True)
    db.search_many(["vines"], recipe="keyword")
    assert db.feedback.read(everything=True) == ()
    db.experiments.stop("e")
    db.search("vines", recipe="keyword")
    assert db.feedback.read(everything=True) == ()


def test_another_process_notices_an_experiment(db: Database) -> None:
    assert db.path is not None
    with sennit.open(db.path) as other:
        other.experiments.start("e", "keyword", "vector", share=0.5)
        db._experiment_watch.refresh()  # as if five seconds had passed
        for number in range(20):
            db.search("vines", recipe="keyword", caller=Caller(name=f"u{number}", everything=True))
        assert 2 <= len(db.feedback.read(everything=True)) <= 18


def test_an_experiment_needs_recipes_that_it_can_interleave(db: Database) -> None:
    with pytest.raises(NotFound):
        db.experiments.start("e", "keyword", "no-such")
    with pytest.raises(InvalidInput, match="by page"):
        db.experiments.start("e", "default", "docs")
    with pytest.raises(NotFound, match="Experiments: none"):
        db.experiments.get()
    with (
        sennit.open(":memory:", feedback__record="off") as silent,
        pytest.raises(InvalidInput, match="needs feedback"),
    ):
        silent.experiments.start("e", "keyword", "vector")


def test_only_the_first_choice_for_a_query_counts(db: Database) -> None:
    begun = db.experiments.start("e", "keyword", "vector")
    result = db.search("grapes vines", recipe="keyword", caller=ANA)
    again = db.search("Grapes  vines", recipe="keyword", caller=ANA)
    other = db.search("cellar", recipe="keyword", caller=ANA)
    refused = db.search("a wine cellar", recipe="keyword", caller=ANA)
    for found, hit in ((result, result[1]), (refused, refused[0])):
        db.feedback.add(found.query_id, "reject", hit.id, caller=ANA)
    for found in (result, again, other):
        for hit in found[:3]:
            db.feedback.add(found.query_id, "click", hit.id, caller=ANA)
    report = report_experiment(begun, db.feedback.read(everything=True))
    assert (report.searches, len(report.outcomes)) == (4, 2), "a rejected result is no choice"
    assert report.winner is None
    assert report.to_dict()["wins"] == {"keyword": report.losses, "vector": report.wins}
    assert "<svg" in report.to_svg()


def test_the_first_choice_is_that_which_was_made_first(db: Database) -> None:
    begun = db.experiments.start("e", "keyword", "vector")
    first, second = (db.search("grapes vines", recipe="keyword", caller=ANA) for _ in range(2))
    shown = db.feedback.read(caller=ANA)[0].query.shown
    choices = {
        team: next(hit.object_id for hit in shown if hit.team == team) for team in (CONTROL, TREATMENT)
    }
    db.feedback.add(second, "click", choices[TREATMENT], caller=ANA)
    db.feedback.add(first, "click", choices[CONTROL], caller=ANA)
    assert report_experiment(begun, db.feedback.read(caller=ANA)).outcomes == (True,)


def test_the_better_recipe_wins(db: Database) -> None:
    begun = db.experiments.start("e", "keyword", "vector")
    for number in range(40):
        caller = Caller(name=f"u{number}", everything=True)
        result = db.search("grapes vines", recipe="keyword", caller=caller)
        shown = db.feedback.read(caller=caller)[0].query.shown
        best = next(hit.object_id for hit in shown if hit.team == TREATMENT)
        db.feedback.add(result.query_id, "use", best, caller=caller)
    report = report_experiment(begun, db.feedback.read(everything=True))
    assert report.winner == "vector"
    assert report.decided_at is not None
    assert report.decided_at < 20
    assert report.interval.low > 0.5


# Simulated users, with the real draft


def simulate(runs: int, queries: int, useful_to_treatment: int) -> list[bool]:
    """Whether each run calls a winner, looked at after each query.

    A user looks at each place less often than at the one before, and chooses the first useful result seen. Both
    rankings have the same ten results; the treatment has the useful one at another place.
    """
    rng = random.Random(7)
    called = []
    for run in range(runs):
        one = experiment(seed=str(run))
        wins = []
        for query in range(queries):
            control = list(range(10))
            treatment = list(range(10))
            treatment.insert(useful_to_treatment, treatment.pop(4))
            picks = team_draft(control, treatment, 10, one.coins("u", str(query)))
            for place, pick in enumerate(picks):
                shown = (treatment if pick.team == TREATMENT else control)[pick.place]
                if rng.random() < 1 / (1 + place) and rng.random() < (0.9 if shown == 4 else 0.1):
                    wins.append(pick.team == TREATMENT)
                    break
        counts = np.cumsum(wins, dtype=np.int64)
        losses = np.arange(1, len(wins) + 1) - counts
        called.append(bool((log_e_values(counts, losses) >= np.log(20)).any()))
    return called


def test_equal_recipes_have_a_winner_in_at_most_five_percent_of_simulated_runs() -> None:
    assert np.mean(simulate(1000, 60, 4)) <= 0.05


@pytest.mark.slow
def test_equal_recipes_have_a_winner_in_at_most_five_percent_of_long_runs() -> None:
    assert np.mean(simulate(1000, 1000, 4)) <= 0.05


def test_a_better_recipe_is_found_by_simulated_users() -> None:
    assert np.mean(simulate(20, 600, 0)) >= 0.9
