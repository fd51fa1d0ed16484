"""Builds the ONNX graph of a BERT encoder from its weights, without torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sennit.errors import EmbeddingError, MissingExtra

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPSET: Final = 17
"""The first opset with LayerNormalization, so the oldest that keeps the graph small."""

IR_VERSION: Final = 8
"""The IR version of that opset. A newer one would exclude older runtimes without need."""

MASK_PENALTY: Final = -1e9
"""Added to the attention scores of padding: negligible after the softmax, and finite in float32."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The hyperparameters that the weights do not determine."""

    layers: int
    heads: int
    epsilon: float = 1e-12


def build_bert_graph(weights: Mapping[str, NDArray[np.float32]], shape: BertShape) -> Any:
    """Return an `onnx.ModelProto`: input_ids, attention_mask, token_type_ids → last_hidden_state.

    The weights have the names that transformers gives them in the files of a BertModel.
    """
    try:
        return _GraphBuilder(weights, shape).build()
    except KeyError as error:
        raise EmbeddingError(f"These are not the weights of a BERT encoder: {error} is missing.") from error


class _GraphBuilder:
    """Collects nodes and constants. Each method adds one part and returns the name of its output."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], shape: BertShape) -> None:
        try:
            import onnx
        except ImportError as error:
            raise MissingExtra("Building an ONNX model", "onnx") from error
        self._onnx = onnx
        self._weights = weights
        self._shape = shape
        self._width = weights["embeddings.word_embeddings.weight"].shape[1]
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}

    def build(self) -> Any:
        helper, types = self._onnx.helper, self._onnx.TensorProto
        state = self._embeddings()
        mask = self._mask()
        for layer in range(self._shape.layers):
            state = self._layer(f"encoder.layer.{layer}", state, mask)
        self._node("Identity", [state], "last_hidden_state")
        tokens = ["batch", "sequence"]
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [
                helper.make_tensor_value_info(name, types.INT64, tokens)
                for name in ("input_ids", "attention_mask", "token_type_ids")
            ],
            [helper.make_tensor_value_info("last_hidden_state", types.FLOAT, [*tokens, self._width])],
            list(self._constants.values()),
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="sennit"
        )
        model.ir_version = IR_VERSION
        return model

    def _embeddings(self) -> str:
        words = self._node(
            "Gather", [self._weight("embeddings.word_embeddings.weight"), "input_ids"], "words"
        )
        types = self._node(
            "Gather", [self._weight("embeddings.token_type_embeddings.weight"), "token_type_ids"], "types"
        )
        length = self._node("Shape", ["input_ids"], "length", start=1, end=2)
        positions = self._node(
            "Slice",
            [
                self._weight("embeddings.position_embeddings.weight"),
                self._constant("first", np.array([0])),
                length,
                self._constant("rows", np.array([0])),
            ],
            "positions",
        )
        summed = self._node("Add", [self._node("Add", [words, types], "words+types"), positions], "summed")
        return self._layer_norm("embeddings.LayerNorm", summed)

    def _mask(self) -> str:
        mask = self._node("Cast", ["attention_mask"], "mask", to=self._onnx.TensorProto.FLOAT)
        padding = self._node("Sub", [self._constant("one", np.float32(1)), mask], "padding")
        penalty = self._node(
            "Mul", [padding, self._constant("mask_penalty", np.float32(MASK_PENALTY))], "penalty"
        )
        return self._node("Unsqueeze", [penalty, self._constant("heads+queries", np.array([1, 2]))], "bias")

    def _layer(self, name: str, state: str, mask: str) -> str:
        attended = self._dense(f"{name}.attention.output.dense", self._attention(name, state, mask))
        state = self._layer_norm(
            f"{name}.attention.output.LayerNorm", self._node("Add", [attended, state], f"{name}.residual1")
        )
        inner = self._gelu(name, self._dense(f"{name}.intermediate.dense", state))
        outer = self._dense(f"{name}.output.dense", inner)
        return self._layer_norm(
            f"{name}.output.LayerNorm", self._node("Add", [outer, state], f"{name}.residual2")
        )

    def _attention(self, name: str, state: str, mask: str) -> str:
        size = self._width // self._shape.heads
        query, key, value = (
            self._heads(f"{name}.attention.self.{part}", state, size) for part in ("query", "key", "value")
        )
        transposed = self._node("Transpose", [key], f"{name}.key.transposed", perm=[0, 1, 3, 2])
        raw = self._node("MatMul", [query, transposed], f"{name}.raw")
        scale = self._constant("scale", np.float32(1 / math.sqrt(size)))
        scores = self._node(
            "Add", [self._node("Mul", [raw, scale], f"{name}.scaled"), mask], f"{name}.scores"
        )
        probabilities = self._node("Softmax", [scores], f"{name}.probabilities", axis=-1)
        context = self._node("MatMul", [probabilities, value], f"{name}.context")
        by_token = self._node("Transpose", [context], f"{name}.by_token", perm=[0, 2, 1, 3])
        joined = self._constant("joined", np.array([0, 0, self._width]))
        return self._node("Reshape", [by_token, joined], f"{name}.joined")

    def _heads(self, name: str, state: str, size: int) -> str:
        split = self._constant("split", np.array([0, 0, self._shape.heads, size]))
        parts = self._node("Reshape", [self._dense(name, state), split], f"{name}.split")
        return self._node("Transpose", [parts], f"{name}.heads", perm=[0, 2, 1, 3])

    def _gelu(self, name: str, x: str) -> str:
        """x · ½ · (1 + erf(x / √2)): the exact form, which the runtime fuses."""
        scaled = self._node("Div", [x, self._constant("sqrt2", np.float32(math.sqrt(2)))], f"{name}.erf.in")
        erf = self._node("Erf", [scaled], f"{name}.erf")
        gate = self._node("Add", [erf, self._constant("one", np.float32(1))], f"{name}.gate")
        product = self._node("Mul", [x, gate], f"{name}.gated")
        return self._node("Mul", [product, self._constant("half", np.float32(0.5))], f"{name}.gelu")

    def _dense(self, name: str, x: str) -> str:
        # The files hold (out, in); MatMul needs (in, out).
        matrix = self._constant(f"{name}.matrix", np.ascontiguousarray(self._weights[f"{name}.weight"].T))
        product = self._node("MatMul", [x, matrix], f"{name}.product")
        return self._node("Add", [product, self._weight(f"{name}.bias")], f"{name}.out")

    def _layer_norm(self, name: str, x: str) -> str:
        return self._node(
            "LayerNormalization",
            [x, self._weight(f"{name}.weight"), self._weight(f"{name}.bias")],
            f"{name}.out",
            axis=-1,
            epsilon=self._shape.epsilon,
        )

    def _weight(self, name: str) -> str:
        return self._constant(name, self._weights[name])

    def _constant(self, name: str, value: NDArray[Any] | np.float32) -> str:
        if name not in self._constants:
            self._constants[name] = self._onnx.numpy_helper.from_array(np.asarray(value), name)
        return name

    def _node(self, kind: str, inputs: Sequence[str], output: str, **attributes: object) -> str:
        self._nodes.append(
            self._onnx.helper.make_node(kind, list(inputs), [output], name=output, **attributes)
        )
        return output
