"""The language model protocol and its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

Provider = Literal["none", "anthropic", "openai", "ollama"]


class LanguageModel(Protocol):
    """Writes text. Any thread may call it. Every failure is a SourceError that says what to do."""

    @property
    def name(self) -> str:
        """Provider and model."""
        ...

    def complete(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> str:
        """Return the whole answer; `timeout` is the total number of seconds."""
        ...

    def stream(self, system: str, prompt: str, *, max_tokens: int, timeout: float) -> Iterator[str]:
        """Yield the answer in parts as the model writes them; an error may follow some of them."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSpec:
    """The configuration of a language model."""

    provider: Provider = "none"
    model: str = ""
    base_url: str | None = None
    api_key_env: str | None = None
    """The *name* of the environment variable that holds the key."""
    retries: int = 2
    backoff: float = 0.5
    """Seconds before the first retry. The delay doubles with each retry, with jitter."""
