"""What every system in the comparison does: text in, ten texts out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import GROUPS, Corpus, embedder

POOL: Final = 50
"""How many each source of a hybrid search is asked for."""

LIMIT: Final = 10
RRF_K: Final = 60
BATCH: Final = 1000

Vector = NDArray[np.float32]


class Found(NamedTuple):
    """One result: which passage, and its text, which the system read from its own store."""

    number: int
    text: str


class Passage(NamedTuple):
    """One passage as a system takes it in. sennit ignores the vector: it embeds by itself."""

    number: int
    text: str
    vector: Vector

    @property
    def group(self) -> int:
        return self.number % GROUPS


class Peer(Protocol):
    """One system. `build` makes its files; after `open` it answers."""

    name: str
    label: str
    about: str
    """How it is set up, for the report."""
    hybrid: bool
    """False: it has no keyword search, so its queries do half of the work."""
    packages: Sequence[str]
    """Distributions whose versions the report names."""
    modules: Sequence[str]
    """What a program that uses it imports; the time of that is left out of the cold open without imports."""
    efforts: Sequence[int]
    """Settings of the vector search to choose from, cheapest first; empty where there is nothing to choose."""
    writes_beside_searches: bool
    """Whether one thread may write while another searches."""
    embeds: bool
    """Whether it embeds what it takes in by itself, and needs no vector."""

    def build(self, folder: Path, corpus: Corpus) -> float:
        """Make all passages searchable and durable; the seconds after which they could be found."""

    def open(self, folder: Path) -> None: ...

    def close(self) -> None: ...

    def set_effort(self, below: int | None, effort: int) -> None:
        """The setting to use from now on where `g < below`, or where nothing is filtered."""

    def search(self, text: str, below: int | None) -> list[Found]:
        """The hybrid query: embeds the text, asks both sources for POOL, fuses, reads LIMIT texts."""

    def dense(self, text: str, below: int | None) -> list[int]:
        """The numbers of the nearest passages by vector, best first, as the hybrid query finds them."""

    def add(self, passage: Passage) -> None:
        """Durable when it returns, and seen by the next search."""

    def remove(self, number: int) -> None:
        """The same for a removal."""


class Efforts:
    """Search effort by filter, with a default for filters nobody chose one for."""

    def __init__(self, default: int) -> None:
        self._default = default
        self._chosen: dict[int | None, int] = {}

    def choose(self, below: int | None, effort: int) -> None:
        self._chosen[below] = effort

    def of(self, below: int | None) -> int:
        return self._chosen.get(below, self._default)


class Embedding:
    """The query's vector: by the same model for every system, and nothing remembered between calls."""

    def __init__(self) -> None:
        self._model = embedder()

    def of(self, text: str) -> Vector:
        return self._model.embed_query(text)


def passages(corpus: Corpus) -> Iterable[list[Passage]]:
    """Everything, in batches."""
    for at in range(0, len(corpus.texts), BATCH):
        stop = min(at + BATCH, len(corpus.texts))
        yield [Passage(i, corpus.texts[i], corpus.vectors[i]) for i in range(at, stop)]


def reciprocal_ranks(*lists: Sequence[int]) -> list[int]:
    """The LIMIT best of several rankings, for systems that do not fuse by themselves."""
    scores: dict[int, float] = {}
    for ranked in lists:
        for rank, number in enumerate(ranked, RRF_K + 1):
            scores[number] = scores.get(number, 0.0) + 1.0 / rank
    return sorted(scores, key=lambda number: (-scores[number], number))[:LIMIT]


def folder_bytes(folder: Path) -> int:
    """What a folder takes on disk: blocks, because some write-ahead logs are mostly holes."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
