"""Models that Ollama serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sennit.llm.base import LanguageSpec
from sennit.llm.remote import RemoteModel, StreamEvent, text_at

BASE_URL: Final = "http://127.0.0.1:11434"


class Ollama(RemoteModel):
    """`POST {base_url}/api/chat`."""

    path = "/api/chat"

    def __init__(self, spec: LanguageSpec) -> None:
        super().__init__(spec, base_url=spec.base_url or BASE_URL, api_key_env=spec.api_key_env)

    def _body(self, system: str, prompt: str, max_tokens: int, *, stream: bool) -> dict[str, object]:
        return {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            "stream": stream,
            "options": {"num_predict": max_tokens},
        }

    def _parse_answer(self, answer: Mapping[str, object]) -> str:
        if not isinstance(answer.get("message"), dict):
            raise self.unusable_answer('JSON without a "message"')
        return text_at(answer, "message", "content")

    def _parse_event(self, event: Mapping[str, object]) -> StreamEvent:
        if error := text_at(event, "error"):
            raise self.unusable_answer(f"an error ({error[:200]})")
        return StreamEvent(text_at(event, "message", "content"), event.get("done") is True)
