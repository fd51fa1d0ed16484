"""The default model, shipped inside the package: one vector per word piece, summed and normalised."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import xxhash

from sennit.embedding.vectors import kept_dimensions, normalised, prefix_mark, unit
from sennit.embedding.wordpiece import WordPieces
from sennit.errors import EmbeddingError, NotFound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sennit.embedding.base import EmbeddingSpec, Vectors

MODELS: Final = ("sennit-static-256",)
MAX_PIECES: Final = 2048
"""Part of the model's definition: what comes after does not count."""

ALGORITHM: Final = b"2"
"""Raised when the same table would give other vectors than before."""

_DATA: Final = Path(__file__).parent / "data"


class StaticEmbedder:
    """A text's vector is the sum of its pieces' rows, in order, so it is the same in every batch."""

    inline: Final = True

    def __init__(self, spec: EmbeddingSpec) -> None:
        if spec.model not in MODELS:
            raise NotFound(f"There is no static model {spec.model!r}; there is {', '.join(MODELS)}.")
        self.name: Final = f"static/{spec.model}"
        self.max_batch: Final = spec.batch_size or 1024
        table, scale, vocabulary, digest = _load(_DATA / spec.model)
        self.dimensions: Final = kept_dimensions(spec.dimensions, table.shape[1], spec.model)
        self._table: Final = table[:, : self.dimensions]
        self._scale: Final = scale.astype(np.float32)[:, None]
        self._pieces: Final = WordPieces(vocabulary)
        self._query_prefix: Final = spec.query_prefix or ""
        self._document_prefix: Final = spec.document_prefix or ""
        self.fingerprint: Final = f"static:{spec.model}:{self.dimensions}:{digest}" + prefix_mark(
            self._document_prefix
        )

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._document_prefix)

    def embed_query(self, text: str) -> Vectors:
        return self._one(text, self._query_prefix)

    def close(self) -> None:
        """Nothing to let go of."""

    def _one(self, text: str, prefix: str) -> Vectors:
        """The same as of a batch of one, in half the time."""
        pieces = self._cut(text, prefix)
        rows = self._widened(pieces[pieces != self._pieces.unknown])
        return unit(np.add.reduce(rows, axis=0))

    def _cut(self, text: str, prefix: str) -> NDArray[np.int32]:
        return self._pieces.encode(
            prefix + text if prefix and text and not text.isspace() else text, MAX_PIECES
        )

    def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        if len(texts) == 1:
            return self._one(texts[0], prefix)[None]
        found = [self._cut(text, prefix) for text in texts]
        ends = np.cumsum(np.fromiter(map(len, found), np.intp, len(found)))
        pieces = np.concatenate(found) if found else np.empty(0, np.int32)
        # What the vocabulary does not know says nothing: with a vector of its own, any two texts in a
        # script that the model never saw would mean the same.
        known = pieces != self._pieces.unknown
        if not known.all():
            ends = np.concatenate([np.zeros(1, np.intp), np.cumsum(known)])[ends]
            pieces = pieces[known]
        sums = np.zeros((len(texts), self.dimensions), np.float32)
        # Pieces come again and again: each is brought to full precision once.
        distinct, at = _distinct(pieces, len(self._table))
        table = self._widened(distinct)
        room = np.empty((int(np.diff(ends, prepend=0).max(initial=0)), self.dimensions), np.float32)
        start = 0
        for row, end in zip(sums, ends.tolist(), strict=True):
            if end > start:
                # One text at a time: its rows stay in the cache, and along this axis numpy adds them one after the
                # other, in every batch alike. All places are within the table; asked to clip, numpy takes into
                # the room without a copy between.
                rows = np.take(table, at[start:end], axis=0, out=room[: end - start], mode="clip")
                np.add.reduce(rows, axis=0, out=row)
                start = end
        return normalised(sums)

    def _widened(self, pieces: NDArray[Any]) -> Vectors:
        """The rows of pieces in full precision."""
        return np.multiply(self._table.take(pieces, axis=0), self._scale.take(pieces, axis=0))


def _distinct(numbers: NDArray[np.int32], below: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The different numbers, ascending, and the place of each among them: `np.unique` without sorting."""
    places = np.zeros(below, np.intp)
    places[numbers] = 1
    distinct = np.flatnonzero(places)
    places[distinct] = np.arange(len(distinct))
    return distinct, places[numbers]


def _load(folder: Path) -> tuple[NDArray[np.int8], NDArray[np.float16], list[str], str]:
    """The table, its scales, the vocabulary, and a digest of all three."""
    try:
        # Mapped, so that the processes of one machine share the pages.
        table = np.asarray(np.load(folder / "table.npy", mmap_mode="r", allow_pickle=False))
        scale = np.load(folder / "scale.npy", allow_pickle=False)
        words = (folder / "vocabulary.txt").read_bytes()
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"The model in {folder} cannot be read ({error}); reinstall sennit.") from error
    vocabulary = words.decode("utf-8").removesuffix("\n").split("\n")
    if table.dtype != np.int8 or table.ndim != 2 or not len(table) == len(scale) == len(vocabulary):
        raise EmbeddingError(f"The model in {folder} is damaged; reinstall sennit.")
    digest = xxhash.xxh3_128(ALGORITHM)
    for part in (table.data, scale.data, words):
        digest.update(part)
    return table, scale, vocabulary, digest.hexdigest()
