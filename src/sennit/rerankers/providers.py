"""Makes a reranker from its configuration. A provider's module is imported only when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sennit.rerankers.base import Reranker, RerankSpec


def create_reranker(spec: RerankSpec) -> Reranker | None:
    """Return the reranker of a configuration; None if none is configured."""
    make = PROVIDERS.get(spec.provider)
    return None if make is None else make(spec)


def _make_onnx(spec: RerankSpec) -> Reranker:
    from sennit.rerankers.cross_encoder import CrossEncoder

    return CrossEncoder(spec)


def _make_endpoint(spec: RerankSpec) -> Reranker:
    from sennit.rerankers.endpoints import Endpoint

    return Endpoint(spec)


PROVIDERS: Final[Mapping[str, Callable[[RerankSpec], Reranker]]] = {
    "onnx": _make_onnx,
    "cohere": _make_endpoint,
    "jina": _make_endpoint,
    "tei": _make_endpoint,
}
