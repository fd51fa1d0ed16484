"""A process killed at any moment loses nothing that it had confirmed, and leaves no half of a batch."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sennit
from sennit import Record

from .helpers import assert_holds, numbered, word

TESTS = Path(__file__).resolve().parent.parent

State = dict[str, int]
"""Id to the number of its version."""


def after(state: State, step: str) -> State:
    change = json.loads(step)
    kept = {name: number for name, number in state.items() if name not in change["out"]}
    return {**kept, **change["put"]}


def killed(folder: Path, state: State, round_: int, first: int, fold_at: int) -> tuple[State, State, int]:
    """Let a process write and kill it: what it confirmed, what it may have done besides, and its last number."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "stores.writer_process", str(folder)),
            *(str(round_), str(first), str(fold_at), json.dumps(sorted(state))),
        ],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    chance = random.Random(f"kill {round_}")
    lines = [process.stdout.readline() for _ in range(chance.randrange(1, 30))]
    time.sleep(chance.random() * 0.02)  # the moment of the kill is the subject, not something waited for
    process.kill()
    lines += process.stdout.readlines()
    process.wait()
    confirmed, possible = state, state
    for line in lines:
        if not line.endswith("\n"):
            continue  # the kill came in the middle of the line
        word_, step = line.split(" ", 1)
        possible = after(confirmed, step)
        if word_ == "done":
            confirmed = possible
        first = max([first, *json.loads(step)["put"].values()])
    return confirmed, possible, first


def records_of(state: State) -> dict[str, Record]:
    return {name: numbered(name, number) for name, number in state.items()}


def survive(folder: Path, rounds: range) -> None:
    state: State = {}
    number = 0
    for round_ in rounds:
        fold_at = 1 + round_ % 8
        confirmed, possible, number = killed(folder, state, round_, number, fold_at)
        with sennit.open(folder, store__fold_at=1000) as db:
            kept = {record.id: record for record in db}
            assert kept in (records_of(confirmed), records_of(possible)), f"round {round_}"
            state = possible if kept == records_of(possible) else confirmed
            gone = sorted(set(range(max(0, number - 40), number + 1)) - set(state.values()))
            assert_holds(db, records_of(state), map(word, gone))
            assert not db.store.notices, db.store.notices


def test_what_was_confirmed_survives_a_kill(tmp_path: Path) -> None:
    survive(tmp_path / "db", range(3))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_confirmed_survives_forty_kills(tmp_path: Path) -> None:
    survive(tmp_path / "db", range(100, 140))
