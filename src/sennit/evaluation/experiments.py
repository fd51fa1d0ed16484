"""The report of an experiment: which recipe people choose from, and whether that is decided.

A decision is the first result that a user (or session) chooses for a query; it is a win of the recipe that put the
result into the list. Later choices for the same query count no more, because their coins are known by then. So under
equally good recipes each decision is a fair coin, whatever was observed before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sennit.evaluation.plots import IntervalRow, sequence_svg
from sennit.evaluation.sequential import Interval, confidence_sequence, log_e_values
from sennit.ranking.interleaving import TREATMENT
from sennit.records import Json
from sennit.repositories.experiments import Experiment, normalise_query
from sennit.repositories.feedback import QueryFeedback


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """What an experiment has shown so far."""

    experiment: Experiment
    searches: int
    """Recorded searches that were interleaved."""
    outcomes: tuple[bool, ...]
    """The decisions in their order; True for a win of the treatment."""
    log_e_values: tuple[float, ...]
    """After each decision."""

    @property
    def wins(self) -> int:
        """Decisions for the treatment."""
        return sum(self.outcomes)

    @property
    def losses(self) -> int:
        """Decisions for the control."""
        return len(self.outcomes) - self.wins

    @property
    def decided_at(self) -> int | None:
        """The number of decisions after which a winner was certain enough; None if none is."""
        needed = -math.log(self.experiment.alpha)
        return next((at for at, value in enumerate(self.log_e_values, 1) if value >= needed), None)

    @property
    def winner(self) -> str | None:
        """The name of the recipe that won; None while that is open."""
        at = self.decided_at
        if at is None:
            return None
        treatment_leads = 2 * sum(self.outcomes[:at]) > at
        return self.experiment.treatment if treatment_leads else self.experiment.control

    @property
    def share(self) -> float | None:
        """The share of the decisions that the treatment won."""
        return self.wins / len(self.outcomes) if self.outcomes else None

    @property
    def interval(self) -> Interval:
        """The chance that the treatment wins a decision; valid whenever it is looked at."""
        return confidence_sequence(self.wins, self.losses, self.experiment.alpha)

    @property
    def e_value(self) -> float:
        """The evidence against equally good recipes."""
        return math.exp(min(self.log_e_values[-1], 700.0)) if self.log_e_values else 1.0

    def to_dict(self) -> dict[str, Json]:
        return {
            "experiment": self.experiment.to_dict(),
            "searches": self.searches,
            "decisions": len(self.outcomes),
            "wins": {self.experiment.control: self.losses, self.experiment.treatment: self.wins},
            "share": self.share,
            "interval": list(self.interval),
            "e_value": self.e_value,
            "needed": 1 / self.experiment.alpha,
            "winner": self.winner,
            "decided_at": self.decided_at,
        }

    def to_svg(self) -> str:
        """Return a plot of the confidence sequence over the decisions."""
        wins = np.cumsum(self.outcomes, dtype=np.int64)
        points = [
            _point(int(won), at - int(won), self.experiment.alpha) for at, won in enumerate(wins.tolist(), 1)
        ]
        title = f"{self.experiment.name}: share of decisions for {self.experiment.treatment}"
        return sequence_svg(title, points, 0.5)


def report_experiment(experiment: Experiment, feedback: Iterable[QueryFeedback]) -> ExperimentReport:
    """Return what the recorded feedback says about an experiment."""
    own = [one for one in feedback if one.query.experiment == experiment.name]
    outcomes = _outcomes(experiment, own)
    wins = np.cumsum(outcomes, dtype=np.int64)
    losses = np.arange(1, len(outcomes) + 1) - wins
    return ExperimentReport(experiment, len(own), tuple(outcomes), tuple(log_e_values(wins, losses).tolist()))


def _outcomes(experiment: Experiment, feedback: Sequence[QueryFeedback]) -> list[bool]:
    """Return who won each decision: the team of the first result that was chosen for a query."""
    chosen = sorted(
        (
            (event, one)
            for one in feedback
            for event in one.events
            if event.is_positive and event.object_id in one.query.object_ids
        ),
        key=lambda pair: pair[0].timestamp,
    )
    decided: set[tuple[str, str]] = set()
    out = []
    for event, one in chosen:
        query = one.query
        unit = experiment.unit_of(one.owner, query.user_id, query.session_id) or query.query_id
        key = (unit, normalise_query(query.query))
        if key not in decided:
            decided.add(key)
            out.append(query.shown[query.object_ids.index(event.object_id)].team == TREATMENT)
    return out


def _point(wins: int, losses: int, alpha: float) -> IntervalRow:
    interval = confidence_sequence(wins, losses, alpha)
    return IntervalRow("", interval.low, wins / (wins + losses), interval.high)
