"""Models that Ollama serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sennit.embedding.remote import RemoteEmbedder

if TYPE_CHECKING:
    from sennit.embedding.base import EmbeddingSpec

BASE_URL: Final = "http://127.0.0.1:11434"
BATCH: Final = 32
"""A model on the user's own machine; larger batches bring no speed and make time-outs likelier."""

MOST_DIMENSIONS: Final = 1024
"""Longer vectors are cut to this: the embedding models people run locally are trained to allow it."""


class OllamaEmbedder(RemoteEmbedder):
    """`POST {base_url}/api/embed`."""

    def __init__(self, spec: EmbeddingSpec) -> None:
        super().__init__(
            spec,
            base_url=spec.base_url or BASE_URL,
            api_key_env=spec.api_key_env,
            batch=BATCH,
            most_dimensions=MOST_DIMENSIONS,
        )

    def _fetch(self, texts: Sequence[str]) -> Sequence[object]:
        # truncate: a text longer than the model's context is cut, not refused.
        body = {"model": self._model, "input": list(texts), "truncate": True}
        answer = self._client.post("/api/embed", body)
        embeddings = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(embeddings, list):
            raise self._nonsense('JSON without a list "embeddings"')
        return embeddings
