"""The one entry: open a database, write to it, search it, and ask why."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

from weft.embedding import EmbeddingSpec
from weft.errors import InvalidInput, NotFound
from weft.filters import Filter, parse_filter
from weft.ingest import IndexReport, Progress, Scope
from weft.ingest import index as index_files
from weft.pipeline import Pipeline, Plan
from weft.recipes import BUILT_IN, Recipe, find_recipe, recipe_from_dict
from weft.records import Record, is_unicode
from weft.results import Result, Why
from weft.settings import Settings, load
from weft.sources.base import Question, Source
from weft.sources.keyword import KeywordSource
from weft.sources.vector import VectorSource
from weft.standing import stand
from weft.stores.contract import BM25
from weft.stores.embedded.keeper import Keeper
from weft.stores.embedded.store import Also, EmbeddedStore, Written
from weft.vectors import Vectors

MEMORY: Final = ":memory:"

T = TypeVar("T")

MAX_QUERY_CHARACTERS: Final = 100_000
"""A question; a longer text is a document, and belongs into the database."""

FilterLike = Filter | Mapping[str, object] | str | None


class Weft:
    """An open database. Safe to use from several threads; several processes may open the same folder."""

    def __init__(
        self, path: str | os.PathLike[str], settings: Settings, sources: Mapping[str, Source] | None = None
    ) -> None:
        self.settings = settings
        self.path = None if os.fspath(path) == MEMORY else Path(path)
        self.recipes: Mapping[str, Recipe] = {
            **BUILT_IN,
            **{name: recipe_from_dict(name, table) for name, table in settings.recipes.items()},
        }
        keyword = settings.keyword
        self._bm25 = BM25(keyword.k1, keyword.b, keyword.text_weight, keyword.title_weight)
        find_recipe(settings.search.recipe, self.recipes)
        self.store = EmbeddedStore(self.path)
        self.vectors = Vectors(self.store, _spec(settings), explicit=_explicit(settings))
        self.keeper = Keeper(
            self.store, settings.store.fold_at, self.vectors.for_backlog, self.vectors.settle
        )
        self.vectors.changed = self.keeper.nudge
        built_in: dict[str, Source] = {
            "keyword": KeywordSource(),
            "vector": VectorSource(inline=self.vectors.inline()),
        }
        self._pipeline = Pipeline(built_in, sources or {})
        if self.store.models_waiting() or (self.vectors.explicit and self.store.models.wanted()):
            self.keeper.nudge()

    # Writing.

    def add(self, records: Iterable[Record]) -> Written:
        """Add or replace records, all or none. When it returns, they are durable and the next search sees them."""
        batch = _listed(records, "add() takes a list of weft.Record values")
        for record in batch:
            if not isinstance(record, Record):
                raise InvalidInput(f"add() takes weft.Record values, not {type(record).__name__}")
        return self.apply(batch) if batch else Written(0, 0, 0)

    def remove(self, ids: Iterable[str]) -> int:
        """Remove records by id, all or none; returns how many there were."""
        wanted = [_checked_id(name) for name in _listed(ids, "remove() takes a list of ids")]
        return self.apply((), lambda _: wanted).removed

    def index(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        collection: str = "files",
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> IndexReport:
        """Take in files and folders: what is new or changed becomes records, what is gone leaves."""
        return index_files(self, paths, collection=collection, scope=scope, progress=progress)

    def apply(self, records: Sequence[Record], also: Also = lambda _: ()) -> Written:
        """Add records in one transaction with what `also` writes and removes; for weft's own ingest."""
        written = self.store.apply(records, self.vectors.for_records(records) if records else {}, also)
        self.keeper.wrote(written.added + written.updated + written.removed)
        return written

    # Reading.

    def get(self, record_id: str) -> Record | None:
        """The record with this id, or None."""
        return self.store.get([_checked_id(record_id)]).get(record_id)

    def __len__(self) -> int:
        return self.store.count()

    def __iter__(self) -> Iterator[Record]:
        """Every record, by id, as of one moment."""
        return self.store.every()

    def search(
        self,
        query: str,
        *,
        recipe: str | Recipe | None = None,
        limit: int | None = None,
        filters: FilterLike = None,
        explain: bool = False,
    ) -> Result:
        """The best records for a question, in one ranking."""
        plan = self._plan(query, recipe, limit, filters, explain=explain)
        self.vectors.ready()
        with self.store.snapshot() as snapshot:
            return self._pipeline.run(plan, Question(query, snapshot, self.vectors.for_query))

    def why(
        self,
        query: str,
        record_id: str,
        *,
        recipe: str | Recipe | None = None,
        limit: int | None = None,
        filters: FilterLike = None,
    ) -> Why:
        """Why a record is in the answer to a question, or which stage and number kept it out."""
        plan = self._plan(query, recipe, limit, filters, explain=True)
        self.vectors.ready()
        with self.store.snapshot() as snapshot:
            key = snapshot.key_of(_checked_id(record_id))
            if key is None:
                raise NotFound(f"There is no record {record_id!r}")
            question = Question(query, snapshot, self.vectors.for_query)
            result = self._pipeline.run(plan, question)
            return stand(self._pipeline, plan, question, result, record_id, key)

    # Keeping.

    def optimise(self) -> None:
        """Fold and merge the indexes now, for the fastest searches; nothing is ever lost without it."""
        self.keeper.fold(wait=True)
        self.keeper.settle(whole=True, wait=True)

    def close(self) -> None:
        """Stop background work and let go of the files. Everything confirmed is on disk already."""
        self.keeper.close()
        self.vectors.close()
        self.store.close()

    def __enter__(self) -> Weft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _plan(
        self,
        query: str,
        recipe: str | Recipe | None,
        limit: int | None,
        filters: FilterLike,
        *,
        explain: bool,
    ) -> Plan:
        if not isinstance(query, str):
            raise InvalidInput(f"The query must be a string, not {type(query).__name__}")
        if not is_unicode(query):
            raise InvalidInput("The query has a lone surrogate; it is not valid Unicode")
        if len(query) > MAX_QUERY_CHARACTERS:
            raise InvalidInput(
                f"The query has {len(query):,} characters; the most is {MAX_QUERY_CHARACTERS:,}. "
                "Search for a part of it."
            )
        settings = self.settings.search
        chosen = (
            recipe if isinstance(recipe, Recipe) else find_recipe(recipe or settings.recipe, self.recipes)
        )
        if limit is None:
            limit = min(chosen.limit or settings.limit, chosen.max_limit)
        return Plan(
            chosen,
            chosen.checked_limit(limit),
            parse_filter(filters),
            chosen.bm25 or self._bm25,
            settings.deadline,
            explain,
        )


