from __future__ import annotations

import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from sennit.embedding.bert import BertShape, build_bert_graph
from sennit.errors import EmbeddingError, MissingExtra

from .numpy_bert import TINY, WIDTH, forward, pad, tiny_weights


def test_the_graph_computes_what_numpy_computes() -> None:
    weights = tiny_weights()
    model = build_bert_graph(weights, TINY)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    ids, mask = pad([[2, 4, 5, 6, 3], [2, 3], [2, *range(4, 14), 3]])
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    (states,) = session.run(["last_hidden_state"], inputs)
    assert states.shape == (*ids.shape, WIDTH)
    real = mask == 1  # the states of padding may differ
    np.testing.assert_allclose(states[real], forward(weights, TINY, ids, mask)[real], atol=1e-5)


def test_missing_weights_are_named() -> None:
    weights = tiny_weights()
    with pytest.raises(EmbeddingError, match=r"encoder\.layer\.2\..*is missing"):
        build_bert_graph(weights, BertShape(layers=3, heads=2))


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"sennit\[onnx\]"):
        build_bert_graph(tiny_weights(), TINY)
