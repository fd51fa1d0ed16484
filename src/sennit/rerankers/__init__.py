"""Rerankers: models that read a query and a text together, and say how well the text answers it."""

from sennit.rerankers.base import Reranker, RerankSpec
from sennit.rerankers.providers import PROVIDERS, create_reranker
from sennit.rerankers.service import RerankService

__all__ = ["PROVIDERS", "RerankService", "RerankSpec", "Reranker", "create_reranker"]
