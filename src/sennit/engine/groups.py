"""The groups of a database: `db.memory`, `db.files`, `db.code` and `db.admin`."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Unpack

from sennit.embedding_service import EmbeddingService
from sennit.engine.access import Access
from sennit.engine.file_access import FileAccess
from sennit.engine.maintenance import IndexMaintainer
from sennit.engine.projects import project_of_folder
from sennit.engine.query_rewriter import ConfiguredModel
from sennit.engine.search_request import FilterLike, SearchOptions, SearchRequest, as_request, build_filter
from sennit.engine.validation import check_instances, check_list
from sennit.engine.writes import WriteService
from sennit.errors import AccessDenied, InvalidInput
from sennit.facts import Fact
from sennit.filters import EVERYTHING, Equal, Filter, In
from sennit.folders import FileText, Folders, ReadError
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult
from sennit.pipeline import Replay
from sennit.places import FOLDER_FIELD, FolderOptions, Revision, path_to_text
from sennit.privacy import Caller
from sennit.recipes import Recipe, RecipeBook, find_recipe
from sennit.records import FRAGMENT_FIELD, Json, Record
from sennit.rerankers import RerankService
from sennit.results import SearchResult
from sennit.settings import IngestSettings
from sennit.settings.sections import HydrationSettings
from sennit.stores.contract import (
    Backend,
    Capabilities,
    CheckProgress,
    Model,
    ModelProgress,
    Snapshot,
    UnusedVectors,
    WriteResult,
)
from sennit.stores.findings import Finding
from sennit.turns import Turn

if TYPE_CHECKING:
    from sennit.context.briefing import Bullet

    # Imported at the first use: `db.files` only tells most commands which project they run in.
    from sennit.engine.hydration_service import HydrationService, PlanOptions
    from sennit.engine.inventory import Inventory, NamedCount
    from sennit.engine.memories import ExtractedFacts
    from sennit.hydration import Episode, HydrationPlan, Introspection
    from sennit.ingest import IndexReport, Progress, Scope
    from sennit.ingest.indexer import IndexTarget
    from sennit.repositories.tokens import TokenStore

CONTEXT_QUERY: Final = "recent conversations and key facts"
CONTEXT_RECIPE: Final = "memory"
SECONDS_PER_DAY: Final = 86_400

OpenReplays = Callable[[Sequence[SearchRequest]], contextlib.AbstractContextManager[Iterator[Replay]]]
"""Opens one snapshot for some searches of one caller."""


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """What is remembered about a query, and the same as a block for a system prompt."""

    result: SearchResult
    provenance: bool = False
    """Whether the block names the source of each line."""

    def __str__(self) -> str:
        return self.block

    @property
    def block(self) -> str:
        """The block, which marks its content as data; empty if nothing was found."""
        from sennit.context.briefing import join_bullets

        return join_bullets(self.bullets)

    @property
    def bullets(self) -> list[Bullet]:
        """Each hit as a part of the block, also those for which it has no room."""
        from sennit.context.briefing import make_bullets, memory_from_record

        memories = (memory_from_record(hit.record) for hit in self.result)
        return make_bullets(memories, provenance=self.provenance)


class MemoryGroup:
    """`db.memory`: what an assistant was told and what it knows."""

    def __init__(
        self,
        access: Access,
        writes: WriteService,
        model: ConfiguredModel,
        search: Callable[[SearchRequest], SearchResult],
        inventory: Inventory,
        llm_timeout: float,
    ) -> None:
        self._access = access
        self._writes = writes
        self._model = model
        self._search = search
        self._inventory = inventory
        self._llm_timeout = llm_timeout

    def add_turns(self, turns: Iterable[Turn], *, caller: Caller | None = None) -> WriteResult:
        """Add turns of conversations, all or none; a turn without a position goes to the end of its session."""
        batch = check_instances(Turn, turns, "add_turns()")
        return self._writes.add_turns(batch, self._access.write_audience(caller))

    def add_facts(
        self, facts: Iterable[Fact], *, same_relation: bool = False, caller: Caller | None = None
    ) -> WriteResult:
        """Add or replace facts, all or none. A superseded fact ends when the new one begins, and stays in history.

        With `same_relation`, a fact also ends the other facts of its subject with the same relation.
        """
        batch = check_instances(Fact, facts, "add_facts()")
        audience = self._access.write_audience(caller)
        return self._writes.add_facts(batch, same_relation=same_relation, audience=audience)

    def extract_facts(self, records: Iterable[Record], *, keep: bool = True) -> ExtractedFacts:
        """Extract facts with the configured language model; without one, take what the texts state outright.

        Stored facts end when a text says that they are over, or states a new value of what has one at a time.
        """
        from sennit.engine.memories import extract_facts
        from sennit.graph.extraction import supersedes_former

        extracted = extract_facts(records, self._model.get(), self._llm_timeout)
        if keep:
            # Somebody lives in one place at a time, and may like many things.
            single = [fact for fact in extracted.facts if supersedes_former(fact)]
            others = [fact for fact in extracted.facts if not supersedes_former(fact)]
            for facts, same_relation in ((others, False), (single, True)):
                self._writes.add_facts(
                    facts,
                    same_relation=same_relation,
                    endings=extracted.endings,
                    audience=self._access.write_audience(None),
                )
        return extracted

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
        """Store a memory with its provenance; return the record. Raises AccessDenied if the caller could not read it.

        `timestamp` is when it was said; by default now.
        """
        from sennit.engine.memories import make_memory

        record = make_memory(
            self._access.policy,
            self._access.resolve(caller),
            text,
            collection=collection,
            title=title,
            kind=kind,
            metadata=metadata,
            sensitivity=sensitivity,
            scope=scope,
            source=source,
            timestamp=timestamp,
        )
        # Also the owner, who names no caller, gets no memory that a search could not find.
        self._writes.add([record], self._access.audience(caller))
        return record

    def sessions(self, *, caller: Caller | None = None) -> tuple[NamedCount, ...]:
        """Return each session with its number of turns and memories, in order."""
        return self._inventory.sessions(caller)

    def forget(self, session: str, *, caller: Caller | None = None) -> int:
        """Remove the turns and memories of a session, and the facts that have no other source; return how many."""
        from sennit.engine.inventory import in_session

        audience = self._access.audience(caller)
        return self._writes.remove_matching(in_session(session), audience, with_derived_facts=True).removed

    def context(
        self,
        query: str | SearchRequest = CONTEXT_QUERY,
        *,
        provenance: bool = False,
        **options: Unpack[SearchOptions],
    ) -> MemoryContext:
        """Return what is remembered about a query, by default with the recipe `memory`, for a system prompt."""
        if not isinstance(query, SearchRequest):
            options.setdefault("recipe", CONTEXT_RECIPE)
        return MemoryContext(self._search(as_request(query, options)), provenance)


@dataclass(frozen=True, slots=True)
class Project:
    """An indexed folder that a call can be limited to."""

    name: str
    path: str
    revision: Revision | None = None
    """The git revision of its records; None if it is not under git."""

    def to_dict(self) -> dict[str, Json]:
        revision = None if self.revision is None else self.revision.to_dict()
        return {"name": self.name, "path": self.path, "revision": revision}


class FilesGroup:
    """`db.files`: index files, and read and grep those in the allowed folders."""

    def __init__(
        self,
        access: Access,
        target: IndexTarget,
        maintainer: IndexMaintainer,
        files: FileAccess,
        inventory: Callable[[], Inventory],
        recipes: Mapping[str, Recipe],
        settings: IngestSettings,
    ) -> None:
        self._access = access
        self._target = target
        self._settings = settings
        self._maintainer = maintainer
        self._files = files
        self._inventory = inventory
        self._recipes = recipes

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
        """Index files and folders incrementally: add new and changed files, remove deleted ones.

        Each file is read by its kind: pages, code, conversations, examples, rows of tables, or passages of text.
        `recipe` narrows the run to the files that this recipe searches. `collection`, `tenant` and `metadata` are given
        to every record of a folder; `row_template`, such as "{title}: {text}", is the text of a row of a table. All are
        remembered for the next run. With `only`, a list of real paths, nothing else is visited.
        """
        from sennit.ingest import IndexProgress
        from sennit.ingest import index as index_files
        from sennit.ingest.readers import fills

        as_list = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        given = check_list(as_list, "index() takes paths of files and folders")
        chosen = None if recipe is None else find_recipe(recipe, self._recipes)
        searched = () if chosen is None else chosen.collections
        # A recipe with collections of its own, which no reader fills, gets a reading of each file for the first.
        target = searched[0] if searched and not fills(searched) else ""
        if chosen is not None and searched:
            searched = (*searched, *chosen.on_request)
        began = time.perf_counter()
        with self._maintainer.bulk_load() if only is None else contextlib.nullcontext():
            report = index_files(
                self._target,
                given,
                only_collections=() if target else searched,
                target=target and (collection or target),
                options=FolderOptions(tenant, metadata, None if target else collection, row_template),
                scope=scope or self.make_scope(),
                progress=progress,
                only=only,
            )
            self._delete_unused_vectors()
            if progress is not None:
                progress(IndexProgress("merge"))
        report.seconds = time.perf_counter() - began  # includes the merging of segments at the end
        return report

    def _delete_unused_vectors(self) -> None:
        """Delete the vectors of texts that have left the files too long ago, or that are too many."""
        settings = self._settings
        before = time.time() - settings.unused_vector_days * SECONDS_PER_DAY
        self._target.store.models.delete_unused(before, settings.unused_vector_bytes)

    def locate(self, record: Record) -> str | None:
        """Return the path of a record's file, relative to the current folder where that is shorter."""
        return self._target.indexed_folders.locator()(record)

    def paths(
        self,
        filters: FilterLike = None,
        *,
        collections: Sequence[str] = (),
        project: str | None = None,
        caller: Caller | None = None,
    ) -> tuple[NamedCount, ...]:
        """Return the path of each file that has records, with their number, in order; of one project if it is named."""
        return self._inventory().files(caller, build_filter(filters, collections), project)

    def make_scope(
        self,
        *,
        hidden: bool = False,
        ignore_files: bool = True,
        default_ignores: bool = True,
        include: Iterable[str] = (),
        exclude: Iterable[str] = (),
        max_bytes: int | None = None,
    ) -> Scope:
        """Return which files are indexed: what the settings say, narrowed or widened by these arguments."""
        from sennit.ingest import Scope

        return Scope(
            hidden=hidden,
            ignore_files=ignore_files,
            default_ignores=default_ignores and self._settings.default_ignores,
            include=tuple(include),
            exclude=(*self._settings.exclude, *exclude),
            max_bytes=max_bytes or self._settings.max_bytes,
        )

    def filter_paths(self, paths: Iterable[str]) -> Filter:
        """Return the filter of the records of these files; a relative path is written as in a citation."""
        places = self._target.indexed_folders.places()
        names = list(paths)
        found = (place for path in names for place in places.find_files(path))
        of_files: Filter = In("path", tuple(dict.fromkeys((*names, *map(os.path.realpath, names)))))
        for folder, relative in found:
            of_files = of_files | (Equal("path", relative) & Equal(FOLDER_FIELD, folder.key))
        return of_files

    def project_at(self, path: str | os.PathLike[str]) -> str | None:
        """Return the name of the project that a path is in; None outside of all, and where there is only one."""
        places = self._target.indexed_folders.places()
        found = project_of_folder(path_to_text(os.path.realpath(path)), places)
        return None if found is None else found.key

    def projects(self, *, caller: Caller | None = None) -> tuple[Project, ...]:
        """Return the projects, which are the folders that are indexed as a whole, in the order of their names."""
        return tuple(
            Project(one.key, path_to_text(one.root), one.revision) for one in self._access.projects(caller)
        )

    @property
    def folders(self) -> Folders:
        """The folders that may be searched and read: those of the settings, or those that were indexed."""
        return self._files.folders(self._access.audience(None))

    def read(
        self,
        path: str,
        *,
        lines: tuple[int, int] | None = None,
        project: str | None = None,
        caller: Caller | None = None,
    ) -> FileText:
        """Return the text of a file in an allowed folder, or of some of its lines; ReadError says why not.

        A path with lines (`path:10-20`) and the id of a record mean the lines of a file, too; `path#cell=3` is a part
        of a file without lines, as a citation names it. With `project`, the name or the path of an indexed folder, only
        its files are read.
        """
        audience = self._access.audience(caller, project)
        with self._target.store.snapshot(audience) as snapshot:
            try:
                return self._files.read(path, lines, snapshot, audience)
            except ReadError as error:
                record = self._find_record(path, snapshot, caller) if error.code == "NOT_FOUND" else None
                found = None if record is None else self._target.indexed_folders.places().absolute(record)
                if record is None or found is None:
                    raise
            if lines is None and record.lines is None and FRAGMENT_FIELD in record.metadata:
                return self._files.read(
                    f"{found}#{record.metadata[FRAGMENT_FIELD]}", None, snapshot, audience
                )
            return self._files.read(found, lines or record.lines, snapshot, audience)

    def _find_record(self, reference: str, snapshot: Snapshot, caller: Caller | None) -> Record | None:
        """The record of an id, or of its beginning; None if it means no record, or several."""
        tenant = self._access.resolve(caller).tenant
        from sennit.engine.references import ReferenceResolver

        found = ReferenceResolver(snapshot, tenant, self._target.indexed_folders.places).find_all(reference)
        return found[0] if len(found) == 1 else None

    def grep(
        self,
        keywords: str | Sequence[str],
        *,
        options: GrepOptions | None = None,
        project: str | None = None,
        caller: Caller | None = None,
    ) -> GrepResult:
        """Return the passages of files in allowed folders, or in one project, that contain the keywords exactly."""
        audience = self._access.audience(caller, project)
        texts = (keywords,) if isinstance(keywords, str) else tuple(keywords)
        with self._target.store.snapshot(audience) as snapshot:
            return self._files.passages(texts, snapshot, audience, options or GrepOptions())


