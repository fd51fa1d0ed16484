"""The request of a search: one checked value, which every interface builds and the engine takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from datetime import datetime
from typing import Final, TypedDict

from sennit.embedding.given import check_vector
from sennit.errors import InvalidInput, suggest
from sennit.filters import EVERYTHING, Filter, In, parse_filter
from sennit.privacy import Caller
from sennit.recipes import Recipe
from sennit.records import as_utc
from sennit.search_parameters import (
    CLIENT_ID,
    COLLECTIONS,
    EDITOR,
    INCLUDE,
    KEYWORDS,
    LANGUAGE,
    LIMIT,
    LOOK_BACK,
    MIN_RELEVANCE,
    NEIGHBOURS,
    PROJECT,
    QUERY,
    RECENCY,
    RECIPE,
    SESSION_ID,
)
from sennit.settings import Recency
from sennit.sources.base import NO_REWRITE, QueryRewrite

FilterLike = Filter | Mapping[str, object] | str | None


class SearchOptions(TypedDict, total=False):
    """The optional arguments of a search: the fields of a SearchRequest, and `collection` for `collections`."""

    recipe: str | Recipe | None
    limit: int | None
    filters: FilterLike
    collection: str | Sequence[str]
    collections: Sequence[str]
    caller: Caller | None
    project: str | None
    keywords: Sequence[str] | None
    include: Sequence[str]
    neighbours: int
    look_back: float | bool
    editor: str | None
    language: str | None
    transform: bool | None
    min_relevance: float
    recency: Recency | None
    now: datetime | None
    rewrite: QueryRewrite
    vector: Sequence[float] | None
    session_id: str
    client_id: str
    explain: bool


_OPTIONAL_TEXTS: Final = (EDITOR, LANGUAGE, SESSION_ID, CLIENT_ID, PROJECT)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A query and how to search for it. Whatever is out of bounds is refused when the request is made."""

    query: str
    """A question or a few words, of at most 100,000 characters."""
    _: KW_ONLY
    recipe: str | Recipe | None = None
    """How to search; None for the recipe of the settings."""
    limit: int | None = None
    """The maximum number of results, from 1 to 1,000 or to what the recipe allows; None for the recipe's own."""
    filters: FilterLike = None
    """A condition on the records. Each search parses it, so "last 3 days" counts from that search."""
    collections: Sequence[str] = ()
    """Search only these collections; empty for all that the recipe searches."""
    collection: InitVar[str | Sequence[str]] = ()
    """One name or several: another way to give `collections`, never beside it."""
    caller: Caller | None = None
    """Who searches; None for the default caller of the database."""
    project: str | None = None
    """Search only this indexed folder, by its name or its path; None or `all` for every one."""
    keywords: Sequence[str] | None = None
    """Exact texts for the sources that search for them; None extracts them from the query."""
    include: Sequence[str] = ()
    """Collections that the recipe searches on request."""
    neighbours: int = 0
    """How many parts before and after a result come with it, up to 50."""
    look_back: float | bool = False
    """A window in hours; True takes it from the settings."""
    editor: str | None = None
    """The code in the user's editor, of at most 500,000 characters; its keywords are added to the query."""
    language: str | None = None
    """The programming language of that code; None detects it."""
    transform: bool | None = None
    """Whether the vector search gets keywords in place of the query; None as the recipe says."""
    min_relevance: float = 0.0
    """Leave out hits with a lower relevance, from 0 to 1."""
    recency: Recency | None = None
    """How much age counts, from 0 to 1, or `auto`; None for what the recipe says."""
    now: datetime | None = None
    """The time from which ages and periods such as "yesterday" count; None for the time of the search."""
    rewrite: QueryRewrite = NO_REWRITE
    """What some sources search for in place of the query; given, neither editor nor transform changes it."""
    vector: Sequence[float] | None = None
    """The vector of the query, for a database whose vectors come with its records."""
    session_id: str = ""
    """The session of the user, for feedback and experiments, of at most 100 characters."""
    client_id: str = ""
    """The browser or program that searches, for feedback, of at most 100 characters."""
    explain: bool = False
    """Whether the result has a trace."""

    def __post_init__(self, collection: str | Sequence[str]) -> None:
        if collection != ():
            if self.collections != ():
                raise InvalidInput("Give collection or collections, not both; each takes the other's names")
            names = (collection,) if isinstance(collection, str) else collection
            object.__setattr__(self, "collections", names)
        QUERY.check(self.query)
        if isinstance(self.recipe, str):
            RECIPE.check(self.recipe)
        if self.limit is not None:
            object.__setattr__(self, "limit", LIMIT.check(self.limit))
        object.__setattr__(self, "neighbours", NEIGHBOURS.check(self.neighbours))
        if self.look_back is not False:
            LOOK_BACK.check(self.look_back)
        if self.min_relevance != 0.0:
            MIN_RELEVANCE.check(self.min_relevance)
        if self.recency is not None:
            object.__setattr__(self, "recency", RECENCY.check(self.recency))
        if self.now is not None:
            object.__setattr__(self, "now", as_utc(self.now))
        if self.collections != ():
            object.__setattr__(self, "collections", COLLECTIONS.check(self.collections))
        if self.include != ():
            object.__setattr__(self, "include", INCLUDE.check(self.include))
        for text in _OPTIONAL_TEXTS:
            value = getattr(self, text.name)
            if value is not None and value != "":
                text.check(value)
        if self.vector is not None:
            unit = check_vector(self.vector, "The vector of the query")
            object.__setattr__(self, "vector", tuple(unit.tolist()))
        if self.keywords is not None:
            object.__setattr__(self, "keywords", KEYWORDS.check(self.keywords))

    def build_filter(self) -> Filter:
        """Return what the records must match: the filter, parsed now, and the collections."""
        return build_filter(self.filters, self.collections)


def build_filter(filters: FilterLike, collections: Sequence[str]) -> Filter:
    """Return the filter of records in these collections (empty: all) that match a filter, which is parsed now."""
    condition = parse_filter(filters)
    if not collections:
        return condition
    in_collections = In("collection", tuple(collections))
    return in_collections if condition == EVERYTHING else in_collections & condition


def check_options(options: Mapping[str, object], known: type, method: str) -> None:
    """Refuse an argument that a method does not have. `known` is the TypedDict of those that it has."""
    names = known.__annotations__
    for name in options:
        if name not in names:
            raise TypeError(
                f"{method}() has no argument {name!r}. {suggest(name, names)}Arguments: {', '.join(sorted(names))}"
            )


def as_request(query: str | SearchRequest, options: SearchOptions) -> SearchRequest:
    """Return the request that was given, or make it from the arguments of a search."""
    check_options(options, SearchOptions, "search")
    if not isinstance(query, SearchRequest):
        return SearchRequest(query, **options)
    if options:
        raise InvalidInput(
            f"The search has a SearchRequest and also {', '.join(sorted(options))}; put everything into the request: "
            "dataclasses.replace(request, limit=5)"
        )
    return query
