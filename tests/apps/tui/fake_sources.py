"""Custom sources, as a deployment may add them: one that blocks, and one that fails."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sennit
from sennit.errors import SourceError
from sennit.sources.base import Source, SourceRequest
from sennit.stores.contract import ScoredKeys

from .harness import TIMEOUT_SECONDS


class NoScores:
    """A source that gives every record the score 0."""

    inline = False

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros(len(keys))


class BlockingSource(NoScores):
    """A source that blocks on a query with the word 'slow' until `release` is set."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.done = threading.Event()

    def search(self, request: SourceRequest) -> ScoredKeys:
        if "slow" in request.context.text:
            self.started.set()
            assert self.release.wait(TIMEOUT_SECONDS)
            self.done.set()
        return ScoredKeys.empty()


def open_with_source(folder: Path, source: Source) -> sennit.Database:
    """Open the database with this source, which the recipe `custom` searches."""
    db = sennit.open(folder / ".sennit", sources={"custom": source})
    db.index([folder / "docs", folder / "src"])
    return db


class FailingSource(NoScores):
    """A source that always fails."""

    def search(self, request: SourceRequest) -> ScoredKeys:
        raise SourceError("the cable is cut [bold]here[/bold] \x1b[31m")
