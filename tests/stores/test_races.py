"""Concurrent writers: what a write must know it reads inside its own transaction."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sennit
from sennit.facts import ended_at

WRITERS = 8
WRITES = 100
PROGRAM = Path(__file__).with_name("racing_writer.py")


def race(target: str, kind: str) -> None:
    """Start the writers, let them all begin at once, and wait for their end."""
    commands = [[sys.executable, str(PROGRAM), target, kind, f"w{n}", str(WRITES)] for n in range(WRITERS)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for command in commands
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.wait(timeout=240) for process in processes] == [0] * WRITERS
    for process in processes:
        process.communicate()


def check_turns(target: str) -> None:
    with sennit.open(target, embedding__provider="none", privacy__open=True) as db:
        positions = sorted(record.position for record in db if record.position is not None)
    assert positions == list(range(WRITERS * WRITES))


def check_facts(target: str) -> None:
    with sennit.open(target, embedding__provider="none", privacy__open=True) as db:
        facts = list(db)
    assert len(facts) == WRITERS * WRITES
    assert len([fact for fact in facts if ended_at(fact) is None]) == 1


@pytest.mark.slow
def test_eight_processes_give_each_turn_of_a_session_its_own_position(tmp_path: Path) -> None:
    target = str(tmp_path / "db")
    sennit.open(target, embedding__provider="none").close()
    race(target, "turns")
    check_turns(target)


@pytest.mark.slow
def test_of_facts_that_supersede_each_other_exactly_one_is_current(tmp_path: Path) -> None:
    target = str(tmp_path / "db")
    sennit.open(target, embedding__provider="none").close()
    race(target, "facts")
    check_facts(target)
