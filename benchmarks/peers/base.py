"""The interface of every system in the comparison."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import GROUP_COUNT, Corpus, make_embedder

CANDIDATE_LIMIT: Final = 50
"""The number of candidates from each source of a hybrid search."""

LIMIT: Final = 10
RRF_K: Final = 60
BATCH_SIZE: Final = 1000

Vector = NDArray[np.float32]


class PassageHit(NamedTuple):
    """One result: the number of the passage, and its text as read from the system's own store."""

    number: int
    text: str


class Passage(NamedTuple):
    """One passage to store. sennit ignores the vector, because it embeds the text itself."""

    number: int
    text: str
    vector: Vector

    @property
    def group(self) -> int:
        return self.number % GROUP_COUNT


class Peer(Protocol):
    """One system. `build` writes its files, `open` makes it ready for searches."""

    name: str
    label: str
    about: str
    """Its configuration, for the report."""
    hybrid: bool
    """False if it has no keyword search, so that its queries do half of the work."""
    packages: Sequence[str]
    """Distributions whose versions the report lists."""
    modules: Sequence[str]
    """Modules that a program using it imports. The cold start without imports excludes this time."""
    efforts: Sequence[int]
    """Search efforts of the vector index (ef) to choose from, lowest first. Empty if there is no such setting."""
    concurrent_writes: bool
    """Whether a thread may write while another one searches."""
    embeds_documents: bool
    """Whether it embeds the texts itself, so that an add needs no vector."""

    def build(self, folder: Path, corpus: Corpus) -> float:
        """Store all passages durably. Returns the seconds until they were searchable."""

    def open(self, folder: Path) -> None: ...

    def close(self) -> None: ...

    def set_effort(self, group_limit: int | None, effort: int) -> None:
        """Set the search effort for the filter `g < group_limit`, or for searches without a filter."""

    def search(self, text: str, group_limit: int | None) -> list[PassageHit]:
        """The hybrid query: embed the text, get CANDIDATE_LIMIT from both sources, fuse, read LIMIT texts."""

    def dense(self, text: str, group_limit: int | None) -> list[int]:
        """The numbers of the nearest passages by vector, best first, with the settings of the hybrid query."""

    def add(self, passage: Passage) -> None:
        """Add a passage. It is durable on return, and visible to the next search."""

    def remove(self, number: int) -> None:
        """Remove a passage, with the same guarantees."""


class SearchEfforts:
    """The search effort of each filter, with a default."""

    def __init__(self, default: int) -> None:
        self._default = default
        self._chosen: dict[int | None, int] = {}

    def set(self, group_limit: int | None, effort: int) -> None:
        self._chosen[group_limit] = effort

    def get(self, group_limit: int | None) -> int:
        return self._chosen.get(group_limit, self._default)


class QueryEmbedder:
    """Embeds queries with the same model for every system, without a cache."""

    def __init__(self) -> None:
        self._model = make_embedder()

    def embed(self, text: str) -> Vector:
        return self._model.embed_query(text)


def iterate_batches(corpus: Corpus) -> Iterable[list[Passage]]:
    """All passages, in batches."""
    for at in range(0, len(corpus.texts), BATCH_SIZE):
        stop = min(at + BATCH_SIZE, len(corpus.texts))
        yield [Passage(i, corpus.texts[i], corpus.vectors[i]) for i in range(at, stop)]


def fuse_by_rrf(*lists: Sequence[int]) -> list[int]:
    """Fuse rankings by RRF and return the LIMIT best, for systems without their own fusion."""
    scores: dict[int, float] = {}
    for ranked in lists:
        for rank, number in enumerate(ranked, RRF_K + 1):
            scores[number] = scores.get(number, 0.0) + 1.0 / rank
    return sorted(scores, key=lambda number: (-scores[number], number))[:LIMIT]


def folder_bytes(folder: Path) -> int:
    """The disk space of a folder, counted in blocks, because some write-ahead logs are sparse files."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
