"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sennit.llm.base import LanguageSpec
from sennit.llm.remote import RemoteModel, StreamEvent, text_at

BASE_URL: Final = "https://api.anthropic.com"
API_KEY_ENV: Final = "ANTHROPIC_API_KEY"
API_VERSION: Final = "2023-06-01"


class Anthropic(RemoteModel):
    """`POST {base_url}/v1/messages`."""

    path = "/v1/messages"

    def __init__(self, spec: LanguageSpec) -> None:
        base_url = (spec.base_url or BASE_URL).rstrip("/")
        api_key_env = spec.api_key_env
        if api_key_env is None and base_url == BASE_URL:
            api_key_env = (
                API_KEY_ENV  # Anthropic's key goes to Anthropic only; other servers need a named one.
            )
        super().__init__(
            spec,
            base_url=base_url,
            api_key_env=api_key_env,
            key_header="x-api-key",
            headers={"anthropic-version": API_VERSION},
        )

    def _body(self, system: str, prompt: str, max_tokens: int, *, stream: bool) -> dict[str, object]:
        return {
            "model": self._model,
            "max_tokens": max_tokens,
            "system": system,
            "messages": [{"role": "user", "content": prompt}],
            "stream": stream,
        }

    def _parse_answer(self, answer: Mapping[str, object]) -> str:
        blocks = answer.get("content")
        if not isinstance(blocks, list):
            raise self.unusable_answer('JSON without a list "content"')
        if text_at(answer, "stop_reason") == "refusal":
            raise self.refusal()
        return "".join(text_at(block, "text") for block in blocks if text_at(block, "type") == "text")

    def _parse_event(self, event: Mapping[str, object]) -> StreamEvent:
        kind = event.get("type")
        if kind == "error":
            raise self.unusable_answer(f"an error ({text_at(event, 'error', 'message')[:200]})")
        if kind == "message_delta" and text_at(event, "delta", "stop_reason") == "refusal":
            raise self.refusal()
        if kind == "content_block_delta" and text_at(event, "delta", "type") == "text_delta":
            return StreamEvent(text_at(event, "delta", "text"))
        return StreamEvent(is_last=kind == "message_stop")
