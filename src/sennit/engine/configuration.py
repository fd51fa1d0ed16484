"""What the engine builds from the settings: the default caller, the privacy policy and the embedding model's spec."""

from __future__ import annotations

from sennit.embedding import EmbeddingSpec
from sennit.privacy import Caller, Policy, Rule
from sennit.rerankers import RerankSpec
from sennit.settings import Settings


def default_caller(settings: Settings) -> Caller:
    """Return the caller of a request that names none."""
    privacy = settings.privacy
    return Caller(
        clearance=privacy.clearance,
        scopes=frozenset(privacy.scopes),
        tenant=privacy.tenant,
        everything=privacy.open,
    )


def make_policy(settings: Settings, rule: Rule | None = None) -> Policy:
    """Return the policy that decides who may see what."""
    return Policy(settings.privacy.levels, settings.privacy.everyone, rule)


def is_embedding_configured(settings: Settings) -> bool:
    """Whether the user chose the embedding model, instead of leaving it to the default."""
    return any(
        key in settings.origins for key in ("embedding.provider", "embedding.model", "embedding.dimensions")
    )


def rerank_spec(settings: Settings) -> RerankSpec:
    """Return the configuration of the reranker."""
    rerank = settings.rerank
    return RerankSpec(
        provider=rerank.provider,
        model=rerank.model,
        base_url=rerank.base_url,
        api_key_env=rerank.api_key_env,
    )


def embedding_spec(settings: Settings) -> EmbeddingSpec:
    """Return the configuration of the embedding model."""
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
