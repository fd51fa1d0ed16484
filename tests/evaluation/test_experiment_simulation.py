"""Whole experiments with the real team draft, the real report and simulated people who look after every query."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from sennit.evaluation.sequential import log_e_values
from sennit.ranking.interleaving import TREATMENT, team_draft
from sennit.repositories.experiments import Experiment

ALPHA = 0.05
RUNS = 1000
DOCUMENTS = 30
SHOWN = 10

STOP = -math.log(ALPHA)


def rank(rng: random.Random, relevant: set[int], noise: float) -> list[int]:
    """A recipe: relevant documents have a higher score, with noise."""
    return sorted(range(DOCUMENTS), key=lambda one: -((one in relevant) + rng.gauss(0, noise)))[:SHOWN]


def click(rng: random.Random, shown: list[int], relevant: set[int]) -> int | None:
    """The first document that somebody chooses, from the top: a relevant one mostly, another one seldom."""
    for place, one in enumerate(shown):
        if rng.random() > 0.95**place:
            return None  # gives up
        if rng.random() < (0.7 if one in relevant else 0.05):
            return place
    return None


def decisions_until_winner(
    run: int, control_noise: float, treatment_noise: float, most: int
) -> tuple[int, bool]:
    """Search, click and look at the evidence after every decision; return how many there were, and the winner."""
    rng = random.Random(run)
    experiment = Experiment(name="x", control="a", treatment="b", seed=str(run), alpha=ALPHA)
    wins: list[bool] = []
    for query in range(most):
        relevant = set(rng.sample(range(DOCUMENTS), 3))
        control, treatment = (rank(rng, relevant, noise) for noise in (control_noise, treatment_noise))
        picks = team_draft(control, treatment, SHOWN, experiment.coins("user", f"query {query}"))
        shown = [(treatment if pick.team == TREATMENT else control)[pick.place] for pick in picks]
        place = click(rng, shown, relevant)
        if place is not None:
            wins.append(picks[place].team == TREATMENT)
    won = np.cumsum(wins, dtype=np.int64)
    evidence = log_e_values(won, np.arange(1, len(wins) + 1) - won)
    called = np.flatnonzero(evidence >= STOP)
    if not len(called):
        return 0, False
    at = int(called[0])
    return at + 1, bool(2 * won[at] > at + 1)


@pytest.mark.slow
def test_equally_good_recipes_have_a_winner_in_at_most_five_percent_of_runs() -> None:
    called = sum(decisions_until_winner(run, 0.7, 0.7, 400)[0] > 0 for run in range(RUNS))
    assert called / RUNS <= ALPHA


@pytest.mark.slow
def test_a_better_recipe_is_found() -> None:
    """The number of decisions that it took is in docs/how-to/learn-from-use.md."""
    found = [decisions_until_winner(5000 + run, 0.9, 0.5, 1000) for run in range(100)]
    assert all(decisions and treatment_won for decisions, treatment_won in found)
    assert np.median([decisions for decisions, _ in found]) < 200
