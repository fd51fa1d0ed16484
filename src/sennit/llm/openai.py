"""OpenAI's chat completions, and every server that speaks the same protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sennit.llm.base import LanguageSpec
from sennit.llm.remote import RemoteModel, StreamEvent, text_at

BASE_URL: Final = "https://api.openai.com/v1"
API_KEY_ENV: Final = "OPENAI_API_KEY"


class OpenAI(RemoteModel):
    """`POST {base_url}/chat/completions`."""

    path = "/chat/completions"

    def __init__(self, spec: LanguageSpec) -> None:
        base_url = (spec.base_url or BASE_URL).rstrip("/")
        self._is_openai: Final = base_url == BASE_URL
        api_key_env = spec.api_key_env
        if api_key_env is None and self._is_openai:
            api_key_env = API_KEY_ENV  # OpenAI's key goes to OpenAI only; other servers need a named one.
        super().__init__(spec, base_url=base_url, api_key_env=api_key_env)

    def _body(self, system: str, prompt: str, max_tokens: int, *, stream: bool) -> dict[str, object]:
        return {
            "model": self._model,
            # OpenAI itself requires the new name, which many compatible servers do not know.
            "max_completion_tokens" if self._is_openai else "max_tokens": max_tokens,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            "stream": stream,
        }

    def _parse_answer(self, answer: Mapping[str, object]) -> str:
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices:
            raise self.unusable_answer('JSON without a list "choices"')
        if refusal := text_at(choices, 0, "message", "refusal"):
            raise self.refusal(refusal[:200])
        if text_at(choices, 0, "finish_reason") == "content_filter":
            raise self.refusal("content filter")
        return text_at(choices, 0, "message", "content")

    def _parse_event(self, event: Mapping[str, object]) -> StreamEvent:
        if "error" in event:
            raise self.unusable_answer(f"an error ({text_at(event, 'error', 'message')[:200]})")
        choices = event.get("choices")
        if refusal := text_at(choices, 0, "delta", "refusal"):
            raise self.refusal(refusal[:200])
        finish = text_at(choices, 0, "finish_reason")
        if finish == "content_filter":
            raise self.refusal("content filter")
        return StreamEvent(text_at(choices, 0, "delta", "content"), bool(finish))
