"""A Qdrant collection that somebody else owns and fills, searched as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from qdrant_client import models

from sennit.errors import SourceError
from sennit.filters import Condition, Equal, In, Range, Scalar
from sennit.filters.expression import type_rank
from sennit.settings.attached import OWN_ID, OWN_VECTOR, AttachedMapping
from sennit.settings.servers import QdrantSettings
from sennit.stores.attached import (
    SAMPLED_ROWS,
    AttachedRow,
    AttachedSearch,
    check_dimensions,
    check_sample,
    cosines,
    is_uuid,
    note_metric,
    rank_rows,
    reads_as_number,
    reordered,
)
from sennit.stores.contract import KeywordQuery
from sennit.stores.findings import Finding
from sennit.stores.servers.qdrant.nodes import CollectionMissing, QdrantNodes
from sennit.stores.servers.qdrant.payload import EXACT_NUMBERS, Filters, QdrantCondition, in_range
from sennit.stores.servers.supersets import Translated

MAX_POINT_NUMBER: Final = (1 << 64) - 1

MAX_YEAR_SECONDS: Final = 253_402_300_799
"""The last second of the year 9999, the latest that a text of ISO 8601 can say."""

_PATH: Final = re.compile(r'"[^"]*"|[^.\[\]"]+')
"""One step of a path of the payload: a name, in quotation marks where it has a dot."""


class _Shape(NamedTuple):
    """What the vectors of the collection are."""

    dimensions: int
    distance: models.Distance


class AttachedPoints:
    """A collection with vectors. `_id` is the id of a point, and `_vector` the vector without a name."""

    def __init__(self, nodes: QdrantNodes, settings: QdrantSettings, mapping: AttachedMapping) -> None:
        self._nodes = nodes
        self._settings = settings
        self._mapping = mapping
        self._using = None if mapping.vector == OWN_VECTOR else mapping.vector
        self._known: _Shape | None = None

    def search(self, search: AttachedSearch) -> list[AttachedRow]:
        """The nearest points."""
        query = search.query
        if isinstance(query, KeywordQuery):
            raise SourceError(f"attached.{self._mapping.name}: Qdrant does not rank by words")
        shape = self._shape()
        check_dimensions(self._mapping, shape.dimensions, len(query))
        where = _PayloadFilters(self._mapping).translate(search.where)
        points = self._nearest(query, search.limit, where, shape, exact=self._settings.exact)
        if len(points) < search.limit and not self._settings.exact:
            # The approximate index may end early; comparing every vector does not.
            points = self._nearest(query, search.limit, where, shape, exact=True)
        scores: Sequence[float] = [point.score for point in points]
        if shape.distance != models.Distance.COSINE:
            scores = cosines(query, [self._vector_of(point.vector) for point in points]).tolist()
        return rank_rows(
            [AttachedRow(self._values(point), score) for point, score in zip(points, scores, strict=True)]
        )

    def get(self, ids: Sequence[str]) -> list[AttachedRow]:
        """The points with these ids."""
        numbers = [int(one) for one in ids if re.fullmatch(r"[0-9]{1,20}", one)]
        if self._mapping.id == OWN_ID:
            wanted = [one for one in numbers if one <= MAX_POINT_NUMBER] + [
                one for one in ids if is_uuid(one)
            ]
            return [AttachedRow(self._values(point)) for point in self._retrieve(wanted)] if wanted else []
        key = self._mapping.id
        tests: list[models.Condition] = []
        if ids:
            tests.append(models.FieldCondition(key=key, match=models.MatchAny(any=list(ids))))
        whole = [one for one in numbers if one < EXACT_NUMBERS]
        if whole:
            tests.append(models.FieldCondition(key=key, match=models.MatchAny(any=whole)))
        return [AttachedRow(self._values(point)) for point in self._scroll(tests)] if tests else []

    def check(self, dimensions: int = 0) -> list[Finding]:
        """Whether the collection has the vector and the fields, and by which distance it is searched."""
        name = f"attached.{self._mapping.name}"
        self._known = None
        try:
            shape = self._shape()
            check_dimensions(self._mapping, shape.dimensions, dimensions)
            sample = self._sample()
        except SourceError as error:
            return [Finding(name, "problem", str(error))]
        rows = [AttachedRow(self._values(point)) for point in sample]
        found = check_sample(self._mapping, rows, "collection")
        if shape.distance != models.Distance.COSINE:
            vectors = [self._vector_of(point.vector) for point in sample]
            lengths = [float(np.linalg.norm(one)) for one in vectors if one is not None]
            found.append(note_metric(self._mapping, shape.distance.value, reordered(lengths)))
        if all(one.level != "problem" for one in found):
            message = (
                f"the collection {self._mapping.source} can be searched: {shape.dimensions:,} dimensions"
            )
            found.insert(0, Finding(name, "ok", message))
        return found

    # Requests.

    def _nearest(
        self,
        query: NDArray[np.float32],
        limit: int,
        where: models.Filter | None,
        shape: _Shape,
        *,
        exact: bool,
    ) -> list[models.ScoredPoint]:
        answer = self._nodes.call(
            lambda client: client.query_points(
                self._mapping.source,
                query=query.tolist(),
                using=self._using,
                limit=limit,
                query_filter=where,
                with_payload=self._included(),
                with_vectors=shape.distance != models.Distance.COSINE and self._vectors_included(),
                search_params=models.SearchParams(hnsw_ef=max(limit, self._settings.hnsw_ef), exact=exact),
            )
        )
        points: list[models.ScoredPoint] = answer.points
        return points

    def _retrieve(self, ids: Sequence[int | str]) -> list[models.Record]:
        return self._nodes.call(
            lambda client: client.retrieve(self._mapping.source, ids, with_payload=self._included())
        )

    def _scroll(self, tests: Sequence[models.Condition]) -> Iterator[models.Record]:
        offset: Any = None
        while True:
            points, offset = self._nodes.call(
                lambda client, offset=offset: client.scroll(  # type: ignore[misc]
                    self._mapping.source,
                    scroll_filter=models.Filter(should=list(tests)),
                    limit=1000,
                    offset=offset,
                    with_payload=self._included(),
                )
            )
            yield from points
            if offset is None:
                return

    def _sample(self) -> list[models.Record]:
        points: list[models.Record]
        points, _ = self._nodes.call(
            lambda client: client.scroll(
                self._mapping.source,
                limit=SAMPLED_ROWS,
                with_payload=self._included(),
                with_vectors=self._vectors_included(),
            )
        )
        return points

    def _included(self) -> models.PayloadSelectorInclude | bool:
        names = [column for column in self._mapping.columns if column != OWN_ID]
        return models.PayloadSelectorInclude(include=names) if names else False

    def _vectors_included(self) -> bool | list[str]:
        return True if self._using is None else [self._using]

    def _shape(self) -> _Shape:
        """The size and the distance of the vector, which never change while the collection stands."""
        if self._known is not None:
            return self._known
        source, name = self._mapping.source, f"attached.{self._mapping.name}"
        try:
            info = self._nodes.call(lambda client: client.get_collection(source))
        except CollectionMissing:
            raise SourceError(f"{name}: Qdrant has no collection {source}") from None
        vectors = info.config.params.vectors
        if isinstance(vectors, models.VectorParams):
            vectors = {OWN_VECTOR: vectors}
        found = (vectors or {}).get(self._mapping.vector)
        if found is None:
            raise SourceError(
                f"{name}: the collection {source} has no vector {self._mapping.vector}; it has "
                f"{', '.join(vectors or ()) or 'none'} ({OWN_VECTOR} is the one without a name)"
            )
        if found.multivector_config is not None:
            raise SourceError(
                f"{name}: {self._mapping.vector} of {source} has several vectors for each point, which cannot be searched"
            )
        self._known = _Shape(found.size, found.distance)
        return self._known

    # Values.

    def _values(self, point: models.Record | models.ScoredPoint) -> dict[str, Any]:
        payload = point.payload or {}
        return {
            column: point.id if column == OWN_ID else _value_at(payload, column)
            for column in self._mapping.columns
        }

    def _vector_of(self, vector: Any) -> Any:
        return vector.get(self._using) if isinstance(vector, dict) else vector


class _PayloadFilters(Filters):
    """Conditions on the payload as its owner wrote it. A value in a list counts as the field's, as in a record."""

    def __init__(self, mapping: AttachedMapping) -> None:
        self._mapping = mapping

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[QdrantCondition] | None:  # noqa: ARG002
        """One condition; None where the values of the payload may mean more than what is compared."""
        key = self._mapping.column(condition.field)
        if condition.field == "timestamp":
            return self._time(condition, key)
        match condition:
            case Equal(_, value):
                return self._one_of(key, (value,), condition.field)
            case In(_, values):
                return self._one_of(key, values, condition.field)
            case Range():
                return in_range(key, condition)
        return None

    def _one_of(self, key: str, values: Sequence[Scalar], field: str) -> Translated[QdrantCondition] | None:
        found: list[QdrantCondition] = []
        texts: list[str] = []
        for value in values:
            if type_rank(value) == 2:
                if field not in self._mapping.metadata and reads_as_number(str(value)):
                    return None
                texts.append(str(value))
            elif type_rank(value) == 0:
                found.append(models.FieldCondition(key=key, match=models.MatchValue(value=bool(value))))
            else:
                number = in_range(key, Range(field, float(value), float(value)))
                if number is None:
                    return None
                found.append(number)
        if texts:
            found.append(models.FieldCondition(key=key, match=models.MatchAny(any=texts)))
        return False if not found else found[0] if len(found) == 1 else self.any_of(found)

    def _time(self, condition: Condition, key: str) -> QdrantCondition | None:
        """A period, in a payload that has seconds or a text of ISO 8601. The engine compares the bounds exactly."""
        if not isinstance(condition, Range):
            return None
        low, high = condition.low, condition.high
        if isinstance(low, str) or isinstance(high, str):
            return None
        seconds = in_range(key, Range(condition.field, low, high))
        if seconds is None or any(
            bound is not None and not 0 <= bound < MAX_YEAR_SECONDS for bound in (low, high)
        ):
            return None
        moments = models.FieldCondition(
            key=key,
            range=models.DatetimeRange(
                gte=None if low is None else datetime.fromtimestamp(int(low), UTC),
                lte=None if high is None else datetime.fromtimestamp(int(high) + 1, UTC),
            ),
        )
        return self.any_of([seconds, moments])


def _value_at(payload: Mapping[str, Any], path: str) -> Any:
    """The value at a path of the payload, which a server of this kind writes with dots."""
    value: Any = payload
    for step in _PATH.findall(path):
        value = value.get(step.strip('"')) if isinstance(value, Mapping) else None
    return value
