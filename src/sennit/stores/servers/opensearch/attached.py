"""An OpenSearch or Elasticsearch index that somebody else owns and fills, searched as it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import Condition, Equal, Filter, In, Range, Scalar
from sennit.filters.expression import type_rank
from sennit.settings.attached import OWN_ID, AttachedMapping
from sennit.stores.attached import (
    AttachedRow,
    AttachedSearch,
    PartialRows,
    check_dimensions,
    note_metric,
    rank_rows,
)
from sennit.stores.contract import KeywordQuery
from sennit.stores.findings import Finding
from sennit.stores.servers.opensearch.client import ClusterClient, Json, RequestRefused, missing_shards
from sennit.stores.servers.opensearch.dialect import COSINE_SPACES, DialectOf
from sennit.stores.servers.opensearch.filters import ALL, MAX_DEPTH, NONE, BoolQueries, Query
from sennit.stores.servers.supersets import Translated, translate

TEXT_TYPES: Final = ("text", "match_only_text", "annotated_text", "search_as_you_type")
"""The types of fields that words are searched in."""
WHOLE_TYPES: Final = ("byte", "short", "integer", "long", "unsigned_long")
NUMBER_TYPES: Final = (*WHOLE_TYPES, "double", "float")
TIME_TYPES: Final = ("date", "date_nanos")

EXACT_NUMBERS: Final = 1 << 53

MAX_WORDS: Final = 256
"""Words of a query that are searched; the server refuses more than 1,024 clauses."""

MAX_ROWS: Final = 10_000
"""The most rows of one answer, unless the owner of the index allows more."""

MAX_ID_BYTES: Final = 512
"""No id of a document is longer."""

MAX_TEXT: Final = 8191
"""The longest text that a field of whole values is sure to have: Lucene takes 32,766 bytes."""


class AttachedIndex:
    """An index, or an alias of several, with an analysed text, with vectors, or with both. `_id` is a document's id."""

    def __init__(self, client: ClusterClient, dialect: DialectOf, mapping: AttachedMapping) -> None:
        self._client = client
        self._dialect = dialect
        self._mapping = mapping
        self._path = quote(mapping.source, safe="")
        self._known: Mapping[str, Json] = {}

    def search(self, search: AttachedSearch) -> list[AttachedRow]:
        """The best documents for words or for a vector."""
        where = self._where(search.where)
        if where == NONE:
            return []
        if isinstance(search.query, KeywordQuery):
            return self._search_words(search.query.text, search.limit, where)
        return self._search_vectors(search.query, search.limit, where)

    def get(self, ids: Sequence[str]) -> list[AttachedRow]:
        """The documents with these ids."""
        wanted = [one for one in ids if one and len(one.encode()) <= MAX_ID_BYTES]
        if not wanted:
            return []
        if self._mapping.id == OWN_ID:
            query: Query = {"ids": {"values": wanted}}
        else:
            field = self._whole_field(self._mapping.id)
            if field is None:
                query = {"match": {self._mapping.id: " ".join(wanted[:MAX_WORDS])}}
            elif self._field(self._mapping.id)["type"] in WHOLE_TYPES:
                numbers = [int(one) for one in wanted if one.lstrip("-").isdecimal() and len(one) < 19]
                query = {"terms": {field: numbers}} if numbers else NONE
            else:
                query = {"terms": {field: wanted}}
        return self._rows({"query": query, "size": MAX_ROWS})

    def check(self, dimensions: int = 0) -> list[Finding]:
        """Whether the index and its fields are there, and of types that can be searched."""
        name = f"attached.{self._mapping.name}"
        self._known = {}
        found: list[Finding] = []
        try:
            for column in self._mapping.columns:
                if column != OWN_ID:
                    self._field(column)
            if self._mapping.keyword:
                self._check_words()
            if self._mapping.vector:
                space = self._check_vectors(dimensions)
                if space not in COSINE_SPACES:
                    found.append(
                        note_metric(self._mapping, space, "each search compares every vector, which is slow")
                    )
        except SourceError as error:
            return [Finding(name, "problem", str(error))]
        return [Finding(name, "ok", f"the index {self._mapping.source} can be searched"), *found]

    # Words.

    def _search_words(self, text: str, limit: int, where: Query) -> list[AttachedRow]:
        words = " ".join(text.split()[:MAX_WORDS])
        if not words:
            return []
        self._check_words()
        asked: Json = {"must": [{"match": {self._mapping.keyword: {"query": words, "operator": "or"}}}]}
        if where != ALL:
            asked["filter"] = [where]
        rows = self._rows({"query": {"bool": asked}, "size": limit})
        # The engine wants scores above 0; a field may be boosted to nothing.
        return _like(rows, [row for row in rows if row.score > 0])

    def _check_words(self) -> None:
        found = self._field(self._mapping.keyword)["type"]
        if found not in TEXT_TYPES:
            raise SourceError(
                f"attached.{self._mapping.name}: the field {self._mapping.keyword} is of the type {found}; words are "
                "searched in a text"
            )

    # Vectors.

    def _search_vectors(self, query: NDArray[np.float32], limit: int, where: Query) -> list[AttachedRow]:
        dialect, field = self._dialect.get(), self._mapping.vector
        space = self._check_vectors(len(query))
        vector = query.tolist()
        if space in COSINE_SPACES:
            nearest = dialect.nearest(field, vector, limit, None if where == ALL else where)
            rows = self._rows({"query": nearest, "size": limit})
            if len(rows) >= limit or isinstance(rows, PartialRows):
                return _like(rows, rank_rows([row._replace(score=2 * row.score - 1) for row in rows]))
        # The graph is of another distance or may end early; comparing every vector does not.
        having = {"bool": {"filter": [{"exists": {"field": field}}, *([] if where == ALL else [where])]}}
        rows = self._rows({"query": dialect.by_cosine(field, vector, having), "size": limit})
        return _like(rows, rank_rows([row._replace(score=dialect.cosine_of(row.score)) for row in rows]))

    def _check_vectors(self, dimensions: int) -> str:
        """The distance of the vectors, which are of the query's size."""
        dialect = self._dialect.get()
        found = self._field(self._mapping.vector)
        if found["type"] != dialect.vector_type:
            raise SourceError(
                f"attached.{self._mapping.name}: the field {self._mapping.vector} is of the type {found['type']}, not "
                f"a {dialect.vector_type}"
            )
        check_dimensions(self._mapping, dialect.dimensions(found), dimensions)
        return dialect.space(found)

    # Filters.

    def _where(self, where: Filter) -> Query:
        found = translate(where, _FieldFilters(self), max_depth=MAX_DEPTH)
        return (ALL if found else NONE) if isinstance(found, bool) else found

    def compare(self, where: Condition) -> Translated[Query] | None:
        """A condition as a query; None where the values in the index may mean more than what is compared."""
        column = self._mapping.column(where.field)
        if column == OWN_ID:
            return None
        kind = self._field(column)["type"]
        if where.field == "timestamp":
            return _period(where, column, kind)
        field = self._whole_field(column)
        if field is None or (kind in NUMBER_TYPES and where.field not in self._mapping.metadata):
            return None
        match where:
            case Equal(_, value):
                return self._one_of(field, kind, (value,))
            case In(_, values):
                return self._one_of(field, kind, values)
            case Range(_, low, high) if kind in NUMBER_TYPES:
                return _number_range(field, low, high)
        return None

    def _one_of(self, field: str, kind: str, values: Sequence[Scalar]) -> Translated[Query] | None:
        """The field has one of these values. A value of another type than the field's may still be in a document."""
        if not values:
            return False
        rank = 1 if kind in NUMBER_TYPES else 0 if kind == "boolean" else 2
        if any(type_rank(value) != rank for value in values):
            return None
        if rank == 1 and not all(_is_exact(value, kind) for value in values):
            return None
        longest = self._longest(field)
        if rank == 2 and any(not value or len(str(value)) > longest for value in values):
            return None
        return {"terms": {field: list(values)}}

    # The index.

    def _field(self, name: str) -> Json:
        """The mapping of a field."""
        if not self._known:
            try:
                answer = self._client.get(f"/{self._path}/_mapping")
            except RequestRefused as error:
                if error.status != 404:
                    raise
                raise SourceError(
                    f"attached.{self._mapping.name}: there is no index {self._mapping.source}"
                ) from error
            known: dict[str, Json] = {}
            for index in answer.values():
                _collect_fields(index["mappings"].get("properties", {}), "", known)
            self._known = known
        found = self._known.get(name)
        if found is None:
            raise SourceError(
                f"attached.{self._mapping.name}: the index {self._mapping.source} has no field {name}; it has "
                f"{', '.join(sorted(self._known)) or 'none'}"
            )
        return found

    def _whole_field(self, name: str) -> str | None:
        """The field by which a value is compared as a whole: a text has one only where its owner made one."""
        found = self._field(name)
        if found["type"] in ("keyword", "boolean", *NUMBER_TYPES):
            return name
        for part, inner in found.get("fields", {}).items():
            if found["type"] in TEXT_TYPES and inner.get("type") == "keyword":
                return f"{name}.{part}"
        return None

    def _longest(self, field: str) -> int:
        """The longest text that a field has indexed."""
        found = self._known.get(field)
        if found is None:
            name, _, part = field.rpartition(".")
            found = self._known[name]["fields"][part]
        return int(found.get("ignore_above", MAX_TEXT))

    def _rows(self, body: Json) -> list[AttachedRow]:
        columns = [column for column in self._mapping.columns if column != OWN_ID]
        times = [column for column in columns if self._field(column)["type"] in TIME_TYPES]
        body = {
            **body,
            "_source": [column for column in columns if column not in times] or False,
            "fields": [{"field": column, "format": "epoch_millis"} for column in times],
            "track_total_hits": False,
        }
        found = self._client.request("POST", f"/{self._path}/_search", body)
        rows = [
            AttachedRow(self._values(hit, columns, times), float(hit["_score"] or 0.0))
            for hit in found["hits"]["hits"]
        ]
        problem = missing_shards(found)
        return PartialRows.of(rows, problem) if problem else rows

    def _values(self, hit: Json, columns: Sequence[str], times: Sequence[str]) -> dict[str, Any]:
        source = hit.get("_source", {})
        values = {column: _value_at(source, column) for column in columns}
        for column in times:
            (first, *_) = hit.get("fields", {}).get(column) or [None]
            values[column] = None if first is None else datetime.fromtimestamp(float(first) / 1000, UTC)
        return values | {OWN_ID: hit["_id"]}


