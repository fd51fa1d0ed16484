"""Fixtures: a folder of files, and a database to index them into."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import sennit
from sennit.ingest import IndexReport

NOBODY = 65534
"""The id of a user without privileges."""

OLD = time.time() - 3600
"""Old enough that the modification time alone tells whether a file changed."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sennit.Database]:
    with sennit.open(tmp_path / "notes.sennit") as opened:
        yield opened


def write(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files with a modification time of an hour ago."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (OLD, OLD))


def contents_of(db: sennit.Database) -> dict[str, str]:
    """All records of the database as JSON, by id."""
    return {record.id: record.to_json() for record in db}


def paths_of(db: sennit.Database, root: Path) -> set[str]:
    """The paths of files with records, relative to the root."""
    places = db.indexed_folders.places()
    return {os.path.relpath(places.absolute(record) or "", os.path.realpath(root)) for record in db}


def counts(report: IndexReport) -> tuple[int, int, int, int, int]:
    return report.added, report.updated, report.renamed, report.removed, report.unchanged


def reasons(report: IndexReport, root: Path) -> dict[str, str]:
    """The reasons why files were skipped, by path relative to the root."""
    return {os.path.relpath(path, os.path.realpath(root)): reason for path, reason in report.skipped}


@contextlib.contextmanager
def locked(*paths: Path) -> Iterator[None]:
    """Make paths unreadable inside the block. A test that runs as root drops its privileges there."""
    modes = [(path, path.stat().st_mode) for path in paths]
    top = Path(tempfile.gettempdir()).resolve()
    for path, _ in modes:
        path.chmod(0)
        for folder in path.resolve().parents:
            if folder.is_relative_to(top) and folder != top and folder not in paths:
                folder.chmod(folder.stat().st_mode | stat.S_IRWXG | stat.S_IXOTH | stat.S_IROTH)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for path, mode in modes:
            path.chmod(mode)
