"""Language models: one small protocol, three providers, and what works without a model."""

from __future__ import annotations

from sennit.errors import SettingsError
from sennit.llm.base import LanguageModel, LanguageSpec

__all__ = ["LanguageModel", "LanguageSpec", "create_language_model"]


def create_language_model(spec: LanguageSpec) -> LanguageModel | None:
    """Create the configured model; None if the provider is `none`."""
    if spec.provider == "none":
        return None
    if not spec.model.strip():
        raise SettingsError(
            f"llm.provider is {spec.provider!r} and llm.model is empty; set llm.model to one of its models.",
            key="llm.model",
        )
    if spec.provider == "anthropic":
        from sennit.llm.anthropic import Anthropic

        return Anthropic(spec)
    if spec.provider == "openai":
        from sennit.llm.openai import OpenAI

        return OpenAI(spec)
    from sennit.llm.ollama import Ollama

    return Ollama(spec)
