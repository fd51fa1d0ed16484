"""Filters on Qdrant mean what they mean everywhere: the server never withholds a record that matches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from qdrant_client import QdrantClient, models
from scripts.servers.qdrant import QdrantCluster

from sennit.filters import EVERYTHING, NOTHING, Equal, Filter, Not, Range, canonical_name, field, matches
from sennit.records import Record
from sennit.stores.servers.qdrant.payload import QdrantFilters, index_schema, payload_of
from sennit.testing.records import HOSTILE, filters

pytestmark = pytest.mark.servers

COLLECTION = "filters"
BIG = (1 << 53) + 1
VALUES: tuple[Any, ...] = (
    *(0, 1, 2021, -7, 0.5, 1.0, 1e-300, 1e300, BIG, BIG - 1, -BIG, True, False, "", "a", "b", "1", "true"),
    *(["a", "b"], [1, "1", True], [[1, [2]], 3], [], None, {"deep": 1}, "x" * 300, "x" * 301, "\x02"),
    *HOSTILE,
)
RECORDS = [
    *(Record(id=f"v{n}", text="-", metadata={"year": value}) for n, value in enumerate(VALUES)),
    *(Record(id=f"k{n}", text="-", kind=str(value)) for n, value in enumerate(HOSTILE) if value),
    *(
        Record(id=f"m{n}", text="-", metadata={key: 1, "in": {key: "x"}})
        for n, key in enumerate(HOSTILE)
        if len(key) < 999
    ),
    Record(
        id="s", text="-", metadata={"source": {"system": "gmail"}, "tags": ["a"], "done": True, "share": 0.25}
    ),
    Record(id="t", text="-", metadata={"source": {"system": "files"}, "tags": ["a", "c"], "done": False}),
    Record(id="n", text="-", kind="note", timestamp="2026-01-05", tenant="t1"),  # type: ignore[arg-type]
]


@pytest.fixture(scope="module")
def client(qdrant: QdrantCluster) -> Iterator[QdrantClient]:
    client = QdrantClient(url=qdrant.urls[0], check_compatibility=False)
    client.create_collection(COLLECTION, vectors_config={})
    points = [
        models.PointStruct(id=at + 1, vector={}, payload=payload_of(record))
        for at, record in enumerate(RECORDS)
    ]
    client.upsert(COLLECTION, points)
    # Half of the fields have an index, so that both ways of the server are compared.
    for path in ("fields", "text.year", "number.year", "text.kind", "flag.done"):
        client.create_payload_index(COLLECTION, path, index_schema(path), wait=True)
    yield client
    client.delete_collection(COLLECTION)
    client.close()


def found(client: QdrantClient, where: Filter) -> set[str]:
    translated = QdrantFilters().translate(where)
    points, _ = client.scroll(COLLECTION, translated, limit=10_000, with_payload=False)
    return {RECORDS[int(point.id) - 1].id for point in points}


def expected(where: Filter) -> set[str]:
    return {record.id for record in RECORDS if matches(where, record)}


_scalars = st.sampled_from([value for value in VALUES if isinstance(value, (str, int, float))])
_numbers = st.one_of(st.integers(-3, 3), st.floats(-1e3, 1e3), st.sampled_from([0.5, 1e300, 2021]))
_small = st.one_of(
    _scalars.map(lambda value: field("year") == value),
    st.lists(_scalars, max_size=4).map(lambda values: field("year").is_in(values)),
    st.sampled_from(HOSTILE).map(lambda text: field("kind") == text),
    st.sampled_from(["year", "kind", "tags", "deep", "year.deep", "timestamp", "tenant"]).map(
        lambda name: field(name).exists()
    ),
    st.builds(lambda low, include: Range("year", low=low, include_low=include), _numbers, st.booleans()),
    st.builds(lambda low, high: Range("year", low=min(low, high), high=max(low, high)), _numbers, _numbers),
)
_filters = st.one_of(
    st.recursive(
        _small,
        lambda parts: st.one_of(
            st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
            parts.map(lambda part: ~part),
        ),
        max_leaves=5,
    ),
    filters,
)


@settings(max_examples=200, deadline=None)
@given(where=_filters)
def test_a_filter_withholds_no_record_that_matches(client: QdrantClient, where: Filter) -> None:
    assert found(client, where) >= expected(where)
    assert found(client, Not(where)) >= expected(Not(where))


@settings(max_examples=200, deadline=None)
@given(where=_small)
def test_what_qdrant_can_express_is_exact(client: QdrantClient, where: Filter) -> None:
    if any(abs(float(number)) >= 1 << 53 for number in _numbers_in(where)):
        assert found(client, where) >= expected(where)
    else:
        assert found(client, where) == expected(where)


def _numbers_in(where: Any) -> list[float]:
    values = [getattr(where, name, None) for name in ("value", "low", "high")] + list(
        getattr(where, "values", ())
    )
    return [value for value in values if isinstance(value, (int, float))]


def test_everything_and_nothing(client: QdrantClient) -> None:
    assert found(client, EVERYTHING) == {record.id for record in RECORDS}
    assert found(client, NOTHING) == set()
    assert found(client, Not(NOTHING)) == {record.id for record in RECORDS}


def test_the_patterns_of_a_negated_part_withhold_nothing(client: QdrantClient) -> None:
    where = ~(field("kind").like("n*") & (field("kind") == "note"))
    assert found(client, where) >= expected(where)


@pytest.mark.parametrize("name", ["a.b", 'quo"te', "[0]", "日本", "x" * 200])
def test_a_field_of_any_name_can_be_compared(client: QdrantClient, name: str) -> None:
    record = Record(id="odd", text="-", metadata={name: "here"})
    client.upsert(COLLECTION, [models.PointStruct(id=100_000, vector={}, payload=payload_of(record))])
    where = QdrantFilters().translate(Equal(canonical_name(("metadata", name)), "here"))
    points, _ = client.scroll(COLLECTION, where, limit=10)
    client.delete(COLLECTION, models.PointIdsList(points=[100_000]))
    assert [point.id for point in points] == [100_000]
