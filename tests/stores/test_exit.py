"""The end of a program that did not close its database."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, threading, time
import sennit

db = sennit.open(sys.argv[1], embedding__provider="static")
working = threading.Event()

def slow(model, texts):
    working.set()
    time.sleep(0.5)
    print("finished", flush=True)
    return None

db.keeper._embed = slow
db.add([sennit.Record(id="a", text="harbour")])
with db.store.database.write() as connection:
    connection.execute("INSERT INTO pending SELECT number, (SELECT row FROM records) FROM models")
db.keeper.nudge()
working.wait(30)
"""


def test_a_program_that_ends_waits_for_the_model_it_is_inside_of(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "db")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout
