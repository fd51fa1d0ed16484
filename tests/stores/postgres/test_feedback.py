"""Feedback and experiments with the records on Postgres, as in a folder."""

from __future__ import annotations

import pytest

import sennit
from sennit import Caller
from sennit.errors import NotFound
from sennit.evaluation.experiments import report_experiment

pytestmark = pytest.mark.servers

ANN, BOB = (Caller(name=name, scopes=frozenset({"public"})) for name in ("ann", "bob"))
RECORDS = [
    {"id": "a", "text": "a boiler", "scope": "public"},
    {"id": "b", "text": "two boilers", "scope": "public"},
]


@pytest.fixture
def database(dsn: str) -> str:
    with sennit.open(dsn) as db:
        db.add(RECORDS)
    return dsn


def test_feedback_of_one_caller_is_invisible_to_another(database: str) -> None:
    with sennit.open(database) as db:
        result = db.search("boiler", caller=ANN)
        db.feedback.add(result, "click", "a", caller=ANN)
        with pytest.raises(NotFound, match="made no search"):
            db.feedback.add(result.query_id, "click", "a", caller=BOB)
    with sennit.open(database) as db:
        assert [one.query.query for one in db.feedback.read(caller=ANN)] == ["boiler"]
        assert db.feedback.read(caller=BOB) == ()
        assert db.feedback.forget(caller=BOB) == 0
        assert len(db.feedback.read(everything=True)) == 1
        assert db.feedback.forget(caller=ANN) == 1
        assert db.feedback.read(everything=True) == ()


def test_an_experiment_counts_the_choices_of_all(database: str) -> None:
    with sennit.open(database) as db:
        db.experiments.start("x", "rrf", "keyword")
        for caller in (ANN, BOB):
            result = db.search("boiler", recipe="rrf", caller=caller)
            db.feedback.add(result, "click", result[0], caller=caller)
    with sennit.open(database) as db:
        report = report_experiment(db.experiments.get(), db.feedback.read(everything=True))
        assert (report.searches, len(report.outcomes)) == (2, 2)
        assert report.winner is None
        assert not db.experiments.stop("x").is_active
