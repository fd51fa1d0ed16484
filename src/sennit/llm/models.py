"""The language model that is configured."""

from __future__ import annotations

from sennit.errors import SettingsError
from sennit.llm.base import LanguageModel, LanguageSpec


def language_model(spec: LanguageSpec) -> LanguageModel | None:
    """The model that is configured; None when there is to be none."""
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
