"""A process killed at any time loses no committed write and leaves no partial batch."""

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

from .helpers import assert_contains_exactly, versioned_record, word

TESTS = Path(__file__).resolve().parent.parent

State = dict[str, int]
"""The version number of each record, by id."""


def apply_write(state: State, write: str) -> State:
    change = json.loads(write)
    kept = {name: number for name, number in state.items() if name not in change["removed"]}
    return {**kept, **change["added"]}


def run_until_killed(
    target: str, state: State, round_: int, first: int, flush_at: int
) -> tuple[State, State, int]:
    """Run a writer and kill it. Returns the committed state, the possible state if the last write was committed too,
    and the last version number."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "stores.writer_process", target),
            *(str(round_), str(first), str(flush_at), json.dumps(sorted(state))),
        ],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    rng = random.Random(f"kill {round_}")
    lines = [process.stdout.readline() for _ in range(rng.randrange(1, 30))]
    time.sleep(rng.random() * 0.02)  # the kill must hit at a random time; nothing is waited for
    process.kill()
    lines += process.stdout.readlines()
    process.wait()
    committed, possible = state, state
    for line in lines:
        if not line.endswith("\n"):
            continue  # the process was killed in the middle of the line
        event, write = line.split(" ", 1)
        possible = apply_write(committed, write)
        if event == "done":
            committed = possible
        first = max([first, *json.loads(write)["added"].values()])
    return committed, possible, first


def records_of(state: State) -> dict[str, Record]:
    return {name: versioned_record(name, number) for name, number in state.items()}


def kill_repeatedly(target: str, rounds: range) -> None:
    """Kill a writer in each round, and compare the database with what it had confirmed."""
    state: State = {}
    number = 0
    for round_ in rounds:
        flush_at = 1 + round_ % 8
        committed, possible, number = run_until_killed(target, state, round_, number, flush_at)
        with sennit.open(target, store__flush_at=1000) as db:
            # A server may still be committing for the killed process; a write waits for it.
            assert db.remove(["nobody"]) == 0
            kept = {record.id: record for record in db}
            assert kept in (records_of(committed), records_of(possible)), f"round {round_}"
            state = possible if kept == records_of(possible) else committed
            gone = sorted(set(range(max(0, number - 40), number + 1)) - set(state.values()))
            assert_contains_exactly(db, records_of(state), map(word, gone))
            assert not db.store.notices, db.store.notices


def test_committed_writes_survive_a_kill(tmp_path: Path) -> None:
    kill_repeatedly(str(tmp_path / "db"), range(3))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_committed_writes_survive_forty_kills(tmp_path: Path) -> None:
    kill_repeatedly(str(tmp_path / "db"), range(100, 140))
