"""Connects the embedding models of this process with the models that a database was built with."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.embedding import CachingEmbedder, Embedder, EmbeddingSpec, create_embedder
from sennit.embedding.given import GIVEN, given_name, given_spec, is_given
from sennit.errors import EmbeddingError, InvalidInput, SennitError
from sennit.stores.codec import to_float16_bytes
from sennit.stores.contract import Model, NewVectors, RecordsRole
from sennit.stores.prepared_records import PreparedRecord

log = logging.getLogger("sennit.embedding")

STORED_SPEC_FIELDS: Final = ("provider", "model", "dimensions", "query_prefix", "document_prefix")
"""What a database stores about a model. Addresses and credentials belong to the user and stay in the settings."""

EMBED_BATCH_TEXTS: Final = 1024

PrecomputedVectors = Mapping[str, Mapping[bytes, bytes]]
"""Half-precision vectors that another process computed, by model fingerprint and by text hash."""

NO_PRECOMPUTED_VECTORS: Final[PrecomputedVectors] = {}

REMOTE_PROVIDERS: Final = ("openai", "ollama")
"""Providers that receive the texts. Only the user's settings may name one, never a database."""


class EmbeddingService:
    """The embedding models that this process can use: the configured one, and those the database was built with."""

    def __init__(self, store: RecordsRole, spec: EmbeddingSpec, *, explicit: bool) -> None:
        self._store = store
        self._spec = spec
        self.explicit = explicit
        """The settings name a model. Otherwise a database keeps the model it has."""
        self._lock = threading.RLock()
        self._embedders: dict[str, CachingEmbedder | str] = {}
        """By fingerprint. A string says why the model cannot be used."""
        self._model_selected = False
        self.disabled = spec.provider == "none"
        self.on_model_change: Callable[[], None] = lambda: None
        """Called when the database gets another model, and when selecting one has to wait for a server."""

    def close(self) -> None:
        """Close every embedder."""
        with self._lock:
            for embedder in self._embedders.values():
                if isinstance(embedder, CachingEmbedder):
                    embedder.close()
            self._embedders.clear()

    def select_model(self) -> None:
        """Agree with the database on a model: keep the one it has, register the first one, or change it.

        Without an explicit setting the database keeps its model, so that a process with other defaults never
        starts a rebuild.
        """
        if self._model_selected or self.disabled:
            return
        with self._lock:
            if self._model_selected:
                return
            known = self._store.models.current()
            if not known or self.explicit:
                self._register(self._spec)
            elif self._embedder(known[0]) is None and self._spec.provider == known[0].name.split("/")[0]:
                # The model has the same name but other weights: its vectors are rebuilt while the old ones answer.
                self._register(self._spec)
            self._model_selected = True

    def _register(self, spec: EmbeddingSpec) -> None:
        """Make this the model of the database. Without a length, given vectors have no model before the first one."""
        embedder = create_embedder(spec)
        if embedder is not None:
            self._embedders[embedder.fingerprint] = _with_query_cache(embedder, spec)
            self._register_model(spec, embedder.fingerprint, embedder.name, embedder.dimensions)
        elif spec.provider == GIVEN and spec.dimensions is not None:
            name = given_name(spec.dimensions)
            self._register_model(spec, name, name, spec.dimensions)

    def _register_model(self, spec: EmbeddingSpec, fingerprint: str, name: str, dimensions: int) -> None:
        before = {model.fingerprint: model.state for model in self._store.models.current()}
        stored_spec = {key: value for key, value in asdict(spec).items() if key in STORED_SPEC_FIELDS}
        model = self._store.models.register(fingerprint, name, json.dumps(stored_spec), dimensions)
        if model.state != before.get(model.fingerprint):
            self.on_model_change()
        if before and model.fingerprint not in before and model.state == "building":
            log.warning(
                "the embedding model changes to %s: its vectors are built in the background, and the old model "
                "answers until they are complete ('sennit models' shows how far they are)",
                name,
            )

    def portable_models(self) -> list[tuple[str, str]]:
        """Fingerprint and specification of every usable inline model; a worker process can load it too."""
        self.ensure_model()
        if self.disabled:
            return []
        loaded = ((model, self._embedder(model)) for model in self._store.models.current())
        return [
            (model.fingerprint, model.spec)
            for model, embedder in loaded
            if embedder is not None and embedder.inline
        ]

    def embed_records(
        self, records: Sequence[PreparedRecord], given: PrecomputedVectors = NO_PRECOMPUTED_VECTORS
    ) -> NewVectors:
        """Vectors for the texts that the database has none for, by every usable inline model.

        The vectors in `given` are taken over and not computed again.
        """
        self.ensure_model()
        out: dict[int, dict[bytes, bytes]] = {}
        if self.disabled:
            return out
        by_hash = {record.embedding_hash: record for record in records}
        for model, absent in self._store.models.missing_vectors(by_hash, given):
            embedder = self._embedder(model)
            known = given.get(model.fingerprint, {})
            vectors = {digest: known[digest] for digest in by_hash if digest in known}
            inline = embedder is not None and embedder.inline
            missing = [digest for digest in by_hash if digest in absent] if inline else []
            for start in range(0, len(missing), EMBED_BATCH_TEXTS):
                batch = missing[start : start + EMBED_BATCH_TEXTS]
                assert embedder is not None
                rows = embedder.embed_documents([by_hash[digest].embedding_text for digest in batch])
                vectors.update(zip(batch, to_float16_bytes(rows), strict=True))
            if vectors:
                out[model.number] = vectors
        return out

    def accept_given(self, dimensions: int) -> str:
        """Return the fingerprint of the model for vectors that come with records, which a new database gets now.

        Vectors of two kinds never mix: a database whose vectors come from elsewhere refuses them.
        """
        with self._lock:
            current = self._store.models.current()
            own = [model for model in current if is_given(model.name)]
            if own and own[-1].dimensions == dimensions:
                return own[-1].fingerprint
            configured = self._spec.dimensions if self._spec.provider == GIVEN else None
            expected = own[-1].dimensions if own and self._store.count() else configured
            if expected not in (None, dimensions):
                raise InvalidInput(
                    f"The vector of a record has {dimensions:,} numbers; those of this database have {expected:,}"
                )
            if (
                not own
                and self._spec.provider != GIVEN
                and (self.explicit or (current and self._store.count()))
            ):
                source = current[0].name if current else f"provider {self._spec.provider!r}"
                raise InvalidInput(
                    f"A record has a vector of its own, and the vectors of this database come from {source}. Vectors of "
                    "two kinds never mix: leave the vector out, or open the database with embedding.provider = 'given' "
                    "and add every record again with its vector"
                )
            self._register(given_spec(dimensions))
            self._model_selected = True
            return given_name(dimensions)

    def embed_texts(self, model: Model, texts: Sequence[str]) -> Sequence[bytes] | None:
        """Half-precision vectors of texts; None when this process cannot use the model."""
        embedder = self._embedder(model)
        return None if embedder is None else to_float16_bytes(embedder.embed_documents(texts))

    def embed_query(self, model: Model | None, text: str) -> NDArray[np.float32]:
        """The vector of a query, by the model whose vectors are searched."""
        if self.disabled:
            raise EmbeddingError(
                "embedding is off (provider 'none'); set embedding.provider to search by meaning"
            )
        if model is None:
            raise EmbeddingError("there are no vectors yet: the embedding model has not answered so far")
        embedder = self._embedder(model)
        if embedder is None:
            reason = self._embedders.get(model.fingerprint)
            raise EmbeddingError(f"the model {model.name} cannot be used here: {reason}")
        return embedder.embed_query(text)

    def is_inline(self) -> bool:
        """Whether this process embeds a query itself, without waiting for a server."""
        return self._spec.provider in ("static", GIVEN, "none") and not any(
            isinstance(e, CachingEmbedder) and not e.inline for e in self._embedders.values()
        )

    def ensure_model(self) -> None:
        """Select a model if that needs no server; otherwise leave it to the background thread."""
        if self._model_selected or self.disabled:
            return
        if self._spec.provider in REMOTE_PROVIDERS:
            self.on_model_change()
            return
        try:
            self.select_model()
        except EmbeddingError as error:
            log.warning("the embedding model is not available yet: %s", error)

    def _embedder(self, model: Model) -> Embedder | None:
        with self._lock:
            known = self._embedders.get(model.fingerprint)
            if known is None:
                known = self._embedders[model.fingerprint] = self._load_embedder(model)
            return known if isinstance(known, CachingEmbedder) else None

    def _load_embedder(self, model: Model) -> CachingEmbedder | str:
        """The embedder of a model that the database knows, with the user's own address and credentials."""
        try:
            stored_spec = json.loads(model.spec)
            spec = EmbeddingSpec(**stored_spec)
            if spec.provider == GIVEN:
                return (
                    "its vectors come with the records; to search by meaning, give the query's with vector="
                )
            if spec.provider in REMOTE_PROVIDERS and spec.provider != self._spec.provider:
                return f"it sends texts to a server; set embedding.provider = {spec.provider!r} to allow that"
            if spec.provider == self._spec.provider:
                own = {
                    key: value for key, value in asdict(self._spec).items() if key not in STORED_SPEC_FIELDS
                }
                spec = EmbeddingSpec(**stored_spec, **own)
            embedder = create_embedder(spec)
            if embedder is None:
                return "it has no provider"
            if embedder.fingerprint != model.fingerprint:
                return "the model of this name differs from the one that made the stored vectors"
            return _with_query_cache(embedder, spec)
        except SennitError as error:
            return str(error)


def _with_query_cache(embedder: Embedder, spec: EmbeddingSpec) -> CachingEmbedder:
    return CachingEmbedder(embedder, ttl=spec.query_ttl if spec.provider in REMOTE_PROVIDERS else math.inf)
