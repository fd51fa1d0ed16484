"""The measuring of an index run."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.indexing import measured

from sennit.ingest import workers


def test_a_folder_is_indexed_and_who_worked_for_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(workers.MANY):
        (tmp_path / f"f{number}.py").write_text(f"def f{number}():\n    return {number}\n")
    alone = measured(tmp_path, "code")
    assert (alone.files, alone.records) == (workers.MANY, 2 * workers.MANY)
    assert alone.main > 0
    assert alone.programs == 0
    monkeypatch.setattr(workers, "MUCH", 0)
    beside = measured(tmp_path, "code")
    assert (beside.files, beside.records, beside.bytes) == (alone.files, alone.records, alone.bytes)
    assert beside.programs > 0
    assert f"{workers.MANY} files, 0.0 MB, {2 * workers.MANY} records" in str(beside)
