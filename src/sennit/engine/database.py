"""The database: write records, search them, and explain the results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Unpack

from sennit.embedding_service import EmbeddingService
from sennit.engine.access import Access
from sennit.engine.answer_service import Answer, AnswerService, AnswerStream, AskOptions
from sennit.engine.configuration import default_caller, embedding_spec, is_embedding_configured, make_policy
from sennit.engine.file_access import FileAccess
from sennit.engine.groups import AdminGroup, CodeGroup, FilesGroup, MemoryGroup
from sennit.engine.hydration_service import HydrationService, PlanOptions
from sennit.engine.maintenance import IndexMaintainer
from sennit.engine.search_planner import SearchPlanner
from sennit.engine.search_request import SearchOptions, SearchRequest, as_request
from sennit.engine.validation import check_id, check_included, check_instances, check_list
from sennit.engine.writes import WriteService
from sennit.errors import NotFound
from sennit.explain import explain_record
from sennit.facts import Fact
from sennit.filters import Filter, matches
from sennit.hydration import HydrationPlan, Introspection
from sennit.ingest import IndexReport, Progress, Scope
from sennit.ingest.artifacts import ArtifactSplitter, split_artifact
from sennit.pipeline import Pipeline
from sennit.privacy import Caller, Rule
from sennit.recipes import Recipe, load_recipes
from sennit.records import Json, Record, full_id
from sennit.repositories.folders import IndexedFolders
from sennit.repositories.tokens import TokenStore
from sennit.results import SearchResult, Why
from sennit.settings import Settings
from sennit.sources.base import MakeSource, SearchContext, Source, make_source
from sennit.sources.graph import GraphSource
from sennit.sources.keyword import KeywordSource
from sennit.sources.links import LinkSource
from sennit.sources.vector import VectorSource
from sennit.stores.contract import Backend, Snapshot, WriteResult
from sennit.stores.open import MEMORY, open_backend
from sennit.stores.target import is_postgres
from sennit.turns import Turn


class Database:
    """An open database. Safe to use from several threads; several processes may open the same folder."""

    def __init__(
        self,
        target: str | os.PathLike[str] | Backend,
        settings: Settings,
        sources: Mapping[str, Source | MakeSource] | None = None,
        rule: Rule | None = None,
        *,
        background: bool = True,
    ) -> None:
        """`background=False` starts no thread: indexes stay as they are, and pending vectors pending."""
        self.settings = settings
        self.path = _folder_of(target)
        """The folder of the database; None when it is in memory or on a server."""
        self.recipes: Mapping[str, Recipe] = load_recipes(settings)
        self.policy = make_policy(settings, rule)
        self.caller = default_caller(settings)
        """The caller of a request that names none."""
        # An unknown clearance is an error now, not at the first search.
        self.policy.audience(self.caller)
        self._access = Access(self.policy, self.caller)
        self._planner = SearchPlanner(settings, self.recipes, self.caller)
        backend = (
            target
            if isinstance(target, Backend)
            else open_backend(target, exact_vectors=settings.privacy.exact_vectors)
        )
        self.backend = backend
        self.store = backend.records
        folders = IndexedFolders(self.store)
        explicit = is_embedding_configured(settings)
        self.embeddings = EmbeddingService(self.store, embedding_spec(settings), explicit=explicit)
        self.maintainer = IndexMaintainer(
            backend,
            settings.store.flush_at,
            self.embeddings.embed_texts,
            self.embeddings.select_model,
            background=background,
        )
        self.embeddings.on_model_change = self.maintainer.wake
        self.writes = WriteService(self.store, self.embeddings, self.maintainer)
        file_access = FileAccess(settings.files, folders, self.path)
        built_in: dict[str, Source] = {
            "keyword": KeywordSource(backend.keyword),
            "vector": VectorSource(backend.vector, inline=self.embeddings.is_inline()),
            "grep": file_access.source,
            "graph": GraphSource(backend.graph),
            "links": LinkSource(backend.graph, backend.keyword),
        }
        custom = {name: make_source(name, one, backend) for name, one in (sources or {}).items()}
        self._pipeline = Pipeline(built_in, custom)
        hydration = HydrationService(self.store, settings, self._pipeline, self._make_context)
        self._answers = AnswerService(settings, self.recipes, backend, self.audience, self.search)
        self.memory = MemoryGroup(self._access, self.writes, self._answers, self.search, settings.llm.timeout)
        """What an assistant was told and what it knows."""
        self.files = FilesGroup(self._access, self, self.maintainer, file_access, folders, self.recipes)
        """Index files, and read and grep those in the allowed folders."""
        self.code = CodeGroup(self._access, self.embeddings, hydration)
        """The code that belongs in a prompt."""
        self.admin = AdminGroup(
            self._access,
            backend,
            TokenStore(self.store),
            self.embeddings,
            self.maintainer,
            settings.hydration.semantic_threshold,
        )
        """Tokens, embedding models and maintenance."""
        if self.store.has_pending_vectors() or (self.embeddings.explicit and self.store.models.current()):
            self.maintainer.wake()

    # Writing.

    def add(self, records: Iterable[Record], *, caller: Caller | None = None) -> WriteResult:
        """Add or replace records, all or none. When it returns, they are durable and the next search sees them.

        A caller writes only what it may read, and replaces only what it may see.
        """
        batch = check_instances(Record, records, "add()")
        return self.writes.add(batch, self._access.write_audience(caller)) if batch else WriteResult(0, 0, 0)

    def add_artifacts(
        self, artifacts: Iterable[Record], *, split: ArtifactSplitter = split_artifact
    ) -> WriteResult:
        """Add or replace whole documents with their chunks, all or none.

        Chunks go to `artifact_chunks`, with `artifact_id` and `chunk_index`; those of an earlier version are removed.
        """
        return self.writes.add_artifacts(check_instances(Record, artifacts, "add_artifacts()"), split)

    def add_facts(
        self, facts: Iterable[Fact], *, same_relation: bool = False, caller: Caller | None = None
    ) -> WriteResult:
        """The same as `db.memory.add_facts`."""
        return self.memory.add_facts(facts, same_relation=same_relation, caller=caller)

    def add_turns(self, turns: Iterable[Turn], *, caller: Caller | None = None) -> WriteResult:
        """The same as `db.memory.add_turns`."""
        return self.memory.add_turns(turns, caller=caller)

    def remove(self, ids: Iterable[str], *, caller: Caller | None = None) -> int:
        """Remove the records that the caller may see, with the chunks of documents; return how many there were."""
        names = [check_id(name) for name in check_list(ids, "remove() takes a list of ids")]
        tenant = self._access.resolve(caller).tenant
        full_ids = [full_id(tenant, name) for name in names]
        return self.writes.remove(full_ids, self._access.write_audience(caller)).removed

    def remember(
        self,
        text: str,
        *,
        collection: str = "memory",
        title: str = "",
        kind: str = "",
        metadata: Mapping[str, Json] | None = None,
        sensitivity: str | None = None,
        scope: str | None = None,
        source: str = "remember",
        caller: Caller | None = None,
    ) -> Record:
        """The same as `db.memory.remember`."""
        return self.memory.remember(
            text,
            collection=collection,
            title=title,
            kind=kind,
            metadata=metadata,
            sensitivity=sensitivity,
            scope=scope,
            source=source,
            caller=caller,
        )

    def index(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        recipe: str | None = None,
        collection: str | None = None,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> IndexReport:
        """The same as `db.files.index`."""
        return self.files.index(paths, recipe=recipe, collection=collection, scope=scope, progress=progress)

    # Reading.

    def get(self, record_id: str, *, caller: Caller | None = None) -> Record | None:
        """Return the record with this id, or None."""
        return self._get([check_id(record_id)], caller).get(record_id)

    def __len__(self) -> int:
        """Return the number of records that the default caller may see."""
        with self.store.snapshot(self.audience()) as snapshot:
            return snapshot.count()

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records that the default caller may see, by id, in one consistent snapshot."""
        audience = self.audience()
        return (record for record in self.store.iter_records() if matches(audience, record))

    def search(self, query: str | SearchRequest, **options: Unpack[SearchOptions]) -> SearchResult:
        """Return the best records for a query, in one ranking.

        The options are the fields of a SearchRequest, which can also be given as a whole.
        """
        request = as_request(query, options)
        audience = self.audience(request.caller)
        plan = self._planner.plan(request)
        self.embeddings.ensure_model()
        with self.store.snapshot(audience) as snapshot:
            check_included(plan.recipe, request.include, snapshot)
            return self._pipeline.run(plan, self._make_context(request, snapshot, audience))

    def why(self, query: str | SearchRequest, record_id: str, **options: Unpack[SearchOptions]) -> Why:
        """Explain why a record is in the results of a search, or which stage and number excluded it."""
        request = replace(as_request(query, options), explain=True, neighbours=0)
        tenant = self._access.resolve(request.caller).tenant
        audience = self.audience(request.caller)
        plan = self._planner.plan(request)
        self.embeddings.ensure_model()
        with self.store.snapshot(audience) as snapshot:
            check_included(plan.recipe, request.include, snapshot)
            context = self._make_context(request, snapshot, audience)
            result = self._pipeline.run(plan, context)
            key = snapshot.find_key(full_id(tenant, check_id(record_id)))
            key = context.find_ephemeral(record_id) if key is None else key
            if key is None:
                raise NotFound(f"There is no record {record_id!r}")
            return explain_record(self._pipeline, plan, context, result, record_id, key)

    def plan(
        self, query: str, *, caller: Caller | None = None, **options: Unpack[PlanOptions]
    ) -> HydrationPlan:
        """The same as `db.code.plan`."""
        return self.code.plan(query, caller=caller, **options)

    def introspect(
        self, episode: str, turn: int | None = None, *, caller: Caller | None = None, replay: bool = False
    ) -> Introspection:
        """The same as `db.code.introspect`."""
        return self.code.introspect(episode, turn, caller=caller, replay=replay)

    def ask(self, query: str, **options: Unpack[AskOptions]) -> Answer:
        """Answer a question with citations; without a language model, with sentences of the pages found."""
        return self._answers.ask(query, **options)

    def ask_stream(self, query: str, **options: Unpack[AskOptions]) -> AnswerStream:
        """Answer in parts, as the language model writes them."""
        return self._answers.ask_stream(query, **options)

    def audience(self, caller: Caller | None = None) -> Filter:
        """Return the filter of what a caller may see."""
        return self._access.audience(caller)

    def close(self) -> None:
        """Stop background work and close the files. Confirmed writes are already on disk."""
        self.maintainer.close()
        self._answers.close()
        self.embeddings.close()
        self.store.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, ids: Sequence[str], caller: Caller | None) -> dict[str, Record]:
        tenant = self._access.resolve(caller).tenant
        audience = self.audience(caller)
        found = self.store.get(full_id(tenant, name) for name in ids)
        return {record.id: record for record in found.values() if matches(audience, record)}

    def _make_context(self, request: SearchRequest, snapshot: Snapshot, audience: Filter) -> SearchContext:
        return SearchContext(
            request.query,
            snapshot,
            self.embeddings.embed_query,
            self.backend.keyword,
            audience=audience,
            keywords=request.keywords,
            rewrite=request.rewrite,
        )


def _folder_of(target: str | os.PathLike[str] | Backend) -> Path | None:
    if isinstance(target, Backend) or os.fspath(target) == MEMORY or is_postgres(os.fspath(target)):
        return None
    return Path(target)