def open(  # noqa: A001 - weft.open is the name people use
    path: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    sources: Mapping[str, Source] | None = None,
    **overrides: object,
) -> Weft:
    """Open the database in a folder, which is created when missing; ":memory:" keeps nothing.

    `overrides` are settings by name with `__` for the dot: `weft.open("db", embedding__provider="none")`.
    `sources` adds sources of your own by name, for recipes to use.
    """
    if settings is None:
        named = {key.replace("__", "."): value for key, value in overrides.items()}
        settings = load(overrides=named)
    elif overrides:
        raise InvalidInput("Give either settings or single overrides, not both")
    return Weft(path, settings, sources)


def _listed(values: Iterable[T], wanted: str) -> list[T]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{wanted}, not {type(values).__name__}; put a single one into a list: [value]")
    return list(values)


def _checked_id(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"An id must be a string, not {type(value).__name__}")
    if not is_unicode(value):
        raise InvalidInput("The id has a lone surrogate; it is not valid Unicode")
    return value


def _explicit(settings: Settings) -> bool:
    return any(
        key in settings.origins for key in ("embedding.provider", "embedding.model", "embedding.dimensions")
    )


def _spec(settings: Settings) -> EmbeddingSpec:
    embedding = settings.embedding
    return EmbeddingSpec(
        provider=embedding.provider,
        model=embedding.model,
        dimensions=embedding.dimensions,
        base_url=embedding.base_url,
        api_key_env=embedding.api_key_env,
        timeout=embedding.timeout,
        retries=embedding.retries,
        batch_size=embedding.batch,
        query_prefix=embedding.query_prefix or None,
        document_prefix=embedding.document_prefix or None,
    )
