"""The embedding model that the settings name."""

from __future__ import annotations

from sennit.embedding import EmbeddingSpec
from sennit.settings import Settings


def embedding_named(settings: Settings) -> bool:
    """Whether somebody chose the model, instead of leaving it to the default."""
    return any(
        key in settings.origins for key in ("embedding.provider", "embedding.model", "embedding.dimensions")
    )


def embedding_spec(settings: Settings) -> EmbeddingSpec:
    """How the model is asked."""
    embedding = settings.embedding
    return EmbeddingSpec(
        provider=embedding.provider,
        model=embedding.model,
        dimensions=embedding.dimensions,
        base_url=embedding.base_url,
        api_key_env=embedding.api_key_env,
        timeout=embedding.timeout,
        retries=embedding.retries,
        batch_size=embedding.batch,
        query_prefix=embedding.query_prefix or None,
        document_prefix=embedding.document_prefix or None,
        query_ttl=settings.hydration.embedding_cache_ttl,
    )
