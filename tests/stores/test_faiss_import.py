"""faiss is imported only when searches need it: its import takes longer than one search of a small index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WRITE = """
import os, sys, sennit
def search(db):
    found = [(hit.id, hit.score) for hit in db.search("words of the sea", limit=3)]
    return found, "faiss" in sys.modules
with sennit.open(sys.argv[1]) as db:
    db.add([sennit.Record(id=str(n), text=f"some words of the sea and of {n}") for n in range(40)])
    before = "faiss" in sys.modules
    db.admin.optimise()
with sennit.open(sys.argv[1]) as db:
    results = [search(db) for _ in range(4)]
assert all(found == results[0][0] for found, _ in results)
print(before, results[0][1], results[-1][1], os.environ.get("OPENBLAS_CORETYPE"))
"""


@pytest.mark.parametrize("core", [None, "Haswell"])
def test_a_write_and_a_first_search_do_not_import_faiss_and_the_environment_is_unchanged(
    tmp_path: Path, core: str | None
) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "OPENBLAS_CORETYPE"}
    if core is not None:
        environment["OPENBLAS_CORETYPE"] = core
    result = subprocess.run(
        [sys.executable, "-c", WRITE, str(tmp_path / "db")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert result.stdout.split() == ["False", "False", "True", str(core)]
