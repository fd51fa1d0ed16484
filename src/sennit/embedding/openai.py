"""OpenAI's embeddings, and every server that speaks the same protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from sennit.embedding.remote import RemoteEmbedder

if TYPE_CHECKING:
    from sennit.embedding.base import EmbeddingSpec

BASE_URL: Final = "https://api.openai.com/v1"
API_KEY_ENV: Final = "OPENAI_API_KEY"
BATCH: Final = 128
"""Well under the protocol's 2,048 inputs; passages of 500 tokens then stay under its tokens per request."""


class OpenAIEmbedder(RemoteEmbedder):
    """`POST {base_url}/embeddings`."""

    def __init__(self, spec: EmbeddingSpec) -> None:
        api_key_env = spec.api_key_env
        base_url = (spec.base_url or BASE_URL).rstrip("/")
        if api_key_env is None and base_url == BASE_URL:
            api_key_env = API_KEY_ENV  # OpenAI's key goes to OpenAI only; for others it must be named
        super().__init__(spec, base_url=base_url, api_key_env=api_key_env, batch=BATCH)

    def _fetch(self, texts: Sequence[str]) -> Sequence[object]:
        body: dict[str, object] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._configured is not None:
            body["dimensions"] = self._configured
        answer = self._client.post("/embeddings", body)
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list):
            raise self._nonsense('JSON without a list "data"')
        ordered: dict[int, object] = {}
        for item in data:
            index = item.get("index") if isinstance(item, dict) else None
            if type(index) is not int or index in ordered or not 0 <= index < len(data):
                raise self._nonsense('items whose "index" is missing, doubled or out of range')
            ordered[index] = item.get("embedding")
        return [ordered[index] for index in range(len(data))]
