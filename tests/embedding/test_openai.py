from __future__ import annotations

import pytest

from sennit.embedding import EmbeddingSpec
from sennit.embedding.remote import OpenAIEmbedder
from sennit.errors import EmbeddingError

from .server import ModelServer, as_json


def embedder(server: ModelServer, **settings: object) -> OpenAIEmbedder:
    given = {"base_url": f"{server.url}/v1", "model": "m", "backoff": 0.001, "retries": 1} | settings
    return OpenAIEmbedder(EmbeddingSpec(provider="openai", **given))  # type: ignore[arg-type]


def test_a_request_follows_the_protocol(server: ModelServer) -> None:
    embedder(server).embed_documents(["a", "b"])
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "m", "input": ["a", "b"], "encoding_format": "float"}


def test_configured_dimensions_are_sent(server: ModelServer) -> None:
    server.dimensions = 4
    assert embedder(server, dimensions=4).embed_query("a").shape == (4,)
    assert server.requests[0].body["dimensions"] == 4


@pytest.mark.parametrize("url", [None, "https://api.openai.com/v1", "https://api.openai.com/v1/"])
def test_openai_gets_the_default_key(url: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbeddingError, match="OPENAI_API_KEY is empty or not set"):
        OpenAIEmbedder(EmbeddingSpec(provider="openai", base_url=url)).embed_query("a")


def test_another_server_gets_a_key_only_if_its_variable_is_configured(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    embedder(server).embed_query("a")
    embedder(server, api_key_env="OPENAI_API_KEY").embed_query("a")
    assert [request.headers.get("authorization") for request in server.requests] == [None, "Bearer sk-openai"]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([], 'without a list "data"'),
        ({"error": "x"}, 'without a list "data"'),
        ({"data": [{"embedding": [1, 2]}]}, '"index" is missing'),
        ({"data": [{"index": True, "embedding": [1, 2]}]}, '"index" is missing'),
        ({"data": [{"index": 1, "embedding": [1, 2]}]}, "out of range"),
        ({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}, "duplicated"),
        ({"data": ["x"]}, '"index" is missing'),
        ({"data": [{"index": 0, "embedding": "AAAA"}]}, "not a list of numbers"),
    ],
)
def test_an_invalid_response_is_rejected(server: ModelServer, answer: object, problem: str) -> None:
    server.script = [as_json(answer)]
    with pytest.raises(EmbeddingError, match=problem):
        embedder(server).embed_query("a")
