from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.embedding.models import CONFIG_FILE, GRAPH_FILE, TOKENIZER_FILE
from sennit.embedding.onnx import OnnxEmbedder
from sennit.errors import EmbeddingError, MissingExtra, NotFound, SettingsError

from .numpy_bert import TINY, WIDTH, forward, pad, save_tiny_model, tiny_tokenizer, tiny_weights, unit_mean

TEXTS = [
    "the cat sat on the mat",
    "dog",
    "a dog ran far away",
    "the the the the the the the the the",
    "zebra",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_tiny_model(tmp_path / "tiny")


def embedder(folder: Path, **settings: object) -> OnnxEmbedder:
    return OnnxEmbedder(EmbeddingSpec(provider="onnx", model=str(folder), **settings))  # type: ignore[arg-type]


def configure(folder: Path, **config: object) -> None:
    (folder / CONFIG_FILE).write_text(json.dumps(config), encoding="utf-8")


def pieces(text: str) -> list[int]:
    tokenizer = tiny_tokenizer()
    tokenizer.no_padding()
    return tokenizer.encode(text).ids


def reference(texts: list[str]) -> np.ndarray:
    ids, mask = pad([pieces(text) for text in texts])
    return unit_mean(forward(tiny_weights(), TINY, ids, mask), mask)


def test_a_vector_is_the_mean_of_the_pieces_states(folder: Path) -> None:
    vectors = embedder(folder).embed_documents(TEXTS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, reference(TEXTS), atol=1e-5)


def test_the_order_and_size_of_batches_do_not_matter(folder: Path) -> None:
    expected = reference(TEXTS)
    for size in (1, 2, 3, 100):
        np.testing.assert_allclose(
            embedder(folder, batch_size=size).embed_documents(TEXTS), expected, atol=1e-5
        )
    np.testing.assert_allclose(embedder(folder).embed_documents(TEXTS[::-1]), expected[::-1], atol=1e-5)


def test_with_one_text_per_run_vectors_are_bitwise_equal_in_every_batch(folder: Path) -> None:
    configure(folder, batch=1)
    model = embedder(folder, batch_size=64)
    together = model.embed_documents(TEXTS)
    assert [row.tobytes() for row in together] == [model.embed_query(text).tobytes() for text in TEXTS]


def test_cls_pooling_takes_the_first_piece(folder: Path) -> None:
    configure(folder, pooling="cls")
    ids, mask = pad([pieces(TEXTS[0])])
    state = forward(tiny_weights(), TINY, ids, mask)[0, 0]
    np.testing.assert_allclose(
        embedder(folder).embed_query(TEXTS[0]), state / np.linalg.norm(state), atol=1e-5
    )


def test_the_sentence_embedding_of_a_graph_that_pools_is_used_unless_configured(folder: Path) -> None:
    model = onnx.load(str(folder / GRAPH_FILE))
    model.graph.node.append(
        onnx.helper.make_node(
            "ReduceMax", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0
        )
    )
    model.graph.output.append(
        onnx.helper.make_tensor_value_info("sentence_embedding", onnx.TensorProto.FLOAT, ["batch", WIDTH])
    )
    onnx.save(model, str(folder / GRAPH_FILE))
    ids, mask = pad([pieces("dog")])
    largest = forward(tiny_weights(), TINY, ids, mask).max(axis=1)[0]
    np.testing.assert_allclose(
        embedder(folder).embed_query("dog"), largest / np.linalg.norm(largest), atol=1e-5
    )
    configure(folder, pooling="mean")
    np.testing.assert_allclose(embedder(folder).embed_query("dog"), reference(["dog"])[0], atol=1e-5)


def test_a_graph_without_token_type_ids_works(folder: Path) -> None:
    model = onnx.load(str(folder / GRAPH_FILE))
    types = next(node for node in model.graph.node if "token_type_ids" in node.input)
    types.input[1] = "zero"
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([[0]]), "zero"))
    del model.graph.input[2]
    onnx.save(model, str(folder / GRAPH_FILE))
    np.testing.assert_allclose(embedder(folder).embed_documents(TEXTS), reference(TEXTS), atol=1e-5)


def test_an_empty_text_is_the_zero_vector(folder: Path) -> None:
    vectors = embedder(folder, document_prefix="the ").embed_documents(["", "dog", " \n"])
    assert vectors.any(axis=1).tolist() == [False, True, False]
    assert embedder(folder).embed_documents([]).shape == (0, WIDTH)


def test_a_long_text_is_truncated_at_the_configured_length(folder: Path) -> None:
    long = "cat " * 9 + "dog"
    np.testing.assert_array_equal(
        embedder(folder).embed_query(long), embedder(folder).embed_query("cat " * 8)
    )
    configure(folder, max_length=12)
    assert (embedder(folder).embed_query(long) != embedder(folder).embed_query("cat " * 10)).any()