class CodeGroup:
    """`db.code`: the code that belongs in a prompt."""

    def __init__(self, access: Access, embeddings: EmbeddingService, hydration: HydrationService) -> None:
        self._access = access
        self._embeddings = embeddings
        self._hydration = hydration

    def plan(
        self, query: str, *, caller: Caller | None = None, **options: Unpack[PlanOptions]
    ) -> HydrationPlan:
        """Plan which code goes into a prompt: the entities that the query names, then related ones, within a budget."""
        self._embeddings.ensure_model()
        project = self._access.project_keys(caller, options.get("project"))
        audience = self._access.audience(caller)
        return self._hydration.plan(query, self._access.resolve(caller), audience, project, **options)

    def episodes(self, *, caller: Caller | None = None) -> tuple[Episode, ...]:
        """Return the episodes that the caller may see, the latest first, with what each turn put into the prompt."""
        return self._hydration.episodes(self._access.resolve(caller), self._access.audience(caller))

    def introspect(
        self,
        episode: str,
        turn: int | None = None,
        *,
        project: str | None = None,
        caller: Caller | None = None,
        replay: bool = False,
    ) -> Introspection:
        """Return a plan of an episode; `replay` compares it with what the same query would select today.

        With `project`, the name or the path of an indexed folder, only its code is shown. A replay without it is limited
        to the project that the plan was limited to.
        """
        return self._hydration.introspect(
            episode,
            turn,
            self._access.resolve(caller),
            self._access.audience(caller),
            self._access.project_keys(caller, project),
            replay=replay,
        )


