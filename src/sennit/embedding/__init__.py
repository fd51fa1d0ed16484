"""Embedding models: texts become unit vectors. `build` makes the one that is configured."""

from __future__ import annotations

from sennit.embedding.base import PROVIDERS, Embedder, EmbeddingSpec, Provider
from sennit.embedding.cache import CachedQueries

__all__ = ["PROVIDERS", "CachedQueries", "Embedder", "EmbeddingSpec", "Provider", "build"]


def build(spec: EmbeddingSpec) -> Embedder | None:
    """The embedder that a specification describes; None for provider `none`. Imports only what it needs."""
    match spec.provider:
        case "static":
            from sennit.embedding.static import StaticEmbedder

            return StaticEmbedder(spec)
        case "onnx":
            from sennit.embedding.onnx import OnnxEmbedder

            return OnnxEmbedder(spec)
        case "openai":
            from sennit.embedding.openai import OpenAIEmbedder

            return OpenAIEmbedder(spec)
        case "ollama":
            from sennit.embedding.ollama import OllamaEmbedder

            return OllamaEmbedder(spec)
        case "none":
            return None
