from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.embedding import EmbeddingSpec
from sennit.embedding.static import MAX_PIECES, StaticEmbedder
from sennit.errors import SettingsError

from .test_wordpiece import MODEL, library

GOLDEN = json.loads((Path(__file__).parent / "static_golden.json").read_text(encoding="utf-8"))["cases"]


@cache
def embedder() -> StaticEmbedder:
    return StaticEmbedder(EmbeddingSpec())


@cache
def table() -> np.ndarray:
    q = np.load(MODEL / "table.npy", allow_pickle=False)
    scale = np.load(MODEL / "scale.npy", allow_pickle=False)
    rows: np.ndarray = q.astype(np.float32) * scale.astype(np.float32)[:, None]
    return rows


def reference(text: str) -> np.ndarray:
    """Compute a vector by the model's definition."""
    unknown = library().token_to_id("[UNK]")
    ids = library().encode(text, add_special_tokens=False).ids[:MAX_PIECES]
    ids = [piece for piece in ids if piece != unknown]
    vector = table()[ids].sum(axis=0, dtype=np.float64)
    length = np.linalg.norm(vector)
    result: np.ndarray = vector / length if length else vector
    return result


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_vectors_equal_those_of_the_released_model(case: dict[str, object]) -> None:
    vector = embedder().embed_query(str(case["text"]))
    np.testing.assert_allclose(vector[:12], np.array(case["vector"]), atol=5e-6)


@given(st.text())
def test_a_vector_is_the_normalised_sum_of_the_rows_of_its_pieces(text: str) -> None:
    np.testing.assert_allclose(embedder().embed_query(text), reference(text), atol=1e-6)


def test_unknown_pieces_do_not_change_the_vector() -> None:
    assert not embedder().embed_query("고춧가루").any()
    plain, mixed = embedder().embed_documents(["red pepper flakes", "red pepper flakes 🫑"])
    assert plain.tobytes() == mixed.tobytes()


@given(st.lists(st.text(max_size=40) | st.sampled_from(["", "a longer text, with words " * 30]), max_size=8))
def test_a_vector_is_bitwise_equal_in_every_batch(texts: list[str]) -> None:
    together = embedder().embed_documents(texts)
    assert together.dtype == np.float32
    assert together.shape == (len(texts), 256)
    for text, row in zip(texts, together, strict=True):
        assert row.tobytes() == embedder().embed_documents([text])[0].tobytes()
        assert row.tobytes() == embedder().embed_query(text).tobytes()
    assert together[::-1].tobytes() == embedder().embed_documents(texts[::-1]).tobytes()


@given(st.text())
def test_a_vector_has_length_one_or_is_zero(text: str) -> None:
    length = float(np.linalg.norm(embedder().embed_query(text)))
    assert length == pytest.approx(1, abs=1e-5) or length == 0


def test_an_empty_text_is_the_zero_vector() -> None:
    assert not embedder().embed_documents(["", " \n\t", "\x00"]).any()
    assert embedder().embed_documents([]).shape == (0, 256)


def test_pieces_after_the_limit_are_ignored() -> None:
    texts = ["cat " * MAX_PIECES, "cat " * MAX_PIECES + "dog " * 50]
    first, second = embedder().embed_documents(texts)
    assert first.tobytes() == second.tobytes()


def test_paraphrases_are_nearer_than_unrelated_texts() -> None:
    cat, kitten, tax = embedder().embed_documents(
        [
            "The cat sleeps on the sofa.",
            "A kitten is sleeping on the couch.",
            "Corporate tax rates rose in 2019.",
        ]
    )
    assert cat @ kitten > 0.5 > 0.3 > cat @ tax


@pytest.mark.parametrize("count", [1, 17, 128, 255, 256])
def test_configured_dimensions_truncate_and_normalise(count: int) -> None:
    short = StaticEmbedder(EmbeddingSpec(dimensions=count))
    truncated = embedder().embed_query("when did we pick March?")[:count].astype(np.float64)
    assert short.dimensions == count
    np.testing.assert_allclose(
        short.embed_query("when did we pick March?"), truncated / np.linalg.norm(truncated), atol=1e-6
    )


def test_more_dimensions_than_the_model_has_are_rejected() -> None:
    with pytest.raises(SettingsError, match="257 is more than the 256"):
        StaticEmbedder(EmbeddingSpec(dimensions=257))


def test_the_fingerprint_depends_on_settings_that_change_document_vectors() -> None:
    plain = embedder().fingerprint
    assert plain == StaticEmbedder(EmbeddingSpec(query_prefix="query: ")).fingerprint
    others = [
        EmbeddingSpec(dimensions=128),
        EmbeddingSpec(document_prefix="a: "),
        EmbeddingSpec(document_prefix="b: "),
    ]
    assert len({plain, *(StaticEmbedder(spec).fingerprint for spec in others)}) == 4


def test_the_packaged_model_has_the_known_fingerprint() -> None:
    """A change of the table, the vocabulary or the summation invalidates every stored vector."""
    assert embedder().fingerprint == "static:sennit-static-256:256:6c43536a36c9d07f342fac7132a04b8c"


def test_prefixes_are_added_to_texts_that_are_not_empty() -> None:
    with_prefixes = StaticEmbedder(EmbeddingSpec(query_prefix="query: ", document_prefix="passage: "))
    np.testing.assert_array_equal(with_prefixes.embed_query("cat"), embedder().embed_query("query: cat"))
    found = with_prefixes.embed_documents(["cat", " "])
    np.testing.assert_array_equal(found[0], embedder().embed_query("passage: cat"))
    assert not found[1].any()


def test_embedding_many_texts_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    StaticEmbedder(EmbeddingSpec()).embed_documents(["some text", "καλημέρα", "日本"] * 100)
    assert capfd.readouterr() == ("", "")
