"""BERT's forward pass in plain numpy, as a reference for the ONNX graphs, and a tiny model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from sennit.embedding.bert import BertShape, build_bert_graph
from sennit.embedding.models import GRAPH_FILE, TOKENIZER_FILE

Floats = NDArray[np.float64]
Weights = Mapping[str, NDArray[np.float32]]

TINY = BertShape(layers=2, heads=2)
WIDTH = 8
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"the cat sat on a mat dog ran far away".split()]


def forward(weights: Weights, shape: BertShape, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Floats:
    """Return the last hidden state, in double precision."""

    def w(name: str) -> Floats:
        return weights[name].astype(np.float64)

    def dense(name: str, x: Floats) -> Floats:
        result: Floats = x @ w(f"{name}.weight").T + w(f"{name}.bias")
        return result

    def norm(name: str, x: Floats) -> Floats:
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + shape.epsilon)
        result: Floats = centred / deviation * w(f"{name}.weight") + w(f"{name}.bias")
        return result

    def heads(x: Floats) -> Floats:
        return x.reshape(*x.shape[:2], shape.heads, -1).transpose(0, 2, 1, 3)

    erf = np.vectorize(math.erf)
    x = w("embeddings.word_embeddings.weight")[ids] + w("embeddings.token_type_embeddings.weight")[0]
    x = norm("embeddings.LayerNorm", x + w("embeddings.position_embeddings.weight")[: ids.shape[1]])
    for layer in range(shape.layers):
        at = f"encoder.layer.{layer}"
        q, k, v = (heads(dense(f"{at}.attention.self.{part}", x)) for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        scores = np.where(mask[:, None, None, :] == 1, scores, -np.inf)
        probabilities = np.exp(scores - scores.max(-1, keepdims=True))
        probabilities /= probabilities.sum(-1, keepdims=True)
        context = (probabilities @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = norm(f"{at}.attention.output.LayerNorm", dense(f"{at}.attention.output.dense", context) + x)
        inner = dense(f"{at}.intermediate.dense", x)
        inner = inner * (1 + erf(inner / math.sqrt(2))) / 2
        x = norm(f"{at}.output.LayerNorm", dense(f"{at}.output.dense", inner) + x)
    return x


def unit_mean(states: Floats, mask: NDArray[np.int64]) -> Floats:
    pooled = (states * mask[:, :, None]).sum(1)
    result: Floats = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    return result


def pad(lists: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ids = np.zeros((len(lists), max(map(len, lists))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, numbers in enumerate(lists):
        ids[row, : len(numbers)] = numbers
        mask[row, : len(numbers)] = 1
    return ids, mask


def tiny_weights(width: int = WIDTH, seed: int = 7) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.position_embeddings.weight": (32, width),
    }
    dense = {}
    for layer in range(TINY.layers):
        at = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            dense[f"{at}.attention.{part}"] = (width, width)
        dense[f"{at}.intermediate.dense"] = (4 * width, width)
        dense[f"{at}.output.dense"] = (width, 4 * width)
        for name in (f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"):
            shapes |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    shapes |= {"embeddings.LayerNorm.weight": (width,), "embeddings.LayerNorm.bias": (width,)}
    for name, (out, into) in dense.items():
        shapes |= {f"{name}.weight": (out, into), f"{name}.bias": (out,)}
    return {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def tiny_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(WordPiece({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As in many published models: sennit must disable the padding and use the length.
    tokenizer.enable_padding(length=20)
    tokenizer.enable_truncation(10)
    return tokenizer


def save_tiny_model(folder: Path, seed: int = 7) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(build_bert_graph(tiny_weights(seed=seed), TINY), str(folder / GRAPH_FILE))
    tiny_tokenizer().save(str(folder / TOKENIZER_FILE))
    return folder
