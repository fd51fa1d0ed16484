"""An LRU cache of query vectors, so that a repeated query needs no model call."""

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

DEFAULT_MAX_ENTRIES: Final = 1024
"""About one megabyte at 256 dimensions; a session has far fewer distinct queries."""


class CachingEmbedder:
    """An embedder that caches the results of `embed_query` and forwards everything else."""

    def __init__(
        self, embedder: Embedder, *, max_entries: int = DEFAULT_MAX_ENTRIES, ttl: float = math.inf
    ) -> None:
        """A vector expires after `ttl` seconds, because a remote model may change behind its name."""
        if max_entries < 1:
            raise ValueError(f"CachingEmbedder needs at least one entry, not {max_entries}")
        self._embedder = embedder
        self._max_entries = max_entries
        self._ttl = ttl
        self._cache: OrderedDict[tuple[str, str], tuple[float, Vectors]] = OrderedDict()
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
        """Return the vector of a query. The array is read-only, because all callers share it."""
        key = (self._embedder.fingerprint, text)
        with self._lock:
            cached = self._cache.get(key)
            if cached is not None and time.monotonic() - cached[0] < self._ttl:
                self._cache.move_to_end(key)
                return cached[1]
        # Outside the lock: a slow model must not delay a query whose vector is cached.
        vector = self._embedder.embed_query(text)
        vector.setflags(write=False)
        with self._lock:
            self._cache[key] = time.monotonic(), vector
            self._cache.move_to_end(key)
            while len(self._cache) > self._max_entries:
                self._cache.popitem(last=False)
        return vector

    def close(self) -> None:
        with self._lock:
            self._cache.clear()
        self._embedder.close()
