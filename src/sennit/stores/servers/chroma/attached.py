"""A Chroma collection that somebody else owns and fills, searched as it is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import Condition, Equal, In, Range, Scalar
from sennit.filters.expression import type_rank
from sennit.settings.attached import OWN_ID, OWN_TEXT, OWN_VECTOR, AttachedMapping
from sennit.stores.attached import (
    SAMPLED_ROWS,
    AttachedRow,
    AttachedSearch,
    check_dimensions,
    check_sample,
    cosines,
    note_metric,
    rank_rows,
    reads_as_number,
    reordered,
)
from sennit.stores.contract import KeywordQuery
from sennit.stores.findings import Finding
from sennit.stores.servers.chroma.client import ChromaClient, CollectionMissing
from sennit.stores.servers.chroma.metadata import EXACT_NUMBERS, Groups, Where
from sennit.stores.servers.supersets import Translated, translate

COSINE: Final = "cosine"

DEFAULT_SPACE: Final = "l2"
"""The distance of a collection that names none."""


MAX_DOCUMENTS_READ: Final = 1000
"""Documents read in one request."""


class _Sample(NamedTuple):
    """What some documents say about the collection."""

    rows: list[AttachedRow]
    lengths: list[float]
    """Of their vectors."""
    dimensions: int
    """0 for an empty collection."""
    numbers: frozenset[str]
    """The columns that have numbers, and nothing else."""


class AttachedDocuments:
    """A collection. `_id` is the id of a document, `_document` its text, and `_vector` its vector."""

    def __init__(self, client: ChromaClient, mapping: AttachedMapping) -> None:
        self._client = client
        self._mapping = mapping
        self._sample: _Sample | None = None

    def search(self, search: AttachedSearch) -> list[AttachedRow]:
        """The nearest documents."""
        query = search.query
        if isinstance(query, KeywordQuery):
            raise SourceError(f"attached.{self._mapping.name}: Chroma does not rank by words")
        collection = self._get()
        sample = self._read_sample(collection)
        check_dimensions(self._mapping, sample.dimensions, len(query))
        where = translate(search.where, _MetadataFilters(self._mapping, sample.numbers))
        if where is False:
            return []
        wanted = None if where is True else where
        found = self._client.call(
            lambda _: collection.query(
                query_embeddings=[query],
                n_results=search.limit,
                where=wanted,
                include=[*self._included(), "distances", "embeddings"],
            )
        )
        read = {name: found[name] and found[name][0] for name in ("ids", "metadatas", "documents")}
        rows = self._score(query, read, found["embeddings"][0], found["distances"][0], _space(collection))
        if len(rows) < search.limit:
            # The approximate index may end early; the collection as a whole does not.
            rows = self._score_all(query, collection, wanted)
        return rank_rows(rows)[: search.limit]

    def get(self, ids: Sequence[str]) -> list[AttachedRow]:
        """The documents with these ids."""
        if not ids:
            return []
        collection, key = self._get(), self._mapping.id
        choice: dict[str, Any] = {"ids": list(ids)}
        if key != OWN_ID:
            numbers = [int(one) for one in ids if re.fullmatch(r"-?[0-9]{1,15}", one)]
            listed: list[Where] = [{key: {"$in": list(ids)}}]
            listed += [{key: {"$in": numbers}}] if numbers else []
            choice = {"where": listed[0] if len(listed) == 1 else {"$or": listed}}
        found = self._client.call(lambda _: collection.get(include=self._included(), **choice))
        return [AttachedRow(values) for values in self._values(found)]

    def check(self, dimensions: int = 0) -> list[Finding]:
        """Whether the collection has the fields and vectors of this size, and by which distance it is searched."""
        name = f"attached.{self._mapping.name}"
        try:
            if self._mapping.vector != OWN_VECTOR:
                raise SourceError(
                    f"{name}: a collection of Chroma has one vector for each document, so vector must be {OWN_VECTOR!r}, "
                    f"not {self._mapping.vector!r}"
                )
            collection = self._get()
            self._sample = None
            sample = self._read_sample(collection)
            check_dimensions(self._mapping, sample.dimensions, dimensions)
        except SourceError as error:
            return [Finding(name, "problem", str(error))]
        found = check_sample(self._mapping, sample.rows, "collection")
        space = _space(collection)
        if space != COSINE:
            found.append(note_metric(self._mapping, space, reordered(sample.lengths)))
        if all(one.level != "problem" for one in found):
            message = (
                f"the collection {self._mapping.source} can be searched: {sample.dimensions:,} dimensions"
            )
            found.insert(0, Finding(name, "ok", message))
        return found

    def _get(self) -> Any:
        source = self._mapping.source
        try:
            return self._client.call(lambda client: client.get_collection(source, embedding_function=None))
        except CollectionMissing:
            raise SourceError(f"attached.{self._mapping.name}: Chroma has no collection {source}") from None

    def _read_sample(self, collection: Any) -> _Sample:
        """Some documents, which are read once: Chroma has no schema."""
        if self._sample is None:
            include = [*self._included(), "embeddings"]
            read = self._client.call(lambda _: collection.get(limit=SAMPLED_ROWS, include=include))
            rows = [AttachedRow(values) for values in self._values(read)]
            sample = _Sample(
                rows,
                [float(np.linalg.norm(one)) for one in read["embeddings"]],
                len(read["embeddings"][0]) if rows else 0,
                frozenset(column for column in self._mapping.columns if _has_numbers(column, rows)),
            )
            if not rows:
                return sample
            self._sample = sample
        return self._sample

    def _score_all(
        self, query: NDArray[np.float32], collection: Any, where: Where | None
    ) -> list[AttachedRow]:
        include = [*self._included(), "embeddings"]
        every = self._client.call(lambda _: collection.get(where=where, include=[]))["ids"]
        rows: list[AttachedRow] = []
        for start in range(0, len(every), MAX_DOCUMENTS_READ):
            ids = every[start : start + MAX_DOCUMENTS_READ]
            read = self._client.call(lambda _, ids=ids: collection.get(ids=ids, include=include))  # type: ignore[misc]
            rows += self._score(query, read, read["embeddings"])
        return rows

    def _score(
        self,
        query: NDArray[np.float32],
        found: Mapping[str, Any],
        vectors: Sequence[Any],
        distances: Sequence[float] = (),
        space: str = "",
    ) -> list[AttachedRow]:
        scores = [1 - one for one in distances] if space == COSINE else cosines(query, vectors).tolist()
        return [
            AttachedRow(values, float(score))
            for values, score in zip(self._values(found), scores, strict=True)
        ]

    def _included(self) -> list[str]:
        return ["metadatas", *(["documents"] if OWN_TEXT in self._mapping.columns else [])]

    def _values(self, found: Mapping[str, Any]) -> list[dict[str, Any]]:
        ids = found["ids"]
        metadatas = found["metadatas"] or [None] * len(ids)
        documents = found["documents"] or [None] * len(ids)
        return [
            {
                column: one
                if column == OWN_ID
                else text
                if column == OWN_TEXT
                else (fields or {}).get(column)
                for column in self._mapping.columns
            }
            for one, fields, text in zip(ids, metadatas, documents, strict=True)
        ]


class _MetadataFilters(Groups):
    """Conditions on the metadata as their owner wrote them. A value in a list counts as the field's, as in a record."""

    def __init__(self, mapping: AttachedMapping, numbers: frozenset[str]) -> None:
        """`numbers` are the columns that have numbers only, which Chroma can order."""
        self._mapping = mapping
        self._numbers = numbers

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[Where] | None:  # noqa: ARG002
        """One condition; None for what is no metadata, and where the values may mean more than what is compared."""
        key = self._mapping.column(condition.field)
        if key in (OWN_ID, OWN_TEXT):
            return None
        match condition:
            case Range(_, low, high) if not isinstance(low, str) and not isinstance(high, str):
                return self._range(key, low, high) if key in self._numbers else None
            case Equal(_, value) if condition.field != "timestamp":
                return self._one_of(key, (value,), condition.field)
            case In(_, values) if condition.field != "timestamp":
                return self._one_of(key, values, condition.field)
        return None

    def none_of(self, part: Where) -> None:
        """A document without a value means another thing to Chroma, so a negation is the engine's."""

    def _one_of(self, key: str, values: Sequence[Scalar], field: str) -> Translated[Where] | None:
        found: list[Where] = []
        for value in values:
            if type_rank(value) == 1 and not abs(float(value)) < EXACT_NUMBERS:
                return None
            if field not in self._mapping.metadata and type_rank(value) == 2 and reads_as_number(str(value)):
                return None
            found += [{key: {"$eq": value}}, {key: {"$contains": value}}]
        return self.any_of(found) if found else False

    def _range(self, key: str, low: float | None, high: float | None) -> Where | None:
        """Bounds as whole numbers around the real ones: Chroma compares a whole number with the whole part of a bound."""
        if any(bound is not None and not abs(bound) < EXACT_NUMBERS for bound in (low, high)):
            return None
        bounds: list[Where] = []
        if low is not None:
            bounds.append({key: {"$gte": math.floor(low)}})
        if high is not None:
            bounds.append({key: {"$lte": math.ceil(high)}})
        return bounds[0] if len(bounds) == 1 else self.all_of(bounds)


def _space(collection: Any) -> str:
    """The distance of a collection, by its configuration or by the metadata of older versions."""
    configured = getattr(collection, "configuration_json", None) or {}
    for kind in ("hnsw", "spann"):
        if configured.get(kind):
            return str(configured[kind].get("space") or DEFAULT_SPACE)
    return str((collection.metadata or {}).get("hnsw:space", DEFAULT_SPACE))


def _has_numbers(column: str, rows: Sequence[AttachedRow]) -> bool:
    values = [row.values[column] for row in rows if row.values[column] is not None]
    return bool(values) and all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
