"""faiss is imported only when a search needs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WRITE = """
import os, sys, sennit
with sennit.open(sys.argv[1]) as db:
    db.add([sennit.Record(id="a", text="some words")])
    before = "faiss" in sys.modules
    assert db.search("words")[0].id == "a"
print(before, "faiss" in sys.modules, os.environ.get("OPENBLAS_CORETYPE"))
"""


@pytest.mark.parametrize("core", [None, "Haswell"])
def test_write_does_not_import_faiss_and_the_environment_is_unchanged(
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
    assert result.stdout.split() == ["False", "True", str(core)]
