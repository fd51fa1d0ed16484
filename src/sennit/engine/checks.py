"""The checks of `sennit doctor`: those of the backend, with the models and settings that only the engine knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.errors import SennitError
from sennit.filters import Equal
from sennit.ranking.calibration import Background, CosineSample
from sennit.settings.sections import HydrationSettings, SemanticMetric
from sennit.stores.codec import to_float16_bytes
from sennit.stores.contract import Backend, CheckProgress, GraphRole, KeywordRole, Model, VectorRole
from sennit.stores.findings import Finding

LOCAL_PROVIDERS: Final = ("static", "onnx")
"""Embedding providers whose vectors are recomputed for the check; a remote provider would charge for it."""

MAX_SAMPLED_VECTORS: Final = 500
"""Vectors that are compared pairwise: about 250,000 pairs."""

MIN_VECTORS: Final = 10
"""Fewer vectors give no useful statistics."""


@dataclass(frozen=True, slots=True)
class SimilarityStats:
    """How the similarities of arbitrary pairs compare with a threshold. Each record is the query for all others."""

    metric: SemanticMetric
    threshold: float
    pairs: int
    above: float
    """The share of pairs above the threshold."""
    median: float
    percentile_99: float

    def __str__(self) -> str:
        scale = "cosine" if self.metric == "cosine" else "calibrated similarity"
        return (
            f"{100 * self.above:.2f} % of {self.pairs:,} arbitrary pairs of code records are above a {scale} of "
            f"{self.threshold:g}; half are above {self.median:.2f}, one in a hundred above {self.percentile_99:.2f}"
        )


def measure_similarity(
    vectors: NDArray[np.float32], model: str, metric: SemanticMetric, threshold: float
) -> SimilarityStats | None:
    """Return the statistics of a sample of vectors; None if there are too few."""
    nonzero = vectors[vectors.any(axis=1)].astype(np.float64)
    if len(nonzero) < MIN_VECTORS:
        return None
    nonzero /= np.linalg.norm(nonzero, axis=1, keepdims=True)
    cosines = nonzero @ nonzero.T
    others = ~np.eye(len(nonzero), dtype=bool)
    rows = [row[other] for row, other in zip(cosines, others, strict=True)]
    if metric == "calibrated":
        samples = [CosineSample(float(row.mean()), len(row)) for row in rows]
        rows = [
            Background.estimate(model, sample).similarity(row)
            for row, sample in zip(rows, samples, strict=True)
        ]
    values = np.concatenate(rows)
    return SimilarityStats(
        metric,
        threshold,
        len(values),
        float(np.mean(values > threshold)),
        float(np.median(values)),
        float(np.quantile(values, 0.99)),
    )


def check_database(
    backend: Backend, settings: HydrationSettings, *, quick: bool, progress: CheckProgress | None
) -> list[Finding]:
    """Check that derived data agrees with the records, and how selective the similarity threshold of plans is."""
    found = [] if backend.check is None else backend.check(quick=quick, embed=_embed, progress=progress)
    return found + _check_servers(backend) + _check_threshold(backend, settings)


def _check_servers(backend: Backend) -> list[Finding]:
    """Ask every server, and say how far its indexes are behind."""
    found = [finding for server in backend.servers.values() for finding in server.check()]
    if backend.attached:
        with backend.records.snapshot() as snapshot:
            dimensions = snapshot.model.dimensions if snapshot.model else 0
        found += [finding for rows in backend.attached.values() for finding in rows.check(dimensions)]
    for role, lag in index_lag(backend).items():
        name = backend.bindings.get(role, role)
        if lag:
            message = f"{lag:,} changes behind; a process that has the database open applies them"
            found.append(Finding(f"{role} index", "note", f"{name}: {message}"))
        else:
            found.append(Finding(f"{role} index", "ok", f"{name}: has applied every change"))
    return found


def index_lag(backend: Backend) -> dict[str, int]:
    """Return how many changes each index that applies them later is behind, by role."""
    roles: dict[str, KeywordRole | VectorRole | GraphRole] = {
        "keyword": backend.keyword,
        "vector": backend.vector,
        "graph": backend.graph,
    }
    lagging = {name: role for name, role in roles.items() if role.capabilities.lags}
    if not lagging:
        return {}
    with backend.records.snapshot() as snapshot:
        return {name: snapshot.seq - role.applied(snapshot) for name, role in lagging.items()}


def _check_threshold(backend: Backend, settings: HydrationSettings) -> list[Finding]:
    with backend.records.snapshot() as snapshot:
        vectors = snapshot.vectors(snapshot.sample(Equal("collection", "code"), MAX_SAMPLED_VECTORS))
        name = snapshot.model.name if snapshot.model else ""
    stats = measure_similarity(vectors, name, settings.semantic_metric, settings.semantic_threshold)
    return [] if stats is None else [Finding("threshold", "ok", f"{stats} ({name})")]


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
