"""Rerankers on a server: Cohere, Jina, and Hugging Face's text-embeddings-inference (TEI)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sennit.embedding.http import JsonClient, ModelService
from sennit.errors import SourceError
from sennit.rerankers.base import RerankSpec, check_scores

MAX_RESPONSE_BYTES: Final = 4 * 1024 * 1024
"""A thousand scores have 50 KB; some servers send the texts back."""

SERVICE: Final = ModelService(
    section="rerank",
    description="reranker",
    error=SourceError,
    size_advice="let the stage rerank fewer candidates",
    timeout_setting="the milliseconds of the stage rerank",
    max_response_bytes=MAX_RESPONSE_BYTES,
)


@dataclass(frozen=True, slots=True)
class _Form:
    """What differs between the servers."""

    base_url: str
    path: str
    api_key_env: str | None
    needs_model: bool
    texts: str
    """The field of the request that has the texts."""
    results: str
    """The field of the answer that has the results; empty if the answer is the list itself."""
    score: str
    extra: Mapping[str, object]


FORMS: Final[Mapping[str, _Form]] = {
    "cohere": _Form(
        "https://api.cohere.com",
        "/v2/rerank",
        "COHERE_API_KEY",
        True,
        "documents",
        "results",
        "relevance_score",
        {},
    ),
    "jina": _Form(
        "https://api.jina.ai",
        "/v1/rerank",
        "JINA_API_KEY",
        True,
        "documents",
        "results",
        "relevance_score",
        {"return_documents": False},
    ),
    "tei": _Form("http://127.0.0.1:8080", "/rerank", None, False, "texts", "", "score", {"truncate": True}),
}


class Endpoint:
    """A reranker behind HTTP. It is asked once: a search does not wait for a second try."""

    def __init__(self, spec: RerankSpec) -> None:
        self._form: Final = FORMS[spec.provider]
        self._model: Final = spec.model
        if self._form.needs_model and not spec.model:
            raise SourceError(f"The reranker {spec.provider} needs the name of a model; set rerank.model.")
        self.name: Final = f"{spec.provider}/{spec.model}".rstrip("/")
        # A key belongs to the provider's own server; another server gets one only if the settings name it.
        own_key = self._form.api_key_env if spec.base_url is None else None
        self._client: Final = JsonClient(
            spec.base_url or self._form.base_url,
            timeout=60.0,
            retries=0,
            backoff=0.0,
            api_key_env=spec.api_key_env or own_key,
            service=SERVICE,
        )

    def score(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        form = self._form
        body: dict[str, object] = {"query": query, form.texts: list(texts), **form.extra}
        if self._model:
            body["model"] = self._model
        answer = self._client.post(form.path, body, timeout=seconds)
        if form.results:
            answer = answer.get(form.results) if isinstance(answer, dict) else None
        if not isinstance(answer, list):
            raise SourceError(f"{self.name} gave no list of results; is rerank.base_url a reranker?")
        scores: list[object] = [None] * len(texts)
        for item in answer:
            index = item.get("index") if isinstance(item, dict) else None
            if type(index) is not int or not 0 <= index < len(texts) or scores[index] is not None:
                raise SourceError(
                    f"{self.name} gave a result for a text that it did not get, or two for one."
                )
            scores[index] = item.get(form.score)
        missing = scores.count(None)
        if missing:
            raise SourceError(f"{self.name} gave {len(texts) - missing} scores for {len(texts)} texts.")
        return check_scores(self.name, scores, len(texts))

    def close(self) -> None:
        self._client.close()