class _FieldFilters(BoolQueries):
    """Conditions on the fields of an index as its owner mapped them."""

    def __init__(self, index: AttachedIndex) -> None:
        self._index = index

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[Query] | None:  # noqa: ARG002
        """One condition."""
        return self._index.compare(condition)


def _collect_fields(properties: Mapping[str, Json], prefix: str, known: dict[str, Json]) -> None:
    for name, one in properties.items():
        path = f"{prefix}{name}"
        known.setdefault(path, {"type": "object", **one})
        _collect_fields(one.get("properties", {}), f"{path}.", known)


def _period(where: Condition, column: str, kind: str) -> Query | None:
    """A period, in seconds or in the server's own milliseconds. The engine compares the bounds exactly."""
    if not isinstance(where, Range) or isinstance(where.low, str) or isinstance(where.high, str):
        return None
    if kind in NUMBER_TYPES:
        return _number_range(column, where.low, where.high)
    if kind not in TIME_TYPES:
        return None
    bounds: Json = {"format": "epoch_millis"}
    if where.low is not None:
        bounds["gte"] = math.floor(where.low * 1000)
    if where.high is not None:
        bounds["lte"] = math.ceil(where.high * 1000)
    return {"range": {column: bounds}}


def _number_range(field: str, low: Scalar | None, high: Scalar | None) -> Query | None:
    """A range whose bounds are whole numbers around the real ones, which every type of number compares alike."""
    bounds: Json = {}
    for name, bound, rounded in (("gte", low, math.floor), ("lte", high, math.ceil)):
        if bound is None:
            continue
        if type_rank(bound) != 1 or not abs(float(bound)) < EXACT_NUMBERS:
            return None
        bounds[name] = rounded(float(bound))
    return {"range": {field: bounds}}


def _is_exact(value: Scalar, kind: str) -> bool:
    """Whether a number is one that the field's type holds as it is."""
    number = float(value)
    if not abs(number) < EXACT_NUMBERS:
        return False
    return number.is_integer() if kind in WHOLE_TYPES else kind == "double"


def _value_at(document: Mapping[str, Any], path: str) -> Any:
    """The value of a field, whose path is written with dots, in objects or in one name."""
    if path in document:
        return document[path]
    for at in (at for at, sign in enumerate(path) if sign == "."):
        inner = document.get(path[:at])
        if isinstance(inner, Mapping):
            return _value_at(inner, path[at + 1 :])
    return None


def _like(answer: list[AttachedRow], rows: list[AttachedRow]) -> list[AttachedRow]:
    """Other rows for an answer, partial if it was."""
    return PartialRows.of(rows, answer.problem) if isinstance(answer, PartialRows) else rows
