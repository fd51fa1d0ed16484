"""Remembers the vectors of recent questions, so that asking again costs no model call."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sennit.embedding.base import Embedder

if TYPE_CHECKING:
    from sennit.embedding.base import Vectors

DEFAULT_ENTRIES: Final = 1024
"""About one megabyte at 256 dimensions; a session asks far fewer different questions."""


class CachedQueries:
    """An embedder that keeps the last vectors of `embed_query`, and passes everything else on."""

    def __init__(self, embedder: Embedder, *, entries: int = DEFAULT_ENTRIES, ttl: float = math.inf) -> None:
        """A vector is kept for `ttl` seconds: who computes it elsewhere may come to another one in time."""
        if entries < 1:
            raise ValueError(f"CachedQueries needs room for at least one entry, not {entries}")
        self._embedder = embedder
        self._entries = entries
        self._ttl = ttl
        self._kept: OrderedDict[tuple[str, str], tuple[float, Vectors]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def dimensions(self) -> int:
        return self._embedder.dimensions

    @property
    def max_batch(self) -> int:
        return self._embedder.max_batch

    @property
    def inline(self) -> bool:
        return self._embedder.inline

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question; the array is read-only, because others are given the same one."""
        key = (self._embedder.fingerprint, text)
        with self._lock:
            known = self._kept.get(key)
            if known is not None and time.monotonic() - known[0] < self._ttl:
                self._kept.move_to_end(key)
                return known[1]
        # Outside the lock: a slow model must not hold up a question whose answer is known.
        vector = self._embedder.embed_query(text)
        vector.setflags(write=False)
        with self._lock:
            self._kept[key] = time.monotonic(), vector
            self._kept.move_to_end(key)
            while len(self._kept) > self._entries:
                self._kept.popitem(last=False)
        return vector

    def close(self) -> None:
        with self._lock:
            self._kept.clear()
        self._embedder.close()
