"""The database: write records, search them, and explain the results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from sennit.embedding_service import EmbeddingService
from sennit.engine.access import Access
from sennit.engine.configuration import (
    default_caller,
    embedding_spec,
    is_embedding_configured,
    make_policy,
    rerank_spec,
)
from sennit.engine.experiment_watch import ExperimentWatch
from sennit.engine.file_access import FileAccess
from sennit.engine.maintenance import IndexMaintainer
from sennit.engine.query_rewriter import ConfiguredModel, QueryRewriter
from sennit.engine.search_planner import SearchPlanner
from sennit.engine.search_recorder import SearchRecorder
from sennit.engine.search_request import FilterLike, SearchOptions, SearchRequest, as_request, check_options
from sennit.engine.validation import (
    PAGE_RECORDS,
    check_collections,
    check_fields,
    check_id,
    check_included,
    check_instances,
    check_list,
    check_query_vector,
    check_records,
    check_removal,
)
from sennit.engine.writes import WriteService
from sennit.errors import InvalidInput
from sennit.facts import Fact
from sennit.filters import EVERYTHING, Filter, matches, parse_filter
from sennit.pipeline import Pipeline, Replay, SearchPlan
from sennit.privacy import Caller, Rule
from sennit.recipes import Recipe, RecipeBook, load_recipes
from sennit.records import Json, Record, full_id
from sennit.repositories.folders import IndexedFolders
from sennit.rerankers import RerankService
from sennit.results import SearchResult, Why
from sennit.settings import Settings
from sennit.settings.attached import read_mappings
from sennit.sources.base import MakeSource, SearchContext, Source, make_source
from sennit.sources.graph import GraphSource
from sennit.sources.grep import UnindexedAccess
from sennit.sources.keyword import KeywordSource
from sennit.sources.links import LinkSource
from sennit.sources.recent import RecentSource
from sennit.sources.vector import VectorSource
from sennit.stores.contract import Backend, Snapshot, WriteResult
from sennit.stores.open import MEMORY, open_backend
from sennit.stores.target import is_postgres
from sennit.turns import Turn

if TYPE_CHECKING:
    # Not imported at runtime: a new process that searches once needs none of it.
    # Imported at the first use, so that a search in a new process imports only what a search needs.
    from sennit.engine.admission import Admission
    from sennit.engine.answer_service import Answer, AnswerService, AnswerStream, AskOptions
    from sennit.engine.experiment_group import ExperimentGroup
    from sennit.engine.feedback_group import FeedbackGroup
    from sennit.engine.groups import AdminGroup, CodeGroup, FilesGroup, MemoryGroup
    from sennit.engine.hydration_service import PlanOptions
    from sennit.engine.inventory import Inventory, NamedCount, RecordPage, Status
    from sennit.engine.ranker_group import RankerGroup
    from sennit.engine.references import ReferenceResolver
    from sennit.hydration import HydrationPlan, Introspection
    from sennit.ingest import IndexReport, Progress, Scope
    from sennit.ingest.artifacts import ArtifactSplitter
    from sennit.ranking.ranker import Ranker


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
        self._closed = False
        self.path = _folder_of(target)
        """The folder of the database; None when it is in memory or on a server."""
        self.recipes = RecipeBook(load_recipes(settings))
        self.policy = make_policy(settings, rule)
        self.caller = default_caller(settings)
        """The caller of a request that names none."""
        # An unknown clearance is an error now, not at the first search.
        self.policy.audience(self.caller)
        self._planner = SearchPlanner(settings, self.recipes, self.caller)
        backend = target if isinstance(target, Backend) else open_backend(target, settings)
        self.backend = backend
        self.store = backend.records
        base = None if self.path is None else str(Path(os.path.realpath(self.path)).parent)
        self.indexed_folders = IndexedFolders(self.store, base)
        """The folders whose files are records."""
        unindexed = UnindexedAccess(settings.files.sensitivity, settings.files.scope)
        self._access = Access(self.policy, self.caller, self.indexed_folders.places, unindexed)
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
        self._file_access = FileAccess(
            settings.files, unindexed, self.indexed_folders, self.store.files, self.path
        )
        built_in: dict[str, Source] = {
            "keyword": KeywordSource(backend.keyword),
            "vector": VectorSource(backend.vector, inline=self.embeddings.is_inline()),
            "grep": self._file_access.source,
            "graph": GraphSource(
                backend.graph, backend.keyword, backend.vector, by_meaning=self.embeddings.is_inline()
            ),
            "recent": RecentSource(),
            "links": LinkSource(backend.graph, backend.keyword),
        }
        attached = read_mappings(settings.attached, settings.origins)
        if attached:
            from sennit.sources.attached import with_attached

            built_in = with_attached(built_in, backend.attached, attached, settings.privacy.levels[-1])
        self._attached = tuple(attached.values())
        custom = {name: make_source(name, one, backend) for name, one in (sources or {}).items()}
        self._reranker = RerankService(rerank_spec(settings))
        self._pipeline = Pipeline(built_in, custom, backend, self._reranker)
        self._model = ConfiguredModel(settings.llm)
        self._rewriter = QueryRewriter(settings, self._model, backend)
        self._recorder = SearchRecorder(self.store, settings.feedback, background=background)
        self._experiment_watch = ExperimentWatch(self.store)
        is_late = self.store.has_pending_vectors() or bool(backend.servers)
        if is_late or (self.embeddings.explicit and self.store.models.current()):
            self.maintainer.wake()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "An open database cannot be copied or pickled; open it again where it is used, with sennit.open()"
        )

    # The groups.

    @cached_property
    def memory(self) -> MemoryGroup:
        """What an assistant was told and what it knows."""
        from sennit.engine.groups import MemoryGroup

        return MemoryGroup(
            self._access, self.writes, self._model, self.search, self._inventory, self.settings.llm.timeout
        )

    @cached_property
    def files(self) -> FilesGroup:
        """Index files, and read and grep those in the allowed folders."""
        from sennit.engine.groups import FilesGroup

        return FilesGroup(
            self._access,
            self,
            self.maintainer,
            self._file_access,
            lambda: self._inventory,
            self.recipes,
            self.settings.ingest,
        )

    @cached_property
    def code(self) -> CodeGroup:
        """The code that belongs in a prompt."""
        from sennit.engine.groups import CodeGroup
        from sennit.engine.hydration_service import HydrationService

        hydration = HydrationService(
            self.backend,
            self.settings,
            self._pipeline,
            self._planner,
            self._make_context,
            self.indexed_folders.places,
        )
        return CodeGroup(self._access, self.embeddings, hydration)

    @cached_property
    def feedback(self) -> FeedbackGroup:
        """What people did with results."""
        from sennit.engine.feedback_group import FeedbackGroup

        return FeedbackGroup(self._access, self.store, self._recorder)

    @cached_property
    def rankers(self) -> RankerGroup:
        """Learned rankers, which the stage `learned` of a recipe names."""
        from sennit.engine.ranker_group import RankerGroup

        return RankerGroup(self._access, self.store)

    @cached_property
    def experiments(self) -> ExperimentGroup:
        """Two recipes compared on live searches."""
        from sennit.engine.experiment_group import ExperimentGroup

        return ExperimentGroup(
            self.store, self.recipes, self.settings.search, self._recorder, self._experiment_watch
        )

    @cached_property
    def admin(self) -> AdminGroup:
        """Tokens, embedding models and maintenance."""
        from sennit.engine.groups import AdminGroup
        from sennit.repositories.tokens import TokenStore

        return AdminGroup(
            self._access,
            self.backend,
            TokenStore(self.store),
            self.embeddings,
            self.maintainer,
            self.settings.hydration,
            self.recipes,
            self._replays,
            self._reranker,
        )

    @cached_property
    def _inventory(self) -> Inventory:
        from sennit.engine.inventory import Inventory

        return Inventory(
            self.backend,
            self._access,
            self.embeddings,
            self.maintainer,
            self._file_access,
            self.indexed_folders,
            self.path,
            self._check_filter,
        )

    @cached_property
    def _answers(self) -> AnswerService:
        from sennit.engine.answer_service import AnswerService

        return AnswerService(
            self.settings,
            self.recipes,
            self.backend,
            self.audience,
            self.search,
            self._rewriter,
            self._model,
            self.indexed_folders.locator,
        )

    # Writing.

    def add(
        self, records: Iterable[Record | Mapping[str, Any]], *, caller: Caller | None = None
    ) -> WriteResult:
        """Add or replace records, all or none. When it returns, they are durable and the next search sees them.

        A record may be a dict with the same fields. If it has no id, it gets one that follows from its content, so that
        the same content is stored once; `ids` of the result has them all. A caller writes only what it may read, and
        replaces only what it may see.
        """
        batch = check_records(records)
        return self.writes.add(batch, self._access.write_audience(caller)) if batch else WriteResult(0, 0, 0)

    def add_artifacts(
        self, artifacts: Iterable[Record], *, split: ArtifactSplitter | None = None
    ) -> WriteResult:
        """Add or replace whole documents with their chunks, all or none.

        Chunks go to `artifact_chunks`, with `artifact_id` and `chunk_index`; those of an earlier version are removed.
        `split` returns the texts of the chunks of a document; None splits it on natural boundaries.
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

    def find_removable(self, references: Iterable[str], *, caller: Caller | None = None) -> list[Record]:
        """Return the records that references mean to remove: one for an id, all of a file for its path.

        A location means all records with exactly its lines. Unlike `find`, this
        method takes the beginning of an id only if sennit made the id.
        """
        names = check_list(references, "find_removable() takes a list of references")
        with self._references(caller) as resolver:
            found = [record for name in names for record in resolver.find_removable(name)]
        return list({record.full_id: record for record in found}.values())

    def remove(
        self, ids: Iterable[str] | None = None, *, where: FilterLike = None, caller: Caller | None = None
    ) -> int:
        """Remove records that the caller may see, with the chunks of documents; return how many there were.

        They are named by their ids, or by a filter: `db.remove(where='path like "old/*"')`. While others write, it
        removes what matched when the call began and still does. `where="all()"` removes everything.
        """
        if (ids is None) == (where is None):
            raise InvalidInput("remove() takes a list of ids, or a filter as where=")
        if ids is None:
            return self._remove_where(check_removal(where), caller)
        names = [check_id(name) for name in check_list(ids, "remove() takes a list of ids")]
        tenant = self._access.resolve(caller).tenant
        full_ids = [full_id(tenant, name) for name in names]
        return self.writes.remove(full_ids, self._access.write_audience(caller)).removed

    def _remove_where(self, where: Filter, caller: Caller | None) -> int:
        audience = self.audience(caller)
        with self.store.snapshot(audience) as snapshot:
            check_fields(where, snapshot)
        return self.writes.remove_matching(where, audience).removed

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
        timestamp: datetime | None = None,
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
            timestamp=timestamp,
            caller=caller,
        )

    def index(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        recipe: str | None = None,
        collection: str | None = None,
        tenant: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        row_template: str | None = None,
        scope: Scope | None = None,
        progress: Progress | None = None,
        only: Iterable[str] | None = None,
    ) -> IndexReport:
        """The same as `db.files.index`."""
        return self.files.index(
            paths,
            recipe=recipe,
            collection=collection,
            tenant=tenant,
            metadata=metadata,
            row_template=row_template,
            scope=scope,
            progress=progress,
            only=only,
        )

    # Reading.

    def get(self, record_id: str, *, caller: Caller | None = None) -> Record | None:
        """Return the record with this id, or None. The path in an id may be written as it is shown."""
        found = self._get([check_id(record_id)], caller)
        if not found:
            found = self._get(self.indexed_folders.places().find_ids(record_id), caller)
        return next(iter(found.values()), None)

    def find(self, reference: str, *, caller: Caller | None = None) -> Record:
        """Return the record that a reference means: an id, the beginning of one, or `path`, `path:10` or `path:10-20`.

        Raises NotFound with the nearest records, or AmbiguousReference with the candidates.
        """
        with self._references(caller) as references:
            return references.find(reference)

    def records(
        self,
        filters: FilterLike = None,
        *,
        collections: Sequence[str] = (),
        limit: int = PAGE_RECORDS,
        after: str | None = None,
        project: str | None = None,
        caller: Caller | None = None,
    ) -> RecordPage:
        """Return the records that match a filter, in the order of their ids; `after` is the `next` of the last page."""
        return self._inventory.records(filters, collections, limit, after, caller, project)

    def collections(
        self, *, project: str | None = None, caller: Caller | None = None
    ) -> tuple[NamedCount, ...]:
        """Return each collection with its number of records, the largest first."""
        return self._inventory.collections(caller, project)

    def field_names(self, *, prefix: str = "", caller: Caller | None = None) -> tuple[str, ...]:
        """Return the fields that a filter can compare, in order, from a sample of what the caller may see."""
        return self._inventory.field_names(prefix, caller)

    def field_values(
        self, name: str, *, prefix: str = "", limit: int = PAGE_RECORDS, caller: Caller | None = None
    ) -> tuple[NamedCount, ...]:
        """Return the texts that a field has, with their number of records, the most frequent first."""
        return self._inventory.field_values(name, prefix, limit, caller)

    def status(self, *, changes: bool = False, caller: Caller | None = None) -> Status:
        """Return what the database holds and how its parts are; `changes` compares indexed folders with the disk."""
        from sennit.engine.inventory import RankerStatus

        rankers = [
            RankerStatus(one.name, one.training.recipe, one.training.data, one.training.scope.about)
            for one in self.rankers.all(caller=caller)
        ]
        rankers += [
            RankerStatus(one.name, "", "", one.scope.about, one.reason)
            for one in self.rankers.unreadable(caller=caller)
        ]
        return replace(self._inventory.status(caller, changes=changes), rankers=tuple(rankers))

    def __len__(self) -> int:
        """Return the number of records that the default caller may see."""
        with self.store.snapshot(self.audience()) as snapshot:
            return snapshot.count()

    def count(self, where: FilterLike = None, *, caller: Caller | None = None) -> int:
        """Return how many records match a filter, of those that the caller may see."""
        condition = parse_filter(where)
        with self.store.snapshot(self.audience(caller)) as snapshot:
            check_fields(condition, snapshot)
            return snapshot.count(condition)

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records that the default caller may see, by id, in one consistent snapshot."""
        audience = self.audience()
        return (record for record in self.store.iter_records() if matches(audience, record))

    def search(self, query: str | SearchRequest, **options: Unpack[SearchOptions]) -> SearchResult:
        """Return the best records for a query, in one ranking.

        The options are the fields of a SearchRequest, which can also be given as a whole. `collection` takes one name
        or several, like `collections`.
        """
        request = as_request(query, options)
        experiment = self.experiments.find_active(request) if self._experiment_watch.has_any() else None
        if experiment is not None:
            caller = self._access.resolve(request.caller)
            result = self.experiments.search(experiment, request, caller, self._answer_all)
            if result is not None:
                return result
        return self._search_all([request])[0]

    def search_many(
        self, queries: Iterable[str | SearchRequest], **options: Unpack[SearchOptions]
    ) -> list[SearchResult]:
        """Return the result of each query, in order. All see the same snapshot, also while others write.

        The options apply to every query that is a text. All searches have the same caller.
        """
        check_options(options, SearchOptions, "search_many")
        requests = [
            query if isinstance(query, SearchRequest) else SearchRequest(query, **options)
            for query in check_list(queries, "search_many() takes a list of queries")
        ]
        if len({(request.caller, request.project) for request in requests}) > 1:
            raise InvalidInput(
                "The searches of search_many() have different callers or projects; call it once for each"
            )
        return self._search_all(requests) if requests else []

    def _search_all(self, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        results = self._answer_all(requests)
        if not self._recorder.is_on:
            return results
        caller = self._access.resolve(requests[0].caller)
        return [
            self._recorder.note(request, caller, result)
            for request, result in zip(requests, results, strict=True)
        ]

    def _answer_all(self, requests: Sequence[SearchRequest]) -> list[SearchResult]:
        """Run searches of one caller in one snapshot, without remembering them."""
        audience = self.audience(requests[0].caller, requests[0].project)
        planned = self._plan_all(requests, audience)
        if self._recorder.keeps_features:
            planned = [(request, replace(plan, explain=True)) for request, plan in planned]

        def answer(snapshot: Snapshot) -> list[SearchResult]:
            for request, plan in planned:
                self._check_names(request, plan, snapshot)
            return [self._run(request, plan, snapshot, audience) for request, plan in planned]

        return self.store.with_snapshot(audience, answer)

    def _plan_all(
        self, requests: Sequence[SearchRequest], audience: Filter
    ) -> list[tuple[SearchRequest, SearchPlan]]:
        """Return each request, rewritten, with its plan."""
        plans = [self._planner.plan(request) for request in requests]
        planned = [
            (self._rewrite(request, plan.recipe, audience), plan)
            for request, plan in zip(requests, plans, strict=True)
        ]
        self.embeddings.ensure_model()
        return planned

    @contextlib.contextmanager
    def _replays(self, requests: Sequence[SearchRequest]) -> Iterator[Iterator[Replay]]:
        """Yield the searches of one caller, each run when it is read, in one snapshot."""
        audience = self.audience(requests[0].caller, requests[0].project)
        planned = self._plan_all(requests, audience)
        with self.store.snapshot(audience) as snapshot:
            for request, plan in planned:
                self._check_names(request, plan, snapshot)
            yield (
                Replay(self._pipeline, plan, self._make_context(request, snapshot, audience))
                for request, plan in planned
            )

    def _run(
        self, request: SearchRequest, plan: SearchPlan, snapshot: Snapshot, audience: Filter
    ) -> SearchResult:
        """Run a search; an empty result explains itself."""

        def run(plan: SearchPlan, request: SearchRequest = request) -> SearchResult:
            return self._pipeline.run(plan, self._make_context(request, snapshot, audience))

        result = run(plan)
        if request.project is not None:
            result = replace(result, project=request.project)
        if result.hits or not result.answered:
            return result
        from sennit.engine.empty_answers import explain_empty

        hints = explain_empty(
            request,
            plan,
            snapshot,
            self.recipes,
            run,
            lambda relaxed: run(self._planner.plan(relaxed), relaxed),
        )
        return replace(result, hints=hints)

    def why(self, query: str | SearchRequest, reference: str, **options: Unpack[SearchOptions]) -> Why:
        """Explain why a record is in the results of a search, or which stage and number excluded it.

        `reference` is its id, or any other reference that `find` takes.
        """
        from sennit.explain import explain_record

        request = replace(as_request(query, options), explain=True, neighbours=0)
        audience = self.audience(request.caller, request.project)
        plan = self._planner.plan(request)
        request = self._rewrite(request, plan.recipe, audience)
        self.embeddings.ensure_model()
        with self.store.snapshot(audience) as snapshot:
            self._check_names(request, plan, snapshot)
            context = self._make_context(request, snapshot, audience)
            result = self._pipeline.run(plan, context)
            references = self._resolver(snapshot, request.caller)
            record_id, key = references.find_in_result(reference, result, context.find_ephemeral)
            return explain_record(self._pipeline, plan, context, result, record_id, key)

    def what_admits(
        self, query: str | SearchRequest, reference: str, **options: Unpack[SearchOptions]
    ) -> Admission:
        """Explain why a record is in a result or not, and find the smallest changes that would admit it.

        Each change was tried: the changed search returns the record.
        """
        from sennit.engine.admission import Admission, AdmissionFinder

        request = as_request(query, options)
        explained = self.why(request, reference)
        if explained.kept:
            return Admission(explained)
        plan = self._planner.plan(request)
        changed = replace(request, limit=plan.limit, min_relevance=plan.min_relevance)
        finder = AdmissionFinder(changed, replace(plan.recipe, min_relevance=0.0), explained, self.search)
        return Admission(explained, tuple(finder.find()), finder.tried)

    def plan(
        self, query: str, *, caller: Caller | None = None, **options: Unpack[PlanOptions]
    ) -> HydrationPlan:
        """The same as `db.code.plan`."""
        return self.code.plan(query, caller=caller, **options)

    def introspect(
        self,
        episode: str,
        turn: int | None = None,
        *,
        project: str | None = None,
        caller: Caller | None = None,
        replay: bool = False,
    ) -> Introspection:
        """The same as `db.code.introspect`."""
        return self.code.introspect(episode, turn, project=project, caller=caller, replay=replay)

    def ask(self, query: str, **options: Unpack[AskOptions]) -> Answer:
        """Answer a question with citations; without a language model, with sentences of the pages found."""
        return self._answers.ask(query, **options)

    def ask_stream(self, query: str, **options: Unpack[AskOptions]) -> AnswerStream:
        """Answer in parts, as the language model writes them."""
        return self._answers.ask_stream(query, **options)

    def audience(self, caller: Caller | None = None, project: str | None = None) -> Filter:
        """Return the filter of what a caller may see, within a project if one is named."""
        return self._access.audience(caller, project)

    def wait(self, timeout: float | None = None, progress: Callable[[int, int], None] | None = None) -> bool:
        """Wait until every record has its vector; return whether that was so within `timeout` seconds.

        Only a model on a server, or one that is being changed, leaves vectors to the background. `progress` gets how
        many records have their vector and how many there are. If the model cannot be used, the error is raised, and
        the background goes on trying.
        """
        self.embeddings.select_model()
        return self.maintainer.wait(timeout, progress)

    def __repr__(self) -> str:
        return f"<sennit.Database {str(self.path or self.store.location)!r}{' (closed)' if self._closed else ''}>"

    def close(self) -> None:
        """Stop background work and close the files. Confirmed writes are already on disk."""
        self._closed = True
        self._recorder.close()
        self.maintainer.close()
        self._model.close()
        self._reranker.close()
        self.embeddings.close()
        for server in self.backend.servers.values():
            server.close()
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

    def _rewrite(self, request: SearchRequest, recipe: Recipe, audience: Filter) -> SearchRequest:
        rewrite = self._rewriter.rewrite(request, recipe, audience)
        return request if rewrite is request.rewrite else replace(request, rewrite=rewrite)

    def _check_names(self, request: SearchRequest, plan: SearchPlan, snapshot: Snapshot) -> None:
        """Refuse names of collections and fields that the caller's snapshot does not have."""
        if not request.include and plan.where == EVERYTHING:
            return
        check_included(plan.recipe, request.include, snapshot)
        self._check_filter(request.collections, plan.where, snapshot)

    def _check_filter(self, collections: Sequence[str], where: Filter, snapshot: Snapshot) -> None:
        known = [one.collection for one in self._attached]
        check_collections(collections, self.recipes.values(), snapshot, known)
        check_fields(where, snapshot, [name for one in self._attached for name in one.metadata])

    @contextlib.contextmanager
    def _references(self, caller: Caller | None) -> Iterator[ReferenceResolver]:
        with self.store.snapshot(self.audience(caller)) as snapshot:
            yield self._resolver(snapshot, caller)

    def _resolver(self, snapshot: Snapshot, caller: Caller | None) -> ReferenceResolver:
        from sennit.engine.references import ReferenceResolver

        return ReferenceResolver(snapshot, self._access.resolve(caller).tenant, self.indexed_folders.places)

    def _make_context(self, request: SearchRequest, snapshot: Snapshot, audience: Filter) -> SearchContext:
        locator = self.indexed_folders.locator()
        context = SearchContext(
            request.query,
            snapshot,
            self.embeddings.embed_query,
            self.backend.keyword,
            audience=audience,
            keywords=request.keywords,
            now=request.now,
            rewrite=request.rewrite,
            vector=check_query_vector(request.vector, snapshot),
            locate=locator,
            find_revision=locator.revision,
            find_ranker=partial(self._find_ranker, request.caller),
        )
        failure = request.rewrite.transform.get("error")
        if isinstance(failure, str):
            context.warn("transform", failure)
        return context

    def _find_ranker(self, caller: Caller | None, name: str) -> Ranker:
        return self.rankers.find(name, caller=caller)


def _folder_of(target: str | os.PathLike[str] | Backend) -> Path | None:
    if not isinstance(target, (str, os.PathLike, Backend)) or not target:
        raise InvalidInput(
            f'The database must be the path of a folder, a postgresql:// address or ":memory:", not {target!r:.80}'
        )
    if isinstance(target, Backend) or os.fspath(target) == MEMORY or is_postgres(os.fspath(target)):
        return None
    return Path(target)
