"""Cross-encoders in ONNX format on the CPU. A model is a folder with model.onnx and tokenizer.json."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.embedding.models import GRAPH_FILE, TOKENIZER_FILE, find_model
from sennit.embedding.onnx import load_session, load_tokenizer, replace_surrogates
from sennit.errors import EmbeddingError, SourceError
from sennit.rerankers.base import RerankSpec, check_scores

RUN_SIZE: Final = 8
"""Pairs per run of the graph. Between two runs the model looks at the clock."""


class CrossEncoder:
    """Runs the model in this process."""

    def __init__(self, spec: RerankSpec) -> None:
        folder = find_model(spec.model, "rerank.model")
        self.name: Final = f"onnx/{folder.name}"
        try:
            self._tokenizer, _ = load_tokenizer(folder / TOKENIZER_FILE, None)
            self._session: Any = load_session(folder / GRAPH_FILE)
        except EmbeddingError as error:
            raise SourceError(str(error)) from error
        self._inputs: Final = {one.name for one in self._session.get_inputs()}
        unsupported = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unsupported:
            raise SourceError(
                f"{self.name} asks for the inputs {', '.join(sorted(unsupported))}, which sennit does not support."
            )

    def score(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        end = time.monotonic() + seconds
        asked = replace_surrogates(query)
        pairs = [self._tokenizer.encode(asked, replace_surrogates(text)) for text in texts]
        # Sorted by length, so that a run needs little padding.
        order = sorted(range(len(pairs)), key=lambda row: len(pairs[row].ids))
        scores: list[object] = [None] * len(texts)
        for start in range(0, len(order), RUN_SIZE):
            if time.monotonic() > end:
                raise SourceError(
                    f"{self.name} scored {start} of {len(texts)} texts in {seconds * 1000:.0f} ms."
                )
            rows = order[start : start + RUN_SIZE]
            found = self._run([pairs[row].ids for row in rows], [pairs[row].type_ids for row in rows])
            for row, score in zip(rows, found.tolist(), strict=True):
                scores[row] = score
        return check_scores(self.name, scores, len(texts))

    def close(self) -> None:
        self._session = None

    def _run(self, ids: Sequence[Sequence[int]], types: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Return one score per pair."""
        session = self._session
        if session is None:
            raise SourceError(f"{self.name} is closed.")
        longest = max(map(len, ids))
        inputs = {
            name: np.zeros((len(ids), longest), np.int64)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        }
        for row, (pieces, kinds) in enumerate(zip(ids, types, strict=True)):
            inputs["input_ids"][row, : len(pieces)] = pieces
            inputs["attention_mask"][row, : len(pieces)] = 1
            inputs["token_type_ids"][row, : len(kinds)] = kinds
        try:
            output = np.asarray(
                session.run(None, {name: inputs[name] for name in self._inputs})[0], np.float64
            )
        except Exception as error:
            raise SourceError(f"{self.name} failed: {error}") from error
        if output.size != len(ids):
            raise SourceError(
                f"{self.name} gave an output of shape {output.shape} for {len(ids)} pairs; a cross-encoder gives one "
                "score per pair."
            )
        return output.reshape(len(ids))
