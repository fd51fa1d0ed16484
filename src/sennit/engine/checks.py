"""The checks of `sennit doctor`: those of the backend, with the models and settings that only the engine knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.errors import SennitError
from sennit.filters import Equal
from sennit.hydration.similarity_stats import MAX_SAMPLED_VECTORS, measure_similarity
from sennit.stores.codec import to_float16_bytes
from sennit.stores.contract import Backend, CheckProgress, Model
from sennit.stores.findings import Finding

LOCAL_PROVIDERS: Final = ("static", "onnx")
"""Embedding providers whose vectors are recomputed for the check; a remote provider would charge for it."""


def check_database(
    backend: Backend, semantic_threshold: float, *, quick: bool, progress: CheckProgress | None
) -> list[Finding]:
    """Check that derived data agrees with the records, and how selective the similarity threshold of plans is."""
    found = [] if backend.check is None else backend.check(quick=quick, embed=_embed, progress=progress)
    return found + _check_threshold(backend, semantic_threshold)


def _check_threshold(backend: Backend, threshold: float) -> list[Finding]:
    with backend.records.snapshot() as snapshot:
        vectors = snapshot.vectors(snapshot.sample(Equal("collection", "code"), MAX_SAMPLED_VECTORS))
        name = snapshot.model.name if snapshot.model else ""
    scale = measure_similarity(vectors, threshold)
    return [] if scale is None else [Finding("threshold", "ok", f"{scale} ({name})")]


def _embed(model: Model, texts: Sequence[str]) -> Sequence[bytes] | None:
    """Embed texts with a local model; None if the model is remote or not installed."""
    spec = json.loads(model.spec)
    if spec.get("provider") not in LOCAL_PROVIDERS:
        return None
    try:
        embedder = create_embedder(EmbeddingSpec(**spec))
    except SennitError:
        return None
    if embedder is None or embedder.fingerprint != model.fingerprint:
        return None
    try:
        return to_float16_bytes(embedder.embed_documents(texts))
    finally:
        embedder.close()
