"""The one entry: open a database, write to it, search it, and ask why."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Unpack

from sennit.engine.asking import Answer, AnswerStream, Asking, AskOptions
from sennit.engine.callers import default_caller, policy_of
from sennit.engine.checking import all_of, checked_id, listed
from sennit.engine.files import FileAccess
from sennit.engine.hydration import Asking as PlanOptions
from sennit.engine.hydration import Hydration
from sennit.engine.model import embedding_named, embedding_spec
from sennit.engine.planning import FilterLike, Planner, check_included
from sennit.engine.remembering import Extracted, facts_of, memory
from sennit.errors import NotFound
from sennit.facts import Fact, with_ends
from sennit.filters import Filter, matches
from sennit.folders import FileText, Folders
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepAnswer
from sennit.hydration import HydrationPlan, Introspection
from sennit.ingest import IndexReport, Progress, Scope
from sennit.ingest import index as index_files
from sennit.ingest.artifacts import Cut, cut, fragments, parts_of
from sennit.pipeline import Pipeline
from sennit.privacy import Caller, Rule
from sennit.recipes import Recipe, all_recipes, find_recipe
from sennit.records import Json, Record, full_id, split_id
from sennit.results import Result, Why
from sennit.segments import Segment, placed
from sennit.settings import Settings
from sennit.sources.base import Question, Source
from sennit.sources.graph import GraphSource
from sennit.sources.keyword import KeywordSource
from sennit.sources.links import LinkSource
from sennit.sources.vector import VectorSource
from sennit.sources.wording import AS_ASKED, Wording
from sennit.standing import stand
from sennit.stores.embedded.graph import older
from sennit.stores.embedded.keeper import Keeper
from sennit.stores.embedded.permits import Permits
from sennit.stores.embedded.prepared import Writables, prepared
from sennit.stores.embedded.sessions import places_of
from sennit.stores.embedded.snapshot import Snapshot
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.embedded.writing import Also, Written
from sennit.vectors import NOTHING, Given, Vectors

MEMORY: Final = ":memory:"


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
        self.path = None if os.fspath(path) == MEMORY else Path(path)
        self.recipes: Mapping[str, Recipe] = all_recipes(settings)
        self.policy = policy_of(settings, rule)
        self.caller = default_caller(settings)
        """Who asks when no caller is named."""
        # A clearance that is no level is an error now, not at the first search.
        self.policy.audience(self.caller)
        self._planner = Planner(settings, self.recipes)
        self.store = EmbeddedStore(self.path, apart=settings.privacy.apart)
        self.permits = Permits(self.store.database)
        self.vectors = Vectors(self.store, embedding_spec(settings), explicit=embedding_named(settings))
        self.keeper = Keeper(
            self.store, settings.store.fold_at, self.vectors.for_backlog, self.vectors.settle
        )
        self.vectors.changed = self.keeper.nudge
        self._files = FileAccess(settings.files, self.permits, self.path)
        built_in: dict[str, Source] = {
            "keyword": KeywordSource(),
            "vector": VectorSource(inline=self.vectors.inline()),
            "grep": self._files.source,
            "graph": GraphSource(),
            "links": LinkSource(),
        }
        self._pipeline = Pipeline(built_in, sources or {})
        self._hydration = Hydration(self.store, settings, self._pipeline, self._question)
        self._asking = Asking(settings, self.recipes, self.store.snapshot, self.audience, self.search)
        if self.store.models_waiting() or (self.vectors.explicit and self.store.models.wanted()):
            self.keeper.nudge()

    # Writing.

    def add(self, records: Iterable[Record]) -> Written:
        """Add or replace records, all or none. When it returns, they are durable and the next search sees them."""
        batch = all_of(Record, records, "add()")
        return self.apply(batch) if batch else Written(0, 0, 0)

    def add_artifacts(self, artifacts: Iterable[Record], *, cut: Cut = cut) -> Written:
        """Add or replace whole documents with their fragments, all or none.

        Fragments go to the collection `artifact_chunks`, each with `artifact_id` and `chunk_index`; those of an
        earlier version leave with it.
        """
        wholes = all_of(Record, artifacts, "add_artifacts()")
        records: list[Record] = []
        for whole in wholes:
            if whole.collection == "default":
                whole = replace(whole, collection="artifacts")
            records += [whole, *fragments(whole, cut(whole))]
        return self.apply(
            records, lambda connection: [name for whole in wholes for name in parts_of(connection, whole)]
        )

    def add_facts(self, facts: Iterable[Fact], *, same_relation: bool = False) -> Written:
        """Add or replace facts, all or none. What a fact supersedes ends where it begins, and stays in history.

        With `same_relation`, a fact also ends whatever else is said of its subject in the same relation.
        """
        batch = all_of(Fact, facts, "add_facts()")
        with self.store.database.read() as connection:
            before = older(connection, batch, same_relation=same_relation)
        return self.add(with_ends(batch, before, datetime.now(UTC), same_relation=same_relation))

    def extract_facts(self, records: Iterable[Record], *, keep: bool = True) -> Extracted:
        """Facts read out of records: by the configured language model, or by what is stated outright."""
        found = facts_of(records, self._asking.model, self.settings.llm.timeout)
        if keep:
            self.add_facts(found.facts)
        return found

    def add_segments(self, segments: Iterable[Segment]) -> Written:
        """Add turns of conversations, all or none, each after the last of its session unless it says where."""
        batch = all_of(Segment, segments, "add_segments()")
        with self.store.database.read() as connection:
            return self.add(placed(batch, *places_of(connection, batch)))

    def remove(self, ids: Iterable[str], *, caller: Caller | None = None) -> int:
        """Remove records by id, all or none; returns how many there were. The fragments of a whole go with it.

        A caller removes only what it may see.
        """
        names = [checked_id(name) for name in listed(ids, "remove() takes a list of ids")]
        if caller is None:
            wanted = [full_id(self.caller.tenant, name) for name in names]
        else:
            wanted = [record.full_id for record in self._get(names, caller).values()]
        whole = [Record(id=name, tenant=tenant, text="") for tenant, name in map(split_id, wanted)]
        return self.apply(
            (), lambda connection: [*wanted, *(part for one in whole for part in parts_of(connection, one))]
        ).removed

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
        """Keep a text for later, with where it came from; the record that was written."""
        record = memory(
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
        """Take in files and folders: what is new or changed becomes records, what is gone leaves.

        `recipe` says for which way of searching: pages become summary, examples and sections for `docs`, code its
        entities for `code`. Records go to the recipe's first collection, or to `files`.
        """
        several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        given = listed(several, "index() takes paths of files and folders")
        chosen = None if recipe is None else find_recipe(recipe, self.recipes)
        home = chosen.collections[0] if chosen is not None and chosen.collections else "files"
        began = time.perf_counter()
        with self.keeper.loading():
            report = index_files(
                self,
                given,
                collection=home if collection is None else collection,
                scope=scope,
                progress=progress,
                profile="text" if chosen is None else chosen.reads_as,
            )
            self.permits.keep_folders(os.path.realpath(path) for path in given if Path(path).is_dir())
        report.seconds = time.perf_counter() - began  # with the merging at its end
        return report

    def apply(self, records: Writables, also: Also = lambda _: (), given: Given = NOTHING) -> Written:
        """Add records in one transaction with what `also` writes and removes; for sennit's own ingest.

        Vectors that are `given` are not made again.
        """
        ready = list(map(prepared, records))
        vectors = self.vectors.for_records(ready, given) if ready else {}
        written = self.store.apply(ready, vectors, also)
        self.keeper.wrote(written.added + written.updated + written.removed)
        return written

    # Reading.

    def get(self, record_id: str, *, caller: Caller | None = None) -> Record | None:
        """The record with this id, or None."""
        return self._get([checked_id(record_id)], caller).get(record_id)

    def __len__(self) -> int:
        """How many records there are, for who names no caller."""
        with self.store.snapshot(self.audience()) as snapshot:
            return snapshot.count()

    def __iter__(self) -> Iterator[Record]:
        """Every record, by id, as of one moment, for who names no caller."""
        audience = self.audience()
        return (record for record in self.store.every() if matches(audience, record))

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
        wording: Wording = AS_ASKED,
        explain: bool = False,
    ) -> Result:
        """The best records for a question, in one ranking.

        `keywords` are exact texts for sources that look for such; `include` names further collections of a recipe
        that has some on request; `neighbours` is how many parts around a found part come with it; `look_back` asks for
        nothing older than so many hours, True for as many as the settings say; `wording` puts the question
        differently to the sources.
        """
        who = self.caller if caller is None else caller
        audience = self.audience(caller)
        plan = self._planner.plan(
            query, recipe, limit, filters, who, include, neighbours, look_back, explain=explain
        )
        self.vectors.ready()
        with self.store.snapshot(audience) as snapshot:
            check_included(plan.recipe, include, snapshot)
            return self._pipeline.run(plan, self._question(query, snapshot, audience, keywords, wording))

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
        wording: Wording = AS_ASKED,
    ) -> Why:
        """Why a record is in the answer to a question, or which stage and number kept it out."""
        who = self.caller if caller is None else caller
        audience = self.audience(caller)
        plan = self._planner.plan(query, recipe, limit, filters, who, include, 0, explain=True)
        self.vectors.ready()
        with self.store.snapshot(audience) as snapshot:
            check_included(plan.recipe, include, snapshot)
            question = self._question(query, snapshot, audience, keywords, wording)
            result = self._pipeline.run(plan, question)
            key = snapshot.key_of(full_id(who.tenant, checked_id(record_id)))
            key = question.key_of(record_id) if key is None else key
            if key is None:
                raise NotFound(f"There is no record {record_id!r}")
            return stand(self._pipeline, plan, question, result, record_id, key)

    def plan(
        self, query: str, *, caller: Caller | None = None, **asking: Unpack[PlanOptions]
    ) -> HydrationPlan:
        """Which entities of code go into a prompt: those that are named, then those that are near, within a budget."""
        self.vectors.ready()
        return self._hydration.plan(query, caller or self.caller, self.audience(caller), **asking)

    def introspect(
        self, episode: str, turn: int | None = None, *, caller: Caller | None = None, replay: bool = False
    ) -> Introspection:
        """What was planned in an episode; `replay` compares it with what the same question would bring today."""
        who = caller or self.caller
        return self._hydration.introspect(episode, turn, who, self.audience(caller), replay=replay)

    def ask(self, query: str, **options: Unpack[AskOptions]) -> Answer:
        """An answer in words, each statement with where it is from; without a language model, what pages say."""
        return self._asking.ask(query, **options)

    def ask_stream(self, query: str, **options: Unpack[AskOptions]) -> AnswerStream:
        """The same in parts, as they are written."""
        return self._asking.ask_stream(query, **options)

    def audience(self, caller: Caller | None = None) -> Filter:
        """What a caller may see."""
        return self.policy.audience(self.caller if caller is None else caller)

    # Files.

    @property
    def folders(self) -> Folders:
        """The folders that may be searched and read: those of the settings, or those that were indexed."""
        return self._files.folders()

    def read_file(
        self, path: str, *, lines: tuple[int, int] | None = None, caller: Caller | None = None
    ) -> FileText:
        """The text of a file in an allowed folder, or of some of its lines; ReadError says why not."""
        audience = self.audience(caller)
        with self.store.snapshot(audience) as snapshot:
            return self._files.read(path, lines, snapshot, audience)

    def grep(
        self,
        keywords: str | Sequence[str],
        *,
        options: GrepOptions | None = None,
        caller: Caller | None = None,
    ) -> GrepAnswer:
        """Passages of files in allowed folders that hold the keywords exactly."""
        audience = self.audience(caller)
        wanted = (keywords,) if isinstance(keywords, str) else tuple(keywords)
        with self.store.snapshot(audience) as snapshot:
            return self._files.passages(wanted, snapshot, audience, options or GrepOptions())

    # Keeping.

    def optimise(self) -> None:
        """Fold and merge the indexes now, for the fastest searches; nothing is ever lost without it."""
        self.keeper.fold(wait=True)
        self.keeper.settle(whole=True, wait=True)

    def close(self) -> None:
        """Stop background work and let go of the files. Everything confirmed is on disk already."""
        self.keeper.close()
        self._asking.close()
        self.vectors.close()
        self.store.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, ids: Sequence[str], caller: Caller | None) -> dict[str, Record]:
        tenant = (self.caller if caller is None else caller).tenant
        audience = self.audience(caller)
        found = self.store.get(full_id(tenant, name) for name in ids)
        return {record.id: record for record in found.values() if matches(audience, record)}

    def _question(
        self,
        query: str,
        snapshot: Snapshot,
        audience: Filter,
        keywords: Sequence[str] | None,
        wording: Wording = AS_ASKED,
    ) -> Question:
        embed = self.vectors.for_query
        return Question(query, snapshot, embed, audience=audience, keywords=keywords, wording=wording)
