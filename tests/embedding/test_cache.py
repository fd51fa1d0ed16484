from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sennit.embedding import CachingEmbedder, EmbeddingSpec
from sennit.embedding.base import Embedder, Vectors
from sennit.embedding.static import StaticEmbedder


class RecordingEmbedder(StaticEmbedder):
    """The static model, with a record of its queries."""

    def __init__(self) -> None:
        super().__init__(EmbeddingSpec())
        self.queries: list[str] = []
        self.closed = False

    def embed_query(self, text: str) -> Vectors:
        self.queries.append(text)
        return super().embed_query(text)

    def close(self) -> None:
        self.closed = True


def test_a_repeated_query_comes_from_the_cache() -> None:
    inner = RecordingEmbedder()
    cached = CachingEmbedder(inner)
    first = cached.embed_query("who is Priya?")
    assert cached.embed_query("who is Priya?") is first
    assert inner.queries == ["who is Priya?"]
    np.testing.assert_array_equal(first, StaticEmbedder(EmbeddingSpec()).embed_query("who is Priya?"))


def test_the_least_recently_used_query_is_evicted_first() -> None:
    inner = RecordingEmbedder()
    cached = CachingEmbedder(inner, max_entries=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.embed_query(text)
    assert inner.queries == ["a", "b", "c", "b"]


def test_a_query_is_computed_again_after_its_ttl(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 0.0, 9.0, 10.0, 10.0, 19.0))  # read at each lookup and at each insertion
    monkeypatch.setattr("sennit.embedding.cache.time.monotonic", lambda: next(clock))
    inner = RecordingEmbedder()
    cached = CachingEmbedder(inner, ttl=10)
    for _ in range(4):
        cached.embed_query("a")
    assert inner.queries == ["a", "a"]


def test_a_cached_vector_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        CachingEmbedder(RecordingEmbedder()).embed_query("a")[0] = 1


def test_everything_else_is_forwarded() -> None:
    inner = RecordingEmbedder()
    cached: Embedder = CachingEmbedder(inner)
    texts: Sequence[str] = ["a", "b"]
    np.testing.assert_array_equal(cached.embed_documents(texts), inner.embed_documents(texts))
    for name in ("name", "fingerprint", "dimensions", "max_batch", "inline"):
        assert getattr(cached, name) == getattr(inner, name)
    cached.close()
    assert inner.closed


def test_a_cache_without_entries_is_rejected() -> None:
    with pytest.raises(ValueError, match="at least one"):
        CachingEmbedder(RecordingEmbedder(), max_entries=0)