class AdminGroup:
    """`db.admin`: tokens, embedding models and maintenance, for the operator."""

    def __init__(
        self,
        access: Access,
        backend: Backend,
        tokens: TokenStore,
        embeddings: EmbeddingService,
        maintainer: IndexMaintainer,
        hydration: HydrationSettings,
        recipes: RecipeBook,
        open_replays: OpenReplays,
        reranker: RerankService,
    ) -> None:
        self.tokens = tokens
        """The access tokens of the servers."""
        self._access = access
        self._backend = backend
        self._hydration = hydration
        self._recipes = recipes
        self._store = backend.records
        self._embeddings = embeddings
        self._maintainer = maintainer
        self._open_replays = open_replays
        self._reranker = reranker

    @property
    def levels(self) -> tuple[str, ...]:
        """The sensitivity levels, lowest first."""
        return tuple(self._access.policy.levels)

    def add_recipe(self, recipe: Recipe) -> None:
        """Make a recipe usable by its name, which no other has, until the database is closed."""
        self._recipes.add(recipe)

    def callers_for(self, caller: Caller) -> dict[str, Caller]:
        """Return the callers whom this one may act for, by the name of their token."""
        if not caller.everything or self._access.policy.rule is not None:
            return {}
        return {
            token.name: token.caller for token in self.tokens.all() if token.caller.tenant == caller.tenant
        }

    def act_for(self, caller: Caller, other: Caller) -> Caller:
        """Return the other caller if this one may act for it, which never lets it see more than it may see itself.

        Only the owner may, who sees everything of the tenant. A rule of the deployment may show a caller what it hides
        from the owner, so nobody acts for others where there is one.
        """
        if not caller.everything:
            raise AccessDenied("Only a token that sees everything of its tenant may act for another caller")
        if other.tenant != caller.tenant:
            raise AccessDenied("A caller of another tenant may see what this one may not")
        if self._access.policy.rule is not None:
            raise AccessDenied(
                "This database has a privacy rule of its own, so nobody may act for another caller"
            )
        self._access.policy.audience(other)  # an unknown clearance is an error now
        return other

    @property
    def location(self) -> str:
        """Where the database is, for messages: a folder, or a server without its password."""
        return self._store.location

    @property
    def capabilities(self) -> dict[str, Capabilities]:
        """What the index of each role promises."""
        backend = self._backend
        return {
            "keyword": backend.keyword.capabilities,
            "vector": backend.vector.capabilities,
            "graph": backend.graph.capabilities,
        }

    @property
    def bindings(self) -> dict[str, str]:
        """What each role is bound to: `sqlite`, `local`, or the name of a server."""
        return dict(self._backend.bindings)

    def behind(self) -> dict[str, int]:
        """Return how many changes each index on a server has not applied yet, by role."""
        from sennit.engine.checks import index_lag

        return index_lag(self._backend)

    def check(self, *, quick: bool = False, progress: CheckProgress | None = None) -> list[Finding]:
        """Check that everything derived agrees with the records; `quick` checks a sample.

        Open the database anew for this, without background work: what a process holds in memory is not read again.
        """
        from sennit.engine.checks import check_database

        found = check_database(self._backend, self._hydration, quick=quick, progress=progress)
        if self._reranker.is_configured:
            works, message = self._reranker.check()
            found.append(Finding("reranker", "ok" if works else "problem", message))
        return found

    @contextlib.contextmanager
    def export(self, *, everything: bool = False) -> Iterator[tuple[int, Iterator[Record]]]:
        """Yield the number of records and the records, ordered by id, of one snapshot.

        Those that the default caller may see; with `everything`, those of all tenants, sensitivities and scopes.
        """
        with self._store.snapshot(EVERYTHING if everything else self._access.audience(None)) as snapshot:
            yield snapshot.count(), snapshot.iter_records()

    @contextlib.contextmanager
    def replays(self, requests: Iterable[SearchRequest]) -> Iterator[Iterator[Replay]]:
        """Yield searches that can be ranked again by other recipes; each runs when it is read.

        All have the same caller, and see the same snapshot, which stays open until the block ends.
        """
        wanted = check_instances(SearchRequest, requests, "replays()")
        if len({request.caller for request in wanted}) > 1:
            raise InvalidInput("The searches of replays() have different callers; call it once for each")
        if not wanted:
            yield iter(())
            return
        with self._open_replays(wanted) as found:
            yield found

    def optimise(self) -> int:
        """Flush the buffers, merge the segments and delete all unused vectors now. It is never required.

        Returns how many unused vectors were deleted: those of texts that have left the indexed files.
        """
        self.flush()
        self._maintainer.merge(whole=True, wait=True)
        return self._store.models.delete_unused(math.inf)

    def unused_vectors(self) -> UnusedVectors:
        """Return how many vectors are kept for texts that have left the indexed files, and their size."""
        return self._store.models.unused()

    def flush(self) -> None:
        """Write the buffers to index segments now, so that the next process need not read them again."""
        self._maintainer.flush(wait=True)

    @property
    def embedding_is_off(self) -> bool:
        """Whether the settings switch embedding off."""
        return self._embeddings.disabled

    def models(self) -> list[ModelProgress]:
        """Return each embedding model with its number of records and of those that have no vector yet."""
        return self._store.models.progress()

    def current_models(self) -> list[Model]:
        """Return the model that answers, and after it one that is being built to replace it."""
        return self._store.models.current()

    def pending_vectors(self) -> int:
        """Return how many vectors are not computed yet."""
        return sum(state.pending for state in self.models())

    def select_model(self) -> None:
        """Choose the model of the settings now; raise if it cannot be used. Otherwise the first write or search does."""
        self._embeddings.select_model()

    def embed_pending(self, progress: Callable[[Model, int, int], None] | None = None) -> None:
        """Compute the missing vectors in this thread."""
        self._maintainer.embed_pending(progress)

    @property
    def last_error(self) -> str | None:
        """Why the background could not compute vectors the last time; None if it could."""
        return self._maintainer.last_error
