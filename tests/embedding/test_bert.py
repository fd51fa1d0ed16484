from __future__ import annotations

import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from sennit.embedding.bert import BertShape, bert_graph
from sennit.errors import EmbeddingError, MissingExtra

from .numpy_bert import TINY, WIDTH, forward, padded, tiny_weights


def test_the_graph_computes_what_numpy_computes() -> None:
    weights = tiny_weights()
    model = bert_graph(weights, TINY)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ids, mask = padded([[2, 4, 5, 6, 3], [2, 3], [2, *range(4, 14), 3]])
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    (states,) = session.run(["last_hidden_state"], given)
    assert states.shape == (*ids.shape, WIDTH)
    real = mask == 1  # what stands at padding is nobody's business
    np.testing.assert_allclose(states[real], forward(weights, TINY, ids, mask)[real], atol=1e-5)


def test_weights_that_are_not_berts_are_named() -> None:
    weights = tiny_weights()
    with pytest.raises(EmbeddingError, match=r"encoder\.layer\.2\..*is missing"):
        bert_graph(weights, BertShape(layers=3, heads=2))


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"sennit\[onnx\]"):
        bert_graph(tiny_weights(), TINY)
