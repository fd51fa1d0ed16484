"""Embedding models turn texts into unit vectors. `create_embedder` loads the configured one."""

from __future__ import annotations

from sennit.embedding.base import PROVIDERS, Embedder, EmbeddingSpec, Provider
from sennit.embedding.cache import CachingEmbedder

__all__ = ["PROVIDERS", "CachingEmbedder", "Embedder", "EmbeddingSpec", "Provider", "create_embedder"]


def create_embedder(spec: EmbeddingSpec) -> Embedder | None:
    """Create the embedder that a specification describes; None for `given` and `none`, which compute nothing.

    The libraries of the other providers are not imported.
    """
    match spec.provider:
        case "static":
            from sennit.embedding.static import StaticEmbedder

            return StaticEmbedder(spec)
        case "onnx":
            from sennit.embedding.onnx import OnnxEmbedder

            return OnnxEmbedder(spec)
        case "openai":
            from sennit.embedding.remote import OpenAIEmbedder

            return OpenAIEmbedder(spec)
        case "ollama":
            from sennit.embedding.remote import OllamaEmbedder

            return OllamaEmbedder(spec)
        case "given" | "none":
            return None
