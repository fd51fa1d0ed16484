from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sennit.embedding import CachedQueries, EmbeddingSpec
from sennit.embedding.base import Embedder, Vectors
from sennit.embedding.static import StaticEmbedder


class Counting(StaticEmbedder):
    """The static model, that remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(EmbeddingSpec())
        self.asked: list[str] = []
        self.closed = False

    def embed_query(self, text: str) -> Vectors:
        self.asked.append(text)
        return super().embed_query(text)

    def close(self) -> None:
        self.closed = True


def test_a_question_asked_again_is_not_computed_again() -> None:
    inner = Counting()
    cached = CachedQueries(inner)
    first = cached.embed_query("who is Priya?")
    assert cached.embed_query("who is Priya?") is first
    assert inner.asked == ["who is Priya?"]
    np.testing.assert_array_equal(first, StaticEmbedder(EmbeddingSpec()).embed_query("who is Priya?"))


def test_the_least_recently_asked_question_is_forgotten_first() -> None:
    inner = Counting()
    cached = CachedQueries(inner, entries=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        cached.embed_query(text)
    assert inner.asked == ["a", "b", "c", "b"]


def test_a_question_is_computed_again_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((0.0, 0.0, 9.0, 10.0, 10.0, 19.0))  # when it is looked for, and when it is kept
    monkeypatch.setattr("sennit.embedding.cache.time.monotonic", lambda: next(clock))
    inner = Counting()
    cached = CachedQueries(inner, ttl=10)
    for _ in range(4):
        cached.embed_query("a")
    assert inner.asked == ["a", "a"]


def test_what_is_kept_cannot_be_changed_by_who_was_given_it() -> None:
    with pytest.raises(ValueError, match="read-only"):
        CachedQueries(Counting()).embed_query("a")[0] = 1


def test_everything_else_is_passed_on() -> None:
    inner = Counting()
    cached: Embedder = CachedQueries(inner)
    texts: Sequence[str] = ["a", "b"]
    np.testing.assert_array_equal(cached.embed_documents(texts), inner.embed_documents(texts))
    for name in ("name", "fingerprint", "dimensions", "max_batch", "inline"):
        assert getattr(cached, name) == getattr(inner, name)
    cached.close()
    assert inner.closed


def test_a_cache_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        CachedQueries(Counting(), entries=0)
