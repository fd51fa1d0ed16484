"""What every adapter needs: the records of one collection, under ids of the framework, for one caller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from sennit.errors import InvalidInput, suggest
from sennit.filters import (
    BUILTIN_FIELDS,
    EVERYTHING,
    NOTHING,
    And,
    Equal,
    Exists,
    Filter,
    Not,
    Or,
    compared_fields,
    parse_filter,
)
from sennit.ranking.diversity import MMR
from sennit.recipes import Recipe, find_recipe
from sennit.records import Json, Record

if TYPE_CHECKING:
    from sennit.engine import Database, FilterLike
    from sennit.engine.search_request import SearchOptions
    from sennit.privacy import Caller
    from sennit.results import Hit, SearchResult

DETAILS_KEY: Final = "sennit"
"""The key of the metadata under which a retrieved document has what sennit knows about the hit."""

PAGE_RECORDS: Final = 1000


def check_names(given: Iterable[str], known: Iterable[str], right_names: Mapping[str, str]) -> None:
    """Raise InvalidInput for an argument that does not exist, with the right name of one that is called otherwise."""
    names = list(known)
    for name in given:
        if name in right_names:
            raise InvalidInput(f"There is no argument {name!r} here; it is called {right_names[name]!r}")
        if name not in names:
            raise InvalidInput(
                f"There is no argument {name!r}. {suggest(name, names)}Arguments: {', '.join(sorted(names))}"
            )


def check_options(given: Iterable[str], right_names: Mapping[str, str]) -> None:
    """Raise InvalidInput for what is no argument of a search, as `check_names` does."""
    from sennit.engine.search_request import SearchOptions

    known = [name for name in SearchOptions.__annotations__ if name not in right_names]
    check_names(given, known, right_names)


class FrameworkCollection:
    """One collection of a database. Its ids are its own: the same id in two collections means two records."""

    def __init__(self, db: Database, name: str, caller: Caller | None = None) -> None:
        self.db = db
        self.name = name
        self.caller = db.caller if caller is None else caller

    def make_record(
        self, own_id: str, text: str, metadata: Mapping[str, Any], vector: Sequence[float] | None = None
    ) -> Record:
        """Return a record of this collection. Without an id it gets one that follows from its content."""
        fields: dict[str, Any] = {
            "text": text,
            "metadata": metadata,
            "collection": self.name,
            "tenant": self.caller.tenant,
        }
        own_id = own_id or Record.from_content(fields).id
        return Record(id=self.record_id(own_id), vector=vector, **fields)

    def record_id(self, own_id: str) -> str:
        return f"{self.name}/{own_id}"

    def own_id(self, record: Record) -> str:
        return record.id.removeprefix(f"{self.name}/")

    def narrow(self, filters: FilterLike) -> Filter:
        """Return the filter of the records of this collection that match a filter."""
        condition = parse_filter(filters)
        own = Equal("collection", self.name)
        return own if condition == EVERYTHING else own & condition

    def add(self, records: Sequence[Record]) -> None:
        self.db.add(records, caller=self.caller)

    def get(self, own_ids: Iterable[str]) -> list[Record]:
        """Return the records that exist, in the order of their ids."""
        found = (self.db.get(self.record_id(one), caller=self.caller) for one in dict.fromkeys(own_ids))
        return [record for record in found if record is not None and record.collection == self.name]

    def records(self, filters: FilterLike = None) -> Iterator[Record]:
        """Yield the records that match a filter, in the order of their ids."""
        after: str | None = None
        while True:
            page = self.db.records(self.narrow(filters), limit=PAGE_RECORDS, after=after, caller=self.caller)
            yield from page.records
            after = page.next
            if after is None:
                return

    def count(self, filters: FilterLike = None) -> int:
        return self.db.count(self.narrow(filters), caller=self.caller)

    def remove(self, own_ids: Iterable[str]) -> int:
        return self.db.remove([self.record_id(one) for one in own_ids], caller=self.caller)

    def remove_where(self, filters: FilterLike = None) -> int:
        """Remove the records of this collection that match a filter; without one, all of them."""
        return self.db.remove(where=self.narrow(filters), caller=self.caller)

    def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchResult:
        """Search the collection, as its caller unless the options name another."""
        options.setdefault("caller", self.caller)
        options["filters"] = self.narrow(options.get("filters"))
        return self.db.search(query, **options)

    def forget_unknown_fields(self, condition: Filter) -> Filter:
        """Return the filter with comparisons of fields that no record has replaced by ones that never hold.

        sennit refuses such a filter with the nearest name. Frameworks expect that nothing matches.
        """
        unknown = {
            name
            for name in compared_fields(condition)
            if name not in BUILTIN_FIELDS and not self.db.count(Exists(name), caller=self.caller)
        }
        return _replace_fields(condition, unknown)


def _replace_fields(condition: Filter, unknown: set[str]) -> Filter:
    match condition:
        case And(parts):
            return And(tuple(_replace_fields(part, unknown) for part in parts))
        case Or(parts):
            return Or(tuple(_replace_fields(part, unknown) for part in parts))
        case Not(part):
            return Not(_replace_fields(part, unknown))
        case Exists():
            return condition
        case _:
            return NOTHING if condition.field in unknown else condition


def diversified(
    db: Database, recipe: str | Recipe | None, *, relevance_weight: float, depth: int, cosine: bool
) -> Recipe:
    """Return a recipe whose results are also unlike each other (maximal marginal relevance)."""
    chosen = (
        recipe if isinstance(recipe, Recipe) else find_recipe(recipe or db.settings.search.recipe, db.recipes)
    )
    stage = MMR(relevance_weight, max(1, depth), "cosine" if cosine else "jaccard")
    return replace(chosen, stages=(*chosen.stages, stage))


def describe_hit(hit: Hit, result: SearchResult) -> dict[str, Json]:
    """Return what sennit knows about a hit, for the metadata of a document."""
    details: dict[str, Json] = {
        "rank": hit.rank,
        "score": hit.score,
        "relevance": hit.relevance,
        "citation": hit.citation,
        "sources": list(hit.sources),
        "recipe": result.recipe,
    }
    if hit.explanation is not None:
        details["explanation"] = hit.explanation.to_dict()
    if result.degraded:
        details["degraded"] = [source.to_dict() for source in result.degraded]
    return details


def describe_record(hit: Hit) -> dict[str, Json]:
    """Return the metadata of a record for a framework that knows no other fields than text and metadata."""
    record = hit.record
    fields: dict[str, Json] = {
        "source": hit.citation,
        "title": record.title,
        "kind": record.kind,
        "url": record.url,
        "timestamp": None if record.timestamp is None else record.timestamp.isoformat(),
    }
    return {**{name: value for name, value in fields.items() if value}, **record.metadata}
