"""A program that exits without closing its database."""

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

db.maintainer._embed = slow
db.add([sennit.Record(id="a", text="harbour")])
with db.store.pool.write() as connection:
    connection.execute("INSERT INTO pending_vectors SELECT number, (SELECT row FROM records) FROM models")
db.maintainer.wake()
working.wait(30)
"""


def test_exit_waits_for_a_running_embedding_call(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "db")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout
