"""The database: write records, search them, and explain the results."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Unpack

from sennit.embedding_service import EmbeddingService
from sennit.engine.answer_service import Answer, AnswerService, AnswerStream, AskOptions
from sennit.engine.configuration import default_caller, embedding_spec, is_embedding_configured, make_policy
from sennit.engine.file_access import FileAccess
from sennit.engine.hydration_service import HydrationService, PlanOptions
from sennit.engine.memories import ExtractedFacts, extract_facts, make_memory
from sennit.engine.search_planner import FilterLike, SearchPlanner
from sennit.engine.validation import check_id, check_included, check_instances, check_list
from sennit.engine.writes import WriteService
from sennit.errors import NotFound
from sennit.explain import explain_record
from sennit.facts import Fact
from sennit.filters import Filter, matches
from sennit.folders import FileText, Folders
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult
from sennit.hydration import HydrationPlan, Introspection
from sennit.ingest import IndexReport, Progress, Scope
from sennit.ingest import index as index_files
from sennit.ingest.artifacts import ArtifactSplitter, split_artifact
from sennit.pipeline import Pipeline
from sennit.privacy import Caller, Rule
from sennit.recipes import Recipe, find_recipe, load_recipes
from sennit.records import Json, Record, full_id
from sennit.results import SearchResult, Why
from sennit.settings import Settings
from sennit.sources.base import NO_REWRITE, QueryRewrite, SearchContext, Source
from sennit.sources.graph import GraphSource
from sennit.sources.keyword import KeywordSource
from sennit.sources.links import LinkSource
from sennit.sources.vector import VectorSource
from sennit.stores.embedded.files import IndexedFolders
from sennit.stores.embedded.maintenance import IndexMaintainer
from sennit.stores.embedded.snapshot import Snapshot
from sennit.stores.embedded.tokens import TokenStore
from sennit.stores.embedded.transaction import WriteResult
from sennit.stores.open import MEMORY, open_store
from sennit.stores.sql.target import is_postgres
from sennit.turns import Turn


class Database:
    """An open database. Safe to use from several threads; several processes may open the same folder."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Settings,
        sources: Mapping[str, Source] | None = None,
        rule: Rule | None = None,
    ) -> None:
        self.settings = settings
        is_folder = os.fspath(path) != MEMORY and not is_postgres(os.fspath(path))
        self.path = Path(path) if is_folder else None
        """The folder of the database; None when it is in memory or on a server."""
        self.recipes: Mapping[str, Recipe] = load_recipes(settings)
        self.policy = make_policy(settings, rule)
        self.caller = default_caller(settings)
        """The caller of a request that names none."""
        # An unknown clearance is an error now, not at the first search.
        self.policy.audience(self.caller)
        self._planner = SearchPlanner(settings, self.recipes)
        self.store = open_store(path, exact_vectors=settings.privacy.exact_vectors)
        self.tokens = TokenStore(self.store.pool)
        self._folders = IndexedFolders(self.store.pool)
        explicit = is_embedding_configured(settings)
        self.embeddings = EmbeddingService(self.store, embedding_spec(settings), explicit=explicit)
        self.maintainer = IndexMaintainer(
            self.store, settings.store.flush_at, self.embeddings.embed_texts, self.embeddings.select_model
        )
        self.embeddings.on_model_change = self.maintainer.wake
        self.writes = WriteService(self.store, self.embeddings, self.maintainer)
        self._files = FileAccess(settings.files, self._folders, self.path)
        built_in: dict[str, Source] = {
            "keyword": KeywordSource(),
            "vector": VectorSource(inline=self.embeddings.is_inline()),
            "grep": self._files.source,
            "graph": GraphSource(),
            "links": LinkSource(),
        }
        self._pipeline = Pipeline(built_in, sources or {})
        self._hydration = HydrationService(self.store, settings, self._pipeline, self._make_context)
        self._answers = AnswerService(settings, self.recipes, self.store.snapshot, self.audience, self.search)
        if self.store.has_pending_vectors() or (self.embeddings.explicit and self.store.models.current()):
            self.maintainer.wake()

    # Writing.

    def add(self, records: Iterable[Record], *, caller: Caller | None = None) -> WriteResult:
        """Add or replace records, all or none. When it returns, they are durable and the next search sees them.

        A caller writes only what it may read, and replaces only what it may see.
        """
        batch = check_instances(Record, records, "add()")
        return self.writes.add(batch, self._write_audience(caller)) if batch else WriteResult(0, 0, 0)

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
        """Add or replace facts, all or none. A superseded fact ends when the new one begins, and stays in history.

        With `same_relation`, a fact also ends the other facts of its subject with the same relation.
        """
        batch = check_instances(Fact, facts, "add_facts()")
        audience = self._write_audience(caller)
        return self.writes.add_facts(batch, same_relation=same_relation, audience=audience)[0]

    def extract_facts(self, records: Iterable[Record], *, keep: bool = True) -> ExtractedFacts:
        """Extract facts with the configured language model; without one, take what the texts state outright."""
        extracted = extract_facts(records, self._answers.model, self.settings.llm.timeout)
        if keep:
            self.add_facts(extracted.facts)
        return extracted

    def add_turns(self, turns: Iterable[Turn], *, caller: Caller | None = None) -> WriteResult:
        """Add turns of conversations, all or none; a turn without a position goes to the end of its session."""
        batch = check_instances(Turn, turns, "add_turns()")
        return self.writes.add_turns(batch, self._write_audience(caller))[0]

    def remove(self, ids: Iterable[str], *, caller: Caller | None = None) -> int:
        """Remove the records that the caller may see, with the chunks of documents; return how many there were."""
        names = [check_id(name) for name in check_list(ids, "remove() takes a list of ids")]
        tenant = (self.caller if caller is None else caller).tenant
        full_ids = [full_id(tenant, name) for name in names]
        return self.writes.remove(full_ids, self._write_audience(caller)).removed

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
        """Store a memory with its provenance; return the record."""
        record = make_memory(
            self.policy,
            self.caller if caller is None else caller,
            text,
            collection=collection,
            title=title,
            kind=kind,
            metadata=metadata,
            sensitivity=sensitivity,
            scope=scope,
            source=source,
        )
        self.add([record])
        return record

    def index(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        recipe: str | None = None,
        collection: str | None = None,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Index files and folders incrementally: add new and changed files, remove deleted ones.

        `recipe` decides how files are read, and to which collection the records go: its first, or `files`.
        """
        as_list = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        given = check_list(as_list, "index() takes paths of files and folders")
        chosen = None if recipe is None else find_recipe(recipe, self.recipes)
        default_collection = chosen.collections[0] if chosen is not None and chosen.collections else "files"
        began = time.perf_counter()
        with self.maintainer.bulk_load():
            report = index_files(
                self,
                given,
                collection=default_collection if collection is None else collection,
                scope=scope,
                progress=progress,
                profile="text" if chosen is None else chosen.index_profile,
            )
            self._folders.add(os.path.realpath(path) for path in given if Path(path).is_dir())
        report.seconds = time.perf_counter() - began  # includes the merging of segments at the end
        return report

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

    def search(
        self,
        query: str,
        *,
        recipe: str | Recipe | None = None,
        limit: int | None = None,
        filters: FilterLike = None,
        caller: Caller | None = None,
        keywords: Sequence[str] | None = None,
        include: Sequence[str] = (),
        neighbours: int = 0,
        look_back: float | bool = False,
        rewrite: QueryRewrite = NO_REWRITE,
        explain: bool = False,
    ) -> SearchResult:
        """Return the best records for a query, in one ranking.

        `keywords` are exact texts for the sources that search for them. `include` adds collections that the recipe
        searches on request. `neighbours` is the number of parts around a result that come with it. `look_back` is a
        window in hours; True takes it from the settings. `rewrite` changes the query for some sources.
        """
        requester = self.caller if caller is None else caller
        audience = self.audience(caller)
        plan = self._planner.plan(
            query, recipe, limit, filters, requester, include, neighbours, look_back, explain=explain
        )
        self.embeddings.ensure_model()
        with self.store.snapshot(audience) as snapshot:
            check_included(plan.recipe, include, snapshot)
            return self._pipeline.run(plan, self._make_context(query, snapshot, audience, keywords, rewrite))

    def why(
        self,
        query: str,
        record_id: str,
        *,
        recipe: str | Recipe | None = None,
        limit: int | None = None,
        filters: FilterLike = None,
        caller: Caller | None = None,
        keywords: Sequence[str] | None = None,
        include: Sequence[str] = (),
        rewrite: QueryRewrite = NO_REWRITE,
    ) -> Why:
        """Explain why a record is in the results, or which stage and number excluded it."""
        requester = self.caller if caller is None else caller
        audience = self.audience(caller)
        plan = self._planner.plan(query, recipe, limit, filters, requester, include, 0, explain=True)
        self.embeddings.ensure_model()
        with self.store.snapshot(audience) as snapshot:
            check_included(plan.recipe, include, snapshot)
            context = self._make_context(query, snapshot, audience, keywords, rewrite)
            result = self._pipeline.run(plan, context)
            key = snapshot.find_key(full_id(requester.tenant, check_id(record_id)))
            key = context.find_ephemeral(record_id) if key is None else key
            if key is None:
                raise NotFound(f"There is no record {record_id!r}")
            return explain_record(self._pipeline, plan, context, result, record_id, key)

    def plan(
        self, query: str, *, caller: Caller | None = None, **options: Unpack[PlanOptions]
    ) -> HydrationPlan:
        """Plan which code goes into a prompt: the entities that the query names, then related ones, within a budget."""
        self.embeddings.ensure_model()
        return self._hydration.plan(query, caller or self.caller, self.audience(caller), **options)

    def introspect(
        self, episode: str, turn: int | None = None, *, caller: Caller | None = None, replay: bool = False
    ) -> Introspection:
        """Return a plan of an episode; `replay` compares it with what the same query would select today."""
        audience = self.audience(caller)
        return self._hydration.introspect(episode, turn, caller or self.caller, audience, replay=replay)

    def ask(self, query: str, **options: Unpack[AskOptions]) -> Answer:
        """Answer a question with citations; without a language model, with sentences of the pages found."""
        return self._answers.ask(query, **options)

    def ask_stream(self, query: str, **options: Unpack[AskOptions]) -> AnswerStream:
        """Answer in parts, as the language model writes them."""
        return self._answers.ask_stream(query, **options)

    def audience(self, caller: Caller | None = None) -> Filter:
        """Return the filter of what a caller may see."""
        return self.policy.audience(self.caller if caller is None else caller)

    # Files.

    @property
    def folders(self) -> Folders:
        """The folders that may be searched and read: those of the settings, or those that were indexed."""
        return self._files.folders()

    def read_file(
        self, path: str, *, lines: tuple[int, int] | None = None, caller: Caller | None = None
    ) -> FileText:
        """Return the text of a file in an allowed folder, or of some of its lines; ReadError says why not."""
        audience = self.audience(caller)
        with self.store.snapshot(audience) as snapshot:
            return self._files.read(path, lines, snapshot, audience)

    def grep(
        self,
        keywords: str | Sequence[str],
        *,
        options: GrepOptions | None = None,
        caller: Caller | None = None,
    ) -> GrepResult:
        """Return the passages of files in allowed folders that contain the keywords exactly."""
        audience = self.audience(caller)
        texts = (keywords,) if isinstance(keywords, str) else tuple(keywords)
        with self.store.snapshot(audience) as snapshot:
            return self._files.passages(texts, snapshot, audience, options or GrepOptions())

    # Maintenance.

    def optimise(self) -> None:
        """Flush the buffers and merge the segments now, for the fastest searches. It is never required."""
        self.maintainer.flush(wait=True)
        self.maintainer.merge(whole=True, wait=True)

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

    def _write_audience(self, caller: Caller | None) -> Filter | None:
        """What a caller may write; None without a caller, who is then the owner of the process."""
        return None if caller is None else self.audience(caller)

    def _get(self, ids: Sequence[str], caller: Caller | None) -> dict[str, Record]:
        tenant = (self.caller if caller is None else caller).tenant
        audience = self.audience(caller)
        found = self.store.get(full_id(tenant, name) for name in ids)
        return {record.id: record for record in found.values() if matches(audience, record)}

    def _make_context(
        self,
        query: str,
        snapshot: Snapshot,
        audience: Filter,
        keywords: Sequence[str] | None,
        rewrite: QueryRewrite = NO_REWRITE,
    ) -> SearchContext:
        embed = self.embeddings.embed_query
        return SearchContext(query, snapshot, embed, audience=audience, keywords=keywords, rewrite=rewrite)
