from __future__ import annotations

import numpy as np
import pytest

from sennit.embedding import EmbeddingSpec
from sennit.embedding.remote import OllamaEmbedder
from sennit.errors import EmbeddingError

from .server import ModelServer, as_json, vector_of


def embedder(server: ModelServer, **settings: object) -> OllamaEmbedder:
    given = {"base_url": server.url, "backoff": 0.001, "retries": 1} | settings
    return OllamaEmbedder(EmbeddingSpec(provider="ollama", **given))  # type: ignore[arg-type]


def test_a_request_follows_the_protocol(server: ModelServer) -> None:
    embedder(server).embed_documents(["a", "b"])
    (request,) = server.requests
    assert request.path == "/api/embed"
    assert request.body == {"model": "qwen3-embedding", "input": ["a", "b"], "truncate": True}


def test_long_vectors_are_truncated_to_1024_numbers_and_normalised(server: ModelServer) -> None:
    server.dimensions = 2560
    model = embedder(server)
    truncated = np.array(vector_of("a", 2560))[:1024]
    np.testing.assert_allclose(model.embed_query("a"), truncated / np.linalg.norm(truncated), atol=1e-6)
    assert model.dimensions == 1024
    assert model.fingerprint == "ollama:qwen3-embedding:max1024"


def test_shorter_vectors_are_not_truncated_unless_configured(server: ModelServer) -> None:
    server.dimensions = 768
    assert embedder(server).embed_query("a").shape == (768,)
    assert embedder(server, dimensions=256).embed_query("a").shape == (256,)
    with pytest.raises(EmbeddingError, match=r"768 numbers, fewer than embedding\.dimensions = 1024"):
        embedder(server, dimensions=1024).embed_query("a")


def test_more_than_1024_numbers_are_kept_if_configured(server: ModelServer) -> None:
    server.dimensions = 2560
    assert embedder(server, dimensions=2000).embed_query("a").shape == (2000,)


def test_an_error_of_the_server_is_quoted(server: ModelServer) -> None:
    server.script = [as_json({"error": 'model "qwen3-embedding" not found, try pulling it first'}, 404)]
    with pytest.raises(EmbeddingError, match=r"answered 404 .*try pulling it first"):
        embedder(server).embed_query("a")


@pytest.mark.parametrize("answer", [[], {"embedding": [1, 2]}, {"embeddings": None}, "x"])
def test_an_invalid_response_is_rejected(server: ModelServer, answer: object) -> None:
    server.script = [as_json(answer)]
    with pytest.raises(EmbeddingError, match='without a list "embeddings"'):
        embedder(server).embed_query("a")
