"""Embedding models on a server: OpenAI and compatible services, and Ollama.

The base class splits texts into batches, leaves out empty texts, and checks every response before it is used.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from sennit.embedding.base import MAX_DIMENSIONS
from sennit.embedding.http import JsonClient
from sennit.embedding.vector_ops import normalise_rows, prefix_fingerprint
from sennit.errors import EmbeddingError

if TYPE_CHECKING:
    from sennit.embedding.base import EmbeddingSpec, Vectors

PROBE_TEXT: Final = "dimensions"
"""Embedded to find the number of dimensions if it is needed before the first text."""

OPENAI_BASE_URL: Final = "https://api.openai.com/v1"
OPENAI_API_KEY_ENV: Final = "OPENAI_API_KEY"
OPENAI_BATCH_SIZE: Final = 128
"""Well below the protocol's 2,048 inputs, so that passages of 500 tokens stay below the tokens per request."""

OLLAMA_BASE_URL: Final = "http://127.0.0.1:11434"
OLLAMA_BATCH_SIZE: Final = 32
"""The model runs on the user's machine: larger batches are no faster and make timeouts more likely."""

OLLAMA_MAX_DIMENSIONS: Final = 1024
"""Longer vectors are truncated to this length. The embedding models people run locally are trained for it."""


class RemoteEmbedder(ABC):
    """A model behind HTTP. The first response determines the dimensions, and all others must agree with it."""

    inline: Final = False

    def __init__(
        self,
        spec: EmbeddingSpec,
        *,
        base_url: str,
        api_key_env: str | None,
        batch_size: int,
        max_dimensions: int | None = None,
    ) -> None:
        """`max_dimensions` truncates longer vectors unless the settings say how many dimensions to keep."""
        self.name: Final = f"{spec.provider}/{spec.model}"
        self.max_batch: Final = spec.batch_size or batch_size
        self._model: Final = spec.model
        self._configured_dimensions: Final = spec.dimensions
        self._max_dimensions: Final = max_dimensions
        self._query_prefix: Final = spec.query_prefix or ""
        self._document_prefix: Final = spec.document_prefix or ""
        length = str(spec.dimensions or (f"max{max_dimensions}" if max_dimensions else "native"))
        self.fingerprint: Final = f"{spec.provider}:{spec.model}:{length}" + prefix_fingerprint(
            self._document_prefix
        )
        self._native_dimensions: int | None = None
        self._lock: Final = threading.Lock()
        self._client: Final = JsonClient(
            base_url,
            timeout=spec.timeout,
            retries=spec.retries,
            backoff=spec.backoff,
            api_key_env=api_key_env,
        )

    @abstractmethod
    def _fetch(self, texts: Sequence[str]) -> Sequence[object]:
        """Send a batch and return the unchecked vectors, in the order of the texts."""

    @property
    def dimensions(self) -> int:
        if self._configured_dimensions is not None:
            return self._configured_dimensions
        if self._native_dimensions is None:
            self._to_vectors(self._fetch([PROBE_TEXT]), 1)
        return self._kept_dimensions()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return self._embed(texts, self._document_prefix)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed((text,), self._query_prefix)[0]
        return vector

    def close(self) -> None:
        self._client.close()

    def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        # Services reject an empty text, or return an arbitrary vector for it.
        filled = [row for row, text in enumerate(texts) if text and not text.isspace()]
        parts: list[Vectors] = []
        for start in range(0, len(filled), self.max_batch):
            batch = [
                _replace_surrogates(prefix + texts[row]) for row in filled[start : start + self.max_batch]
            ]
            parts.append(self._to_vectors(self._fetch(batch), len(batch)))
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        if parts:
            vectors[filled] = np.concatenate(parts)
        return vectors

    def _to_vectors(self, items: Sequence[object], count: int) -> Vectors:
        """Check the items of a response and return them as unit vectors; raise EmbeddingError if one is invalid."""
        if len(items) != count:
            raise self._invalid_response(f"{len(items)} vectors for {count} texts")
        rows = [self._to_row(item) for item in items]
        native = self._native_dimensions or len(rows[0])
        if any(len(row) != native for row in rows):
            lengths = ", ".join(map(str, sorted({len(row) for row in rows} - {native})))
            raise self._invalid_response(f"a vector of {lengths} numbers where others have {native}")
        with np.errstate(over="ignore"):
            matrix = np.array(rows, dtype=np.float32)
        if not np.isfinite(matrix).all():
            raise self._invalid_response("a vector with numbers that are infinite or not numbers")
        self._set_native_dimensions(native)
        return normalise_rows(matrix[:, : self._kept_dimensions()].astype(np.float64))

    def _to_row(self, item: object) -> list[float]:
        if not isinstance(item, list) or not item:
            raise self._invalid_response("something that is not a list of numbers")
        if len(item) > MAX_DIMENSIONS:
            raise self._invalid_response(f"a vector of {len(item)} numbers")
        if not set(map(type, item)) <= {int, float}:
            raise self._invalid_response("a vector with an element that is not a number")
        try:
            return [float(number) for number in item]
        except OverflowError as error:
            raise self._invalid_response("a vector with a number that is too large") from error

    def _set_native_dimensions(self, length: int) -> None:
        if self._configured_dimensions is not None and length < self._configured_dimensions:
            raise EmbeddingError(
                f"{self.name} gives vectors of {length} numbers, fewer than embedding.dimensions = "
                f"{self._configured_dimensions}; remove the setting, or set it to {length} or less."
            )
        with self._lock:
            if self._native_dimensions is None:
                self._native_dimensions = length
        if self._native_dimensions != length:  # two concurrent first responses differ in length
            raise self._invalid_response(
                f"a vector of {length} numbers where others have {self._native_dimensions}"
            )

    def _kept_dimensions(self) -> int:
        assert self._native_dimensions is not None
        if self._configured_dimensions is not None:
            return self._configured_dimensions
        return min(self._native_dimensions, self._max_dimensions or self._native_dimensions)

    def _invalid_response(self, problem: str) -> EmbeddingError:
        return EmbeddingError(
            f"{self.name} answered with {problem}; the response was discarded. "
            "Check that embedding.model is an embedding model and that embedding.base_url is its server."
        )


