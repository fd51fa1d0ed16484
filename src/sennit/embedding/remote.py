"""What models on a server share: batches, empty texts, and distrust of what comes back."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from sennit.embedding.base import MAX_DIMENSIONS
from sennit.embedding.http import JsonClient
from sennit.embedding.vectors import normalised, prefix_mark
from sennit.errors import EmbeddingError

if TYPE_CHECKING:
    from sennit.embedding.base import EmbeddingSpec, Vectors

PROBE: Final = "dimensions"
"""What is embedded when the number of dimensions is asked for before any text was."""


class RemoteEmbedder(ABC):
    """A model behind HTTP. Its dimension is learnt from the first answer, and every other must agree."""

    inline: Final = False

    def __init__(
        self,
        spec: EmbeddingSpec,
        *,
        base_url: str,
        api_key_env: str | None,
        batch: int,
        most_dimensions: int | None = None,
    ) -> None:
        """`most_dimensions` cuts longer vectors where the user has not said how many to keep."""
        self.name: Final = f"{spec.provider}/{spec.model}"
        self.max_batch: Final = spec.batch_size or batch
        self._model: Final = spec.model
        self._configured: Final = spec.dimensions
        self._most: Final = most_dimensions
        self._query_prefix: Final = spec.query_prefix or ""
        self._document_prefix: Final = spec.document_prefix or ""
        length = str(spec.dimensions or (f"max{most_dimensions}" if most_dimensions else "native"))
        self.fingerprint: Final = f"{spec.provider}:{spec.model}:{length}" + prefix_mark(
            self._document_prefix
        )
        self._own: int | None = None
        self._learning: Final = threading.Lock()
        self._client: Final = JsonClient(
            base_url,
            timeout=spec.timeout,
            retries=spec.retries,
            backoff=spec.backoff,
            api_key_env=api_key_env,
        )

    @abstractmethod
    def _fetch(self, texts: Sequence[str]) -> Sequence[object]:
        """What the server answers for a batch, one item per text, in the order of the texts."""

    @property
    def dimensions(self) -> int:
        if self._configured is not None:
            return self._configured
        if self._own is None:
            self._checked(self._fetch([PROBE]), 1)
        return self._kept()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._document_prefix)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed((text,), self._query_prefix)[0]
        return vector

    def close(self) -> None:
        self._client.close()

    def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        # Services refuse an empty text or make something up for it.
        asked = [place for place, text in enumerate(texts) if text and not text.isspace()]
        parts: list[Vectors] = []
        for start in range(0, len(asked), self.max_batch):
            batch = [_sendable(prefix + texts[place]) for place in asked[start : start + self.max_batch]]
            parts.append(self._checked(self._fetch(batch), len(batch)))
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        if parts:
            vectors[asked] = np.concatenate(parts)
        return vectors

    def _checked(self, answer: Sequence[object], count: int) -> Vectors:
        """Unit vectors of what was answered, or an EmbeddingError that says what is wrong with it."""
        if len(answer) != count:
            raise self._nonsense(f"{len(answer)} vectors for {count} texts")
        rows = [self._row(item) for item in answer]
        own = self._own or len(rows[0])
        if any(len(row) != own for row in rows):
            lengths = ", ".join(map(str, sorted({len(row) for row in rows} - {own})))
            raise self._nonsense(f"a vector of {lengths} numbers where others have {own}")
        with np.errstate(over="ignore"):
            matrix = np.array(rows, dtype=np.float32)
        if not np.isfinite(matrix).all():
            raise self._nonsense("a vector with numbers that are infinite or not numbers")
        self._learn(own)
        return normalised(matrix[:, : self._kept()].astype(np.float64))

    def _row(self, item: object) -> list[float]:
        if not isinstance(item, list) or not item:
            raise self._nonsense("something that is not a list of numbers")
        if len(item) > MAX_DIMENSIONS:
            raise self._nonsense(f"a vector of {len(item)} numbers")
        if not set(map(type, item)) <= {int, float}:
            raise self._nonsense("a vector with something in it that is not a number")
        try:
            return [float(number) for number in item]
        except OverflowError as error:
            raise self._nonsense("a vector with a number that is too large") from error

    def _learn(self, length: int) -> None:
        if self._configured is not None and length < self._configured:
            raise EmbeddingError(
                f"{self.name} gives vectors of {length} numbers, fewer than embedding.dimensions = "
                f"{self._configured}; leave the setting out, or set it to {length} or less."
            )
        with self._learning:
            if self._own is None:
                self._own = length
        if self._own != length:  # two first answers at once, of different lengths
            raise self._nonsense(f"a vector of {length} numbers where others have {self._own}")

    def _kept(self) -> int:
        assert self._own is not None
        if self._configured is not None:
            return self._configured
        return min(self._own, self._most or self._own)

    def _nonsense(self, what: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self.name} answered with {what}; nothing of it was used. "
            "Check that embedding.model is an embedding model and that embedding.base_url is its server."
        )


def _sendable(text: str) -> str:
    """JSON for a server must be valid Unicode; a lone surrogate is not."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
