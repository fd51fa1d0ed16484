"""The embedding models of a database, and which vectors it has of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model of a database."""

    number: int
    fingerprint: str
    name: str
    spec: str
    dimensions: int
    state: str
    """`active`, `building` or `retired`."""


@dataclass(frozen=True, slots=True)
class ModelProgress:
    """How many records still lack a vector of a model."""

    model: Model
    pending: int
    total: int

    @property
    def share(self) -> float:
        """The share of records that have a vector of this model."""
        return 1.0 if not self.total else max(0.0, 1 - self.pending / self.total)


NewVectors = Mapping[int, Mapping[bytes, bytes]]
"""Half-precision vectors by model number and by text hash."""

NO_VECTORS: Final[NewVectors] = {}

Embed = Callable[[Model, Sequence[str]], Sequence[bytes] | None]
"""Returns half-precision vectors of texts, or None when this process cannot use the model."""


@dataclass(frozen=True, slots=True)
class UnusedVectors:
    """How many vectors no record uses, and their size."""

    count: int = 0
    bytes: int = 0


class Models(Protocol):
    """The embedding models of one database, and the vectors that are still missing."""

    def current(self) -> list[Model]:
        """The active model, then the one being built."""
        ...

    def progress(self) -> list[ModelProgress]:
        """The progress of each current model."""
        ...

    def register(self, fingerprint: str, name: str, spec: str, dimensions: int) -> Model:
        """Make this the model of the database.

        It is active at once if there is no other model or no record; otherwise it is built while the old one answers.
        """
        ...

    def missing_vectors(
        self, hashes: Iterable[bytes], given: Mapping[str, Container[bytes]]
    ) -> list[tuple[Model, set[bytes]]]:
        """Every current model, and which of these text hashes have no vector of it; for a caller about to write.

        Hashes in `given`, by model fingerprint, are not looked up.
        """
        ...

    def pending_texts(self, model: int, limit: int) -> list[tuple[bytes, str]]:
        """Hash and text of some records that lack a vector, oldest first and without duplicates."""
        ...

    def add_late_vectors(self, model: int, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors of pending texts. Vectors of a retired model are dropped."""
        ...

    def activate_if_complete(self, model: int) -> bool:
        """Activate a model that is being built, if every record has its vector; whether it was activated."""
        ...

    def known_hashes(self, fingerprint: str) -> Iterator[bytes]:
        """The hashes of all texts that have a vector of a current model, used or not."""
        ...

    def unused(self) -> UnusedVectors:
        """The vectors that no record uses, which index runs have kept."""
        ...

    def delete_unused(self, before: float, keep_bytes: int = 0) -> int:
        """Delete the vectors that were unused before a time, and the oldest others beyond a size; returns how many."""
        ...
