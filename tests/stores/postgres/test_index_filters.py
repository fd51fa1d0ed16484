"""Filters as SQL: what Postgres selects is what the filter means, for every value and every name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scripts.servers.postgres import PostgresServer

from sennit.analysis import query_terms
from sennit.filters import BUILTIN_FIELDS, EVERYTHING, Filter, Like, canonical_name, field, flatten, matches
from sennit.records import Record
from sennit.settings.servers import PostgresSettings
from sennit.stores.contract import BM25, Document, KeywordQuery, Model, ScoredKeys, ServerSearch
from sennit.stores.servers.postgres.indexes import PostgresIndexes
from sennit.testing.records import HOSTILE

pytestmark = pytest.mark.servers

MODEL = Model(1, "test", "test", "test", 2, "active")
QUERY = np.array([1.0, 0.0], np.float32)
ALL = 10_000

_texts = st.one_of(
    st.sampled_from(
        ["a", "b", "A", "ß", "ss", "É", "é", "10", "9", "", "*", "%", "_", "a_b", "\\", *HOSTILE[:9]]
    ),
    st.text(st.characters(codec="utf-8"), max_size=4),
)
_numbers = st.one_of(
    st.sampled_from([0, 1, 1.0, -1, 2**53 + 1, float(2**53), 2**63, 1e300, 0.1, -0.0, 36028797018963969]),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
)
_scalars = st.one_of(_texts, _numbers, st.booleans())
_keys = st.sampled_from(["k", "a.b", "id", "k\\x", "\0", "'; --", "ключ"])
_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_scalars, st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_keys, inner, max_size=2)),
    max_leaves=4,
)
_names = _texts.filter(bool)
_records = st.builds(
    Record,
    id=_names,
    text=st.just("x"),
    kind=_texts,
    title=_texts,
    path=st.none() | _names,
    parent=st.none() | _names,
    position=st.none() | st.integers(0, 3),
    timestamp=st.none() | st.sampled_from([0, 1, "2026-03-01T00:00:00.000001Z"]),
    tenant=st.sampled_from(["", "acme", "b\0"]),
    metadata=st.dictionaries(_keys, _values, max_size=3),
)
_fields = st.one_of(
    st.sampled_from([name for name in BUILTIN_FIELDS if name not in ("timestamp", "position")]),
    _keys.map(lambda key: canonical_name(("metadata", key))),
    st.tuples(_keys, _keys).map(lambda keys: canonical_name(("metadata", *keys))),
)
_patterns = st.text(st.sampled_from("ab*?%_Ééß"), max_size=5)
_conditions = st.one_of(
    st.builds(lambda name, value: field(name) == value, _fields, _scalars),
    st.builds(lambda name, values: field(name).is_in(values), _fields, st.lists(_scalars, max_size=20)),
    st.builds(lambda name, value: field(name) >= value, _fields, st.one_of(_texts, _numbers)),
    st.builds(lambda name, value: field(name) < value, _fields, st.one_of(_texts, _numbers)),
    st.builds(lambda name, low, high: field(name).between(low, high), _fields, _texts, _texts),
    st.builds(lambda name: field(name).exists(), _fields),
    st.builds(
        lambda name, pattern, folds: field(name).like(pattern, ignore_case=folds),
        _fields,
        _patterns,
        st.booleans(),
    ),
    st.builds(lambda value: field("position") == value, _numbers),
    st.builds(lambda value: field("position") >= value, _numbers),
    st.builds(lambda value: field("timestamp") < value, st.sampled_from([0.5, 1, 2e9])),
    st.builds(lambda value: field("timestamp").is_in([value]), st.sampled_from([0, 1])),
)
_filters = st.recursive(
    _conditions,
    lambda parts: st.one_of(
        st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
        st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
        parts.map(lambda part: ~part),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def indexes(server: PostgresServer) -> Iterator[PostgresIndexes]:
    found = PostgresIndexes(PostgresSettings(), "filters", url=server.dsn())
    yield found
    for one in (found.vector().find(MODEL), found.keyword().find(None)):
        assert one is not None
        one.reset()
    found.close()


def fill(indexes: PostgresIndexes, records: Sequence[Record]) -> None:
    """Put records into the vector index, under the numbers from 1 on."""
    index = indexes.vector().find(MODEL)
    assert index is not None
    documents = [Document(key, record, QUERY) for key, record in enumerate(records, 1)]
    gone = list(range(len(records) + 1, 40))
    index.apply(documents, gone, 40)


def selected(indexes: PostgresIndexes, where: Filter) -> list[int]:
    index = indexes.vector().find(MODEL)
    assert index is not None
    (answer,) = indexes.search_many([ServerSearch(index, QUERY, ALL, where)])
    assert isinstance(answer, ScoredKeys), answer
    return sorted(answer.keys.tolist())


def has_pattern(where: Filter) -> bool:
    if isinstance(where, Like):
        return True
    nested = getattr(where, "parts", None) or ((where.part,) if hasattr(where, "part") else ())
    return any(map(has_pattern, nested))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(records=st.lists(_records, min_size=1, max_size=8), where=_filters)
@example(records=[Record(id="a", text="x", title="É")], where=field("title").like("é", ignore_case=True))
@example(records=[Record(id="a", text="x", title="a\0b")], where=~field("title").like("a?b"))
def test_a_filter_selects_what_it_means(
    indexes: PostgresIndexes, records: list[Record], where: Filter
) -> None:
    fill(indexes, records)
    expected = [key for key, record in enumerate(records, 1) if matches(where, record)]
    found = selected(indexes, where)
    if has_pattern(where):
        # A text that SQL cannot decide passes, and the snapshot decides.
        assert set(expected) <= set(found)
        undecided = {
            key
            for key, record in enumerate(records, 1)
            for _, value in flatten(record)
            if isinstance(value, str) and (not value.isascii() or "\0" in value or "\x01" in value)
        }
        assert set(found) - set(expected) <= undecided
    else:
        assert found == expected


def _everywhere(text: str) -> Record:
    """A record with a text in every field."""
    name = text[:200]
    values: dict[str, Any] = dict.fromkeys(
        ("id", "collection", "kind", "title", "path", "url", "parent", "scope"), name
    )
    return Record(
        **values,
        text=text,
        tenant=name.replace("\x1f", ""),
        metadata={name: text, "list": [text, {name: [text]}]},
    )


def test_every_naughty_string_is_stored_and_found_in_every_place(
    indexes: PostgresIndexes, shared_data: Path
) -> None:
    listed: list[str] = json.loads((shared_data / "security/blns/blns.json").read_text())
    strings = [*filter(None, listed), *HOSTILE]
    records = [_everywhere(text) for text in strings]
    vector, keyword = indexes.vector().find(MODEL), indexes.keyword().find(None)
    assert vector is not None
    assert keyword is not None
    documents = [Document(key, record, QUERY) for key, record in enumerate(records, 1)]
    for index in (vector, keyword):
        index.apply(documents, [], len(documents))
    searches, expected = [], []
    for record in records:
        for name, value in (
            ("id", record.id),
            ("title", record.title),
            ("list", record.text),
            ("tenant", record.tenant),
        ):
            if value:
                searches.append(ServerSearch(vector, QUERY, ALL, field(name) == value))
                expected.append(searches[-1].where)
        for where in (
            field(canonical_name(("metadata", record.id))) == record.text,
            field(canonical_name(("metadata", "list", record.id))) >= record.text,
            field("title").between(record.title, record.title),
            field("url").is_in([record.id]),
        ):
            searches.append(ServerSearch(vector, QUERY, ALL, where))
            expected.append(where)
    for start in range(0, len(searches), 400):
        part = slice(start, start + 400)
        for where, answer in zip(expected[part], indexes.search_many(searches[part]), strict=True):
            assert isinstance(answer, ScoredKeys), answer
            wanted = [key for key, one in enumerate(records, 1) if matches(where, one)]
            assert wanted
            assert sorted(answer.keys.tolist()) == wanted, where
    for text in strings:
        query = KeywordQuery([(one.hash, 1.0) for one in query_terms(text)], BM25(), text)
        (answer,) = indexes.search_many([ServerSearch(keyword, query, ALL, EVERYTHING)])
        assert isinstance(answer, ScoredKeys)
        scores = keyword.score(query, documents) if query.terms else np.full(len(documents), np.nan)
        found = dict(zip(answer.keys.tolist(), answer.scores.tolist(), strict=True))
        assert found == {key: score for key, score in enumerate(scores.tolist(), 1) if not np.isnan(score)}
    vector.reset()
