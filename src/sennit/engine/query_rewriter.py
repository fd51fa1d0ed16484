"""Rewrite a query before the search: keywords for the vector search, and hints from the code in an editor."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from sennit.engine.search_request import SearchRequest
from sennit.filters import Filter
from sennit.recipes import Recipe
from sennit.settings import Settings
from sennit.settings.sections import LanguageSettings
from sennit.sources.base import NO_REWRITE, QueryRewrite, document_share
from sennit.stores.contract import Backend

if TYPE_CHECKING:
    # Imported at the first use: most searches rewrite nothing.
    from sennit.llm import LanguageModel
    from sennit.llm.transform import ModelTransformer, TransformedQuery


class ConfiguredModel:
    """The language model of the settings, created at its first use. Safe to use from several threads."""

    def __init__(self, settings: LanguageSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._model: LanguageModel | None = None

    def get(self) -> LanguageModel | None:
        """Return the model; None if none is configured."""
        llm = self._settings
        with self._lock:
            if self._model is None and llm.provider != "none":
                from sennit.llm import LanguageSpec, create_language_model

                spec = LanguageSpec(
                    provider=llm.provider,
                    model=llm.model,
                    base_url=llm.base_url,
                    api_key_env=llm.api_key_env,
                    retries=llm.retries,
                )
                self._model = create_language_model(spec)
            return self._model

    def close(self) -> None:
        """Close the connections of the model."""
        if self._model is not None:
            self._model.close()


class QueryRewriter:
    """Rewrites the queries of recipes that ask for it, and of requests with an editor."""

    def __init__(self, settings: Settings, model: ConfiguredModel, backend: Backend) -> None:
        self._settings = settings
        self._model = model
        self._snapshot = backend.records.snapshot
        self._keyword = backend.keyword
        self._lock = threading.Lock()
        self._transformer: ModelTransformer | None = None

    def rewrite(self, request: SearchRequest, recipe: Recipe, audience: Filter) -> QueryRewrite:
        """Return what some sources search for in place of the query.

        A language model may take seconds, so no snapshot is open meanwhile.
        """
        if request.rewrite is not NO_REWRITE:
            return request.rewrite
        transforms = recipe.transform if request.transform is None else request.transform
        hints = self._editor_hints(request, audience)
        if not transforms and not hints:
            return NO_REWRITE
        from sennit.llm.transform import keep_query

        query = request.query
        transformed = self._transform(query, audience) if transforms else keep_query(query)
        return QueryRewrite(
            None if transformed.used == query else transformed.used,
            hints,
            self._settings.docs.editor_weight,
            transformed.to_dict() if transformed.by else {},
        )

    def _editor_hints(self, request: SearchRequest, audience: Filter) -> tuple[str, ...]:
        code, limit = request.editor, self._settings.docs.editor_keywords
        if not code or not code.strip() or not limit:
            return ()
        from sennit.ingest.editor import editor_keywords

        with self._snapshot(audience) as snapshot:
            return editor_keywords(
                code,
                request.language,
                document_share=lambda word: document_share(self._keyword, snapshot, word),
                limit=limit,
            )

    def _transform(self, query: str, audience: Filter) -> TransformedQuery:
        from sennit.llm.offline_transform import append_keywords
        from sennit.llm.transform import ModelTransformer, keep_query, transform_query

        mode = self._settings.llm.transform
        model = self._model.get() if mode == "auto" else None
        if model is not None:
            with self._lock:
                if self._transformer is None:
                    self._transformer = ModelTransformer(model, timeout=self._settings.llm.transform_timeout)
            return transform_query(query, model.name, self._transformer)
        if mode == "none":
            return keep_query(query)
        with self._snapshot(audience) as snapshot:
            return transform_query(
                query,
                "offline",
                lambda text: append_keywords(
                    text, lambda word: document_share(self._keyword, snapshot, word)
                ),
            )
