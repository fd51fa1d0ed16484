"""Records made by programs of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from weft.ingest.code.parsing import parse
from weft.ingest.code.passages import CodeOptions, code_records
from weft.ingest.code.workers import Workers
from weft.ingest.reading import Unreadable

SAMPLES = {file.stem: file.read_bytes() for file in (Path(__file__).parent / "samples").iterdir()}


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2) as opened:
        yield opened


def test_the_records_are_those_that_would_be_made_here(workers: Workers) -> None:
    options = CodeOptions(whole=400, outlines="files", timestamp=datetime(2026, 3, 1, tzinfo=UTC))
    with ThreadPoolExecutor(4) as threads:
        found = threads.map(lambda name: workers.records(name, SAMPLES[name], "mine", options), SAMPLES)
    for name, records in zip(SAMPLES, found, strict=True):
        assert records == code_records(parse(name, SAMPLES[name]), collection="mine", options=options)


def test_what_is_no_text_says_so(workers: Workers) -> None:
    with pytest.raises(Unreadable, match="binary"):
        workers.records("a.py", b"\x00\x01\x02")


def test_a_program_that_dies_is_replaced() -> None:
    with Workers(1) as alone:
        assert alone.records("a.py", b"x = 1\n")
        program = alone._free.queue[0]
        assert program is not None
        os.kill(program.pid, signal.SIGSTOP)
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
        assert alone.records("a.py", b"x = 1\n")


def test_a_program_that_dies_at_work_loses_that_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.ingest.code.workers.SECONDS", 0.0)
    with Workers(1) as alone:
        with pytest.raises(Unreadable, match="its parser fails"):
            alone.records("a.py", b"x = 1\n")
        monkeypatch.setattr("weft.ingest.code.workers.SECONDS", 60.0)
        assert alone.records("a.py", b"x = 1\n")


def test_a_program_starts_without_what_only_the_store_needs() -> None:
    asked = "import sys, weft.ingest.code.workers; print({'numpy', 'faiss', 'sqlite3'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