class OpenAIEmbedder(RemoteEmbedder):
    """`POST {base_url}/embeddings`: OpenAI, and every server with the same protocol."""

    def __init__(self, spec: EmbeddingSpec) -> None:
        api_key_env = spec.api_key_env
        base_url = (spec.base_url or OPENAI_BASE_URL).rstrip("/")
        if api_key_env is None and base_url == OPENAI_BASE_URL:
            # OpenAI's key is sent to OpenAI only. For another server the user must name the variable.
            api_key_env = OPENAI_API_KEY_ENV
        super().__init__(spec, base_url=base_url, api_key_env=api_key_env, batch_size=OPENAI_BATCH_SIZE)

    def _fetch(self, texts: Sequence[str]) -> Sequence[object]:
        body: dict[str, object] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._configured_dimensions is not None:
            body["dimensions"] = self._configured_dimensions
        response = self._client.post("/embeddings", body)
        data = response.get("data") if isinstance(response, dict) else None
        if not isinstance(data, list):
            raise self._invalid_response('JSON without a list "data"')
        ordered: dict[int, object] = {}
        for item in data:
            index = item.get("index") if isinstance(item, dict) else None
            if type(index) is not int or index in ordered or not 0 <= index < len(data):
                raise self._invalid_response('items whose "index" is missing, duplicated or out of range')
            ordered[index] = item.get("embedding")
        return [ordered[index] for index in range(len(data))]


class OllamaEmbedder(RemoteEmbedder):
    """`POST {base_url}/api/embed`."""

    def __init__(self, spec: EmbeddingSpec) -> None:
        super().__init__(
            spec,
            base_url=spec.base_url or OLLAMA_BASE_URL,
            api_key_env=spec.api_key_env,
            batch_size=OLLAMA_BATCH_SIZE,
            max_dimensions=OLLAMA_MAX_DIMENSIONS,
        )

    def _fetch(self, texts: Sequence[str]) -> Sequence[object]:
        # truncate: Ollama cuts a text that is longer than the model's context instead of rejecting it.
        body = {"model": self._model, "input": list(texts), "truncate": True}
        response = self._client.post("/api/embed", body)
        embeddings = response.get("embeddings") if isinstance(response, dict) else None
        if not isinstance(embeddings, list):
            raise self._invalid_response('JSON without a list "embeddings"')
        return embeddings


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates by `?`: they are not valid Unicode, so not valid JSON."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
