"""Sources of one's own, as a deployment may add them: one that waits, and one that fails."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sennit
from sennit.errors import SourceError
from sennit.sources.base import Ask, Source
from sennit.stores.contract import Found

from .stage import SECONDS


class Silent:
    """A source that knows no scores."""

    inline = False

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros(len(keys))


class Gate(Silent):
    """A source that answers a question that says 'slow' only when it is let."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()
        self.done = threading.Event()

    def search(self, ask: Ask) -> Found:
        if "slow" in ask.question.text:
            self.asked.set()
            assert self.open.wait(SECONDS)
            self.done.set()
        return Found.nothing()


def gated(folder: Path, gate: Source) -> sennit.Database:
    """The library, searched by the recipe `gated` that asks this source too."""
    db = sennit.open(folder / ".sennit", sources={"gate": gate})
    db.index([folder / "docs", folder / "src"])
    return db


class Broken(Silent):
    """A source that never answers."""

    def search(self, ask: Ask) -> Found:
        raise SourceError("the cable is cut [bold]here[/bold] \x1b[31m")
