"""OpenAI's chat completions, and every server that speaks the same protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sennit.llm.base import LanguageSpec
from sennit.llm.remote import RemoteModel, Said, text_at

BASE_URL: Final = "https://api.openai.com/v1"
API_KEY_ENV: Final = "OPENAI_API_KEY"


class OpenAI(RemoteModel):
    """`POST {base_url}/chat/completions`."""

    path = "/chat/completions"

    def __init__(self, spec: LanguageSpec) -> None:
        base_url = (spec.base_url or BASE_URL).rstrip("/")
        self._own: Final = base_url == BASE_URL
        api_key_env = spec.api_key_env
        if api_key_env is None and self._own:
            api_key_env = API_KEY_ENV  # OpenAI's key goes to OpenAI only; for others it must be named
        super().__init__(spec, base_url=base_url, api_key_env=api_key_env)

    def _body(self, system: str, prompt: str, max_tokens: int, *, stream: bool) -> dict[str, object]:
        return {
            "model": self._model,
            # The service itself wants the new name, which many servers that speak its protocol do not know.
            "max_completion_tokens" if self._own else "max_tokens": max_tokens,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            "stream": stream,
        }

    def _text(self, answer: Mapping[str, object]) -> str:
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices:
            raise self.nonsense('JSON without a list "choices"')
        if refusal := text_at(choices, 0, "message", "refusal"):
            raise self.refused(refusal[:200])
        if text_at(choices, 0, "finish_reason") == "content_filter":
            raise self.refused("content filter")
        return text_at(choices, 0, "message", "content")

    def _said(self, event: Mapping[str, object]) -> Said:
        if "error" in event:
            raise self.nonsense(f"an error ({text_at(event, 'error', 'message')[:200]})")
        choices = event.get("choices")
        if refusal := text_at(choices, 0, "delta", "refusal"):
            raise self.refused(refusal[:200])
        finish = text_at(choices, 0, "finish_reason")
        if finish == "content_filter":
            raise self.refused("content filter")
        return Said(text_at(choices, 0, "delta", "content"), bool(finish))
