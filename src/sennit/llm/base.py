"""What a language model is, and the one that is configured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

Provider = Literal["none", "anthropic", "openai", "ollama"]


class LanguageModel(Protocol):
    """Writes text. Called from any thread; whatever goes wrong is a SourceError that says what to do."""

    @property
    def name(self) -> str:
        """Provider and model."""
        ...

    def complete(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> str:
        """The whole answer, within so many seconds in all."""
        ...

    def stream(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> Iterator[str]:
        """The answer in parts as they are written; an error may come after some of them."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSpec:
    """What a user configures about the language model."""

    provider: Provider = "none"
    model: str = ""
    base_url: str | None = None
    api_key_env: str | None = None
    """The *name* of the environment variable that holds the key."""
    retries: int = 2
    backoff: float = 0.5
    """Seconds before the first further attempt; doubles with each, with jitter."""
