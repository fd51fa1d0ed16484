from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.embedding.base import Embedder
from sennit.errors import EmbeddingError

from .server import DIMENSIONS, ModelServer, Response, as_json, hang, vector_of


@pytest.fixture(params=["openai", "ollama"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def embedder(provider: str, server: ModelServer, **settings: object) -> Embedder:
    given = {"base_url": server.url, "model": "m", "backoff": 0.001, "retries": 1} | settings
    created = create_embedder(EmbeddingSpec(provider=provider, **given))  # type: ignore[arg-type]
    assert created is not None
    return created


def unit(text: str, dimensions: int = DIMENSIONS) -> np.ndarray:
    vector = np.array(vector_of(text, dimensions))
    result: np.ndarray = vector / np.linalg.norm(vector)
    return result


def vectors(provider: str, rows: list[object]) -> Response:
    """A well-formed response with these vectors."""
    if provider == "ollama":
        return as_json({"embeddings": rows})
    return as_json({"data": [{"index": index, "embedding": row} for index, row in enumerate(rows)]})


def test_each_text_gets_its_own_unit_vector(provider: str, server: ModelServer) -> None:
    texts = ["one", "two", "three", "Ωμέγα"]
    found = embedder(provider, server).embed_documents(texts)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.stack([unit(text) for text in texts]), atol=1e-6)


def test_texts_are_sent_in_batches(provider: str, server: ModelServer) -> None:
    texts = [f"text {number}" for number in range(7)]
    found = embedder(provider, server, batch_size=3).embed_documents(texts)
    assert [len(request.texts) for request in server.requests] == [3, 3, 1]
    np.testing.assert_allclose(found, np.stack([unit(text) for text in texts]), atol=1e-6)


def test_an_empty_text_is_zero_and_is_not_sent(provider: str, server: ModelServer) -> None:
    found = embedder(provider, server).embed_documents(["", "one", " \n"])
    assert [request.texts for request in server.requests] == [["one"]]
    assert found.any(axis=1).tolist() == [False, True, False]
    known = embedder(provider, server, dimensions=5)
    server.requests.clear()
    assert known.embed_documents(["", "  "]).tolist() == [[0] * 5] * 2
    assert known.embed_query("").shape == (5,)
    assert server.requests == []


def test_prefixes_are_sent(provider: str, server: ModelServer) -> None:
    model = embedder(provider, server, query_prefix="Q: ", document_prefix="D: ")
    model.embed_query("a")
    model.embed_documents(["b", ""])
    assert [request.texts for request in server.requests] == [["Q: a"], ["D: b"]]


def test_dimensions_need_one_request(provider: str, server: ModelServer) -> None:
    model = embedder(provider, server)
    assert model.dimensions == DIMENSIONS
    assert model.dimensions == DIMENSIONS
    assert len(server.requests) == 1


def test_configured_dimensions_truncate_and_normalise(provider: str, server: ModelServer) -> None:
    vector = embedder(provider, server, dimensions=3).embed_query("a")
    truncated = np.array(vector_of("a"))[:3]
    np.testing.assert_allclose(vector, truncated / np.linalg.norm(truncated), atol=1e-6)


def test_more_dimensions_than_the_model_has_are_an_error(provider: str, server: ModelServer) -> None:
    with pytest.raises(EmbeddingError, match=r"8 numbers, fewer than embedding\.dimensions = 9"):
        embedder(provider, server, dimensions=9).embed_query("a")


def test_a_model_that_changes_its_dimensions_is_an_error(provider: str, server: ModelServer) -> None:
    model = embedder(provider, server)
    model.embed_query("a")
    server.dimensions = 16
    with pytest.raises(EmbeddingError, match="a vector of 16 numbers where others have 8"):
        model.embed_query("b")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "0 vectors for 1 texts"),
        ([[1.0, 2.0], [1.0, 2.0]], "2 vectors for 1 texts"),
        ([[float("nan"), 1.0]], "infinite or not numbers"),
        ([[float("inf"), 1.0]], "infinite or not numbers"),
        ([[1e39, 1.0]], "infinite or not numbers"),
        ([[10**400, 1]], "too large"),
        ([["1", "2"]], "not a number"),
        ([[True, 1.0]], "not a number"),
        ([[None, 1.0]], "not a number"),
        ([[[1.0]]], "not a number"),
        ([[]], "not a list of numbers"),
        ([None], "not a list of numbers"),
        ([{"0": 1.0}], "not a list of numbers"),
        ([[0.5] * 70_000], "a vector of 70000 numbers"),
    ],
)
def test_an_invalid_response_is_rejected_and_changes_nothing(
    provider: str, server: ModelServer, rows: list[object], problem: str
) -> None:
    model = embedder(provider, server)
    server.script = [vectors(provider, rows)]
    with pytest.raises(EmbeddingError, match=problem):
        model.embed_query("a")
    np.testing.assert_allclose(model.embed_query("a"), unit("a"), atol=1e-6)


def test_vectors_of_different_lengths_in_one_response_are_rejected(
    provider: str, server: ModelServer
) -> None:
    server.script = [vectors(provider, [[1.0, 2.0], [1.0, 2.0, 3.0]])]
    with pytest.raises(EmbeddingError, match="a vector of 3 numbers where others have 2"):
        embedder(provider, server).embed_documents(["a", "b"])


def test_a_single_failure_is_retried(provider: str, server: ModelServer) -> None:
    server.script = [Response(500)]
    np.testing.assert_allclose(embedder(provider, server).embed_query("a"), unit("a"), atol=1e-6)


def test_a_hanging_server_is_an_error_at_the_timeout(provider: str, server: ModelServer) -> None:
    server.script = [Response(act=hang)] * 2
    with pytest.raises(EmbeddingError, match="did not answer within"):
        embedder(provider, server, timeout=0.1).embed_query("a")


def test_a_lone_surrogate_is_sent_as_a_question_mark(provider: str, server: ModelServer) -> None:
    embedder(provider, server).embed_query("a \ud800")
    assert server.requests[0].texts == ["a ?"]


def test_the_fingerprint_depends_on_model_and_settings_but_not_on_the_server(
    provider: str, server: ModelServer, other_server: ModelServer
) -> None:
    here, there = embedder(provider, server), embedder(provider, other_server, query_prefix="q")
    assert here.fingerprint == there.fingerprint
    assert "127.0.0.1" not in here.fingerprint
    others: list[dict[str, object]] = [{"dimensions": 4}, {"model": "n"}, {"document_prefix": "d"}]
    fingerprints = {embedder(provider, server, **settings).fingerprint for settings in others}
    assert len({here.fingerprint, *fingerprints}) == 4
    assert server.requests == [], "a fingerprint needs no request"


def test_a_remote_model_is_not_inline(provider: str, server: ModelServer) -> None:
    model = embedder(provider, server)
    assert (model.name, model.inline) == (f"{provider}/m", False)


def test_use_after_close_is_an_error(provider: str, server: ModelServer) -> None:
    model = embedder(provider, server)
    model.close()
    model.close()
    with pytest.raises(EmbeddingError, match="closed"):
        model.embed_query("a")


def test_several_threads_may_use_one_embedder(provider: str, server: ModelServer) -> None:
    model = embedder(provider, server, batch_size=2)
    groups = [[f"{group}/{number}" for number in range(3)] for group in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for texts, found in zip(groups, pool.map(model.embed_documents, groups), strict=True):
            np.testing.assert_allclose(found, np.stack([unit(text) for text in texts]), atol=1e-6)
