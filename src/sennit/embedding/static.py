"""The default model, shipped with the package: one vector per word piece, summed and normalised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xxhash

from sennit.embedding.vector_ops import normalise, normalise_rows, prefix_fingerprint, resolve_dimensions
from sennit.embedding.wordpiece import WordPieceTokenizer
from sennit.errors import EmbeddingError, NotFound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sennit.embedding.base import EmbeddingSpec, Vectors

MODELS: Final = ("sennit-static-256",)
MAX_PIECES: Final = 2048
"""Pieces after this one are ignored. The limit is part of the model's definition."""

ALGORITHM_VERSION: Final = b"2"
"""Increase it when the same table gives other vectors than before."""

DEFAULT_BATCH_SIZE: Final = 1024

_DATA_FOLDER: Final = Path(__file__).parent / "data"


class StaticEmbedder:
    """Sums the table rows of a text's pieces, in order, so that the vector is the same in every batch."""

    inline: Final = True

    def __init__(self, spec: EmbeddingSpec) -> None:
        if spec.model not in MODELS:
            raise NotFound(f"There is no static model {spec.model!r}; available: {', '.join(MODELS)}.")
        self.name: Final = f"static/{spec.model}"
        self.max_batch: Final = spec.batch_size or DEFAULT_BATCH_SIZE
        table, scale, vocabulary, digest = _load_model(_DATA_FOLDER / spec.model)
        self.dimensions: Final = resolve_dimensions(spec.dimensions, table.shape[1], spec.model)
        self._table: Final = table[:, : self.dimensions]
        self._scale: Final = scale.astype(np.float32)[:, None]
        self._tokenizer: Final = WordPieceTokenizer(vocabulary)
        self._query_prefix: Final = spec.query_prefix or ""
        self._document_prefix: Final = spec.document_prefix or ""
        self.fingerprint: Final = f"static:{spec.model}:{self.dimensions}:{digest}" + prefix_fingerprint(
            self._document_prefix
        )

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._document_prefix)

    def embed_query(self, text: str) -> Vectors:
        return self._embed_one(text, self._query_prefix)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _embed_one(self, text: str, prefix: str) -> Vectors:
        """Return what a batch of one would give, in half the time."""
        pieces = self._tokenize(text, prefix)
        rows = self._float_rows(pieces[pieces != self._tokenizer.unknown_id])
        return normalise(np.add.reduce(rows, axis=0))

    def _tokenize(self, text: str, prefix: str) -> NDArray[np.int32]:
        return self._tokenizer.encode(
            prefix + text if prefix and text and not text.isspace() else text, MAX_PIECES
        )

    def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        if len(texts) == 1:
            return self._embed_one(texts[0], prefix)[None]
        tokenized = [self._tokenize(text, prefix) for text in texts]
        ends = np.cumsum(np.fromiter(map(len, tokenized), np.intp, len(tokenized)))
        pieces = np.concatenate(tokenized) if tokenized else np.empty(0, np.int32)
        # Unknown pieces are dropped. If [UNK] had a vector, any two texts in a script that the model
        # does not know would have the same vector.
        known = pieces != self._tokenizer.unknown_id
        if not known.all():
            ends = np.concatenate([np.zeros(1, np.intp), np.cumsum(known)])[ends]
            pieces = pieces[known]
        sums = np.zeros((len(texts), self.dimensions), np.float32)
        # Pieces repeat, so each distinct row is converted to float once.
        distinct, inverse = _distinct(pieces, len(self._table))
        table = self._float_rows(distinct)
        buffer = np.empty((int(np.diff(ends, prepend=0).max(initial=0)), self.dimensions), np.float32)
        start = 0
        for row, end in zip(sums, ends.tolist(), strict=True):
            if end > start:
                # One text at a time: its rows stay in the CPU cache, and numpy adds rows along this axis in order,
                # so the sum is the same in every batch. With mode="clip", np.take writes into the buffer without
                # an intermediate copy; no index is out of range.
                rows = np.take(table, inverse[start:end], axis=0, out=buffer[: end - start], mode="clip")
                np.add.reduce(rows, axis=0, out=row)
                start = end
        return normalise_rows(sums)

    def _float_rows(self, pieces: NDArray[Any]) -> Vectors:
        """Return the table rows of these pieces, dequantised to float32."""
        return np.multiply(self._table.take(pieces, axis=0), self._scale.take(pieces, axis=0))


def _distinct(numbers: NDArray[np.int32], below: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return `np.unique(numbers, return_inverse=True)` without sorting, for numbers smaller than `below`."""
    index = np.zeros(below, np.intp)
    index[numbers] = 1
    distinct = np.flatnonzero(index)
    index[distinct] = np.arange(len(distinct))
    return distinct, index[numbers]


def _load_model(folder: Path) -> tuple[NDArray[np.int8], NDArray[np.float16], list[str], str]:
    """Load the table, its scales and the vocabulary, and compute a digest of all three."""
    try:
        # Memory-mapped, so that the processes of one machine share the pages.
        table = np.asarray(np.load(folder / "table.npy", mmap_mode="r", allow_pickle=False))
        scale = np.load(folder / "scale.npy", allow_pickle=False)
        words = (folder / "vocabulary.txt").read_bytes()
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"The model in {folder} cannot be read ({error}); reinstall sennit.") from error
    vocabulary = words.decode("utf-8").removesuffix("\n").split("\n")
    if table.dtype != np.int8 or table.ndim != 2 or not len(table) == len(scale) == len(vocabulary):
        raise EmbeddingError(f"The model in {folder} is damaged; reinstall sennit.")
    digest = xxhash.xxh3_128(ALGORITHM_VERSION)
    for part in (table.data, scale.data, words):
        digest.update(part)
    return table, scale, vocabulary, digest.hexdigest()
