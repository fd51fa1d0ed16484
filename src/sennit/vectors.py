"""Between the embedding models of this process and the models that a database knows."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sennit.embedding import CachedQueries, Embedder, EmbeddingSpec, build
from sennit.errors import EmbeddingError, SennitError
from sennit.stores.embedded.codec import half
from sennit.stores.embedded.prepared import Prepared

if TYPE_CHECKING:
    from sennit.stores.embedded.models import Model
    from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.embedded.writing import NewVectors

log = logging.getLogger("sennit.vectors")

KEPT_IN_DATABASE: Final = ("provider", "model", "dimensions", "query_prefix", "document_prefix")
"""What a database remembers of a model. Addresses and credentials are the user's and stay in the settings."""

EMBED_BATCH: Final = 1024

Given = Mapping[str, Mapping[bytes, bytes]]
"""Vectors in half precision that somebody else has made: by the model's fingerprint and the hash of the text."""

NOTHING: Final[Given] = {}

REMOTE: Final = ("openai", "ollama")
"""Providers that texts are sent to. Only the user's own settings name one, never a database."""


class Vectors:
    """The embedding models at hand: the configured one, and those a database was built with."""

    def __init__(self, store: EmbeddedStore, spec: EmbeddingSpec, *, explicit: bool) -> None:
        self._store = store
        self._spec = spec
        self.explicit = explicit
        """The user has named a model; without that, a database keeps the one it has."""
        self._lock = threading.RLock()
        self._embedders: dict[str, CachedQueries | str] = {}
        """By fingerprint; a text says why there is none."""
        self._settled = False
        self.off = spec.provider == "none"
        self.changed: Callable[[], None] = lambda: None
        """Called when another model is wanted than before."""

    def close(self) -> None:
        with self._lock:
            for embedder in self._embedders.values():
                if isinstance(embedder, CachedQueries):
                    embedder.close()
            self._embedders.clear()

    def settle(self) -> None:
        """Agree with the database on the model: keep the one it has, start with one, or change to another.

        Without an explicit setting the database's own model stays, so that a process started elsewhere with
        other defaults never starts a rebuild.
        """
        if self._settled or self.off:
            return
        with self._lock:
            if self._settled:
                return
            known = self._store.models.wanted()
            if not known or self.explicit:
                self._register(self._spec)
            elif self._embedder(known[0]) is None and self._spec.provider == known[0].name.split("/")[0]:
                # The same model by name, but with other weights: it is built anew beside the old vectors.
                self._register(self._spec)
            self._settled = True

    def _register(self, spec: EmbeddingSpec) -> None:
        embedder = build(spec)
        if embedder is None:
            return
        before = {model.fingerprint: model.state for model in self._store.models.wanted()}
        kept = {key: value for key, value in asdict(spec).items() if key in KEPT_IN_DATABASE}
        self._embedders[embedder.fingerprint] = _cached(embedder, spec)
        model = self._store.models.register(
            embedder.fingerprint, embedder.name, json.dumps(kept), embedder.dimensions
        )
        if model.state != before.get(model.fingerprint):
            self.changed()
        if before and model.fingerprint not in before and model.state == "building":
            log.warning(
                "the embedding model changes to %s: its vectors are built in the background, and the old model "
                "answers until they are complete ('sennit models' shows how far they are)",
                embedder.name,
            )

    def portable(self) -> list[tuple[str, str]]:
        """Fingerprint and specification of every fast model at hand: another process can make its vectors too."""
        self.ready()
        if self.off:
            return []
        at_hand = ((model, self._embedder(model)) for model in self._store.models.wanted())
        return [
            (model.fingerprint, model.spec)
            for model, embedder in at_hand
            if embedder is not None and embedder.inline
        ]

    def for_records(self, records: Sequence[Prepared], given: Given = NOTHING) -> NewVectors:
        """Vectors of the records' texts that the database does not have, by every fast model at hand.

        Those that are `given` need not be made.
        """
        self.ready()
        out: dict[int, dict[bytes, bytes]] = {}
        if self.off:
            return out
        texts = {ready.embedding: ready for ready in records}
        for model, absent in self._store.models.lacking(texts, given):
            embedder = self._embedder(model)
            if embedder is None or not embedder.inline:
                continue
            ready = given.get(model.fingerprint, {})
            vectors = {digest: ready[digest] for digest in texts if digest in ready}
            missing = [digest for digest in texts if digest in absent]
            for at in range(0, len(missing), EMBED_BATCH):
                part = missing[at : at + EMBED_BATCH]
                rows = embedder.embed_documents([texts[digest].embedding_text for digest in part])
                vectors.update(zip(part, half(rows), strict=True))
            out[model.number] = vectors
        return out

    def for_backlog(self, model: Model, texts: Sequence[str]) -> Sequence[bytes] | None:
        """Vectors for texts that wait for them; None when this process does not have the model."""
        embedder = self._embedder(model)
        return None if embedder is None else half(embedder.embed_documents(texts))

    def for_query(self, model: Model | None, text: str) -> NDArray[np.float32]:
        """The vector of a question by the model whose vectors are searched."""
        if self.off:
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

    def inline(self) -> bool:
        """Whether a question is embedded in this process, without waiting for anyone."""
        return self._spec.provider in ("static", "none") and not any(
            isinstance(e, CachedQueries) and not e.inline for e in self._embedders.values()
        )

    def ready(self) -> None:
        """Settle, if that needs nobody else; what waits for a server is left to the background."""
        if self._settled or self.off:
            return
        if self._spec.provider in REMOTE:
            self.changed()
            return
        try:
            self.settle()
        except EmbeddingError as error:
            log.warning("the embedding model is not there yet: %s", error)

    def _embedder(self, model: Model) -> Embedder | None:
        with self._lock:
            known = self._embedders.get(model.fingerprint)
            if known is None:
                known = self._embedders[model.fingerprint] = self._rebuilt(model)
            return known if isinstance(known, CachedQueries) else None

    def _rebuilt(self, model: Model) -> CachedQueries | str:
        """The embedder of a model that the database knows, with the user's own address and credentials."""
        try:
            kept = json.loads(model.spec)
            spec = EmbeddingSpec(**kept)
            if spec.provider in REMOTE and spec.provider != self._spec.provider:
                return f"it sends texts to a server; set embedding.provider = {spec.provider!r} to allow that"
            if spec.provider == self._spec.provider:
                own = {key: value for key, value in asdict(self._spec).items() if key not in KEPT_IN_DATABASE}
                spec = EmbeddingSpec(**kept, **own)
            embedder = build(spec)
            if embedder is None:
                return "it has no provider"
            if embedder.fingerprint != model.fingerprint:
                return "the model of this name is another one than the vectors were made with"
            return _cached(embedder, spec)
        except SennitError as error:
            return str(error)


def _cached(embedder: Embedder, spec: EmbeddingSpec) -> CachedQueries:
    return CachedQueries(embedder, ttl=spec.query_ttl if spec.provider in REMOTE else math.inf)
