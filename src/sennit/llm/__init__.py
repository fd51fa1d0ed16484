"""Language models: one small protocol, three providers, and what works without a model."""

from sennit.llm.base import LanguageModel, LanguageSpec, create_language_model

__all__ = ["LanguageModel", "LanguageSpec", "create_language_model"]