def test_prefixes_come_from_the_model_unless_configured(folder: Path) -> None:
    configure(folder, query_prefix="the ", document_prefix="a ")
    plain = reference(["the dog", "a dog", "dog"])
    model = embedder(folder)
    np.testing.assert_allclose(model.embed_query("dog"), plain[0], atol=1e-5)
    np.testing.assert_allclose(model.embed_documents(["dog"])[0], plain[1], atol=1e-5)
    np.testing.assert_allclose(embedder(folder, query_prefix="").embed_query("dog"), plain[2], atol=1e-5)


def test_configured_dimensions_truncate_and_normalise(folder: Path) -> None:
    truncated = reference(TEXTS)[:, :3]
    model = embedder(folder, dimensions=3)
    assert model.dimensions == 3
    np.testing.assert_allclose(
        model.embed_documents(TEXTS), truncated / np.linalg.norm(truncated, axis=1, keepdims=True), atol=1e-5
    )
    with pytest.raises(SettingsError, match="9 is more than the 8"):
        embedder(folder, dimensions=9)


def test_the_fingerprint_depends_on_weights_and_settings_but_not_on_the_folder(
    folder: Path, tmp_path: Path
) -> None:
    fingerprint = embedder(folder).fingerprint
    assert fingerprint == embedder(save_tiny_model(tmp_path / "elsewhere" / "tiny"), batch_size=3).fingerprint
    assert str(tmp_path) not in fingerprint
    others = {
        embedder(save_tiny_model(tmp_path / "other" / "tiny", seed=8)).fingerprint,
        embedder(folder, dimensions=4).fingerprint,
        embedder(folder, document_prefix="x").fingerprint,
    }
    configure(folder, pooling="cls")
    others.add(embedder(folder).fingerprint)
    configure(folder, max_length=5)
    others.add(embedder(folder).fingerprint)
    assert len({fingerprint} | others) == 6


def test_a_model_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path))
    save_tiny_model(tmp_path / "tiny")
    model = create_embedder(EmbeddingSpec(provider="onnx", model="tiny"))
    assert model is not None
    assert (model.name, model.dimensions, model.inline) == ("onnx/tiny", WIDTH, False)


def test_the_error_about_a_missing_model_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_MODELS", str(tmp_path))
    with pytest.raises(NotFound, match="sennit models install bge-small, e5-small or minilm"):
        create_embedder(EmbeddingSpec(provider="onnx"))
    with pytest.raises(NotFound, match="There is no folder"):
        embedder(tmp_path / "nowhere")
    with pytest.raises(NotFound, match=r"needs the files model\.onnx and tokenizer\.json"):
        embedder(tmp_path)


@pytest.mark.parametrize("file", [GRAPH_FILE, TOKENIZER_FILE])
def test_a_damaged_file_is_named(folder: Path, file: str) -> None:
    (folder / file).write_bytes(b"not what it was")
    with pytest.raises(EmbeddingError, match=file):
        embedder(folder)


@pytest.mark.parametrize(
    "config",
    [b"{", b"[]", b'{"pooling": "max"}', b'{"max_length": 0}', b'{"batch": true}', b'{"query_prefix": 1}'],
)
def test_an_invalid_configuration_is_rejected(folder: Path, config: bytes) -> None:
    (folder / CONFIG_FILE).write_bytes(config)
    with pytest.raises(EmbeddingError, match=CONFIG_FILE):
        embedder(folder)


def test_a_pooling_without_a_matching_output_is_rejected(folder: Path) -> None:
    configure(folder, pooling="none")
    with pytest.raises(EmbeddingError, match="do not suit pooling 'none'"):
        embedder(folder)


def test_a_graph_with_unknown_inputs_is_rejected(folder: Path) -> None:
    model = onnx.load(str(folder / GRAPH_FILE))
    model.graph.input.append(onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.INT64, [1]))
    onnx.save(model, str(folder / GRAPH_FILE))
    with pytest.raises(EmbeddingError, match="asks for the inputs pixels"):
        embedder(folder)


def test_a_text_longer_than_the_graphs_positions_is_an_error(folder: Path) -> None:
    configure(folder, max_length=100)
    with pytest.raises(EmbeddingError, match=r"onnx/tiny failed"):
        embedder(folder).embed_query("cat " * 50)  # more than its 32 positions


def test_use_after_close_is_an_error(folder: Path) -> None:
    model = embedder(folder)
    model.close()
    model.close()
    with pytest.raises(EmbeddingError, match="closed"):
        model.embed_query("dog")


def test_a_missing_library_names_its_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"sennit\[onnx\]"):
        embedder(folder)


def test_embedding_prints_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    embedder(folder).embed_documents([*TEXTS, "\ud800", "日本"])
    assert capfd.readouterr() == ("", "")
