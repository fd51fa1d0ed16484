"""The indexing benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.indexing import measure_indexing

from sennit.ingest import worker_pool


def test_indexing_reports_the_cpu_time_of_main_process_and_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(worker_pool.MIN_POOL_FILES):
        (tmp_path / f"f{number}.py").write_text(f"def f{number}():\n    return {number}\n")
    without_workers = measure_indexing(tmp_path, "code")
    assert (without_workers.files, without_workers.records) == (
        worker_pool.MIN_POOL_FILES,
        2 * worker_pool.MIN_POOL_FILES,
    )
    assert without_workers.main_cpu_seconds > 0
    assert without_workers.worker_cpu_seconds == 0
    monkeypatch.setattr(worker_pool, "MIN_POOL_BYTES", 0)
    with_workers = measure_indexing(tmp_path, "code")
    assert (with_workers.files, with_workers.records, with_workers.bytes) == (
        without_workers.files,
        without_workers.records,
        without_workers.bytes,
    )
    assert with_workers.worker_cpu_seconds > 0
    assert f"{worker_pool.MIN_POOL_FILES} files, 0.0 MB, {2 * worker_pool.MIN_POOL_FILES} records" in str(
        with_workers
    )
