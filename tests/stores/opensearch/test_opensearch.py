"""OpenSearch itself: filters against the oracle, hostile text everywhere, rebuilds, overload and lost shards."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from scripts.servers.opensearch import OpenSearchCluster

import sennit
from sennit.analysis import query_terms, terms_in
from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Equal, Filter, In, Like, Not, Range, field, flatten, matches
from sennit.records import Record
from sennit.stores.contract import BM25, KeywordQuery, ScoredKeys, ServerSearch
from sennit.stores.servers.opensearch.indexes import KeywordIndex

from ..naughty_kit import assert_survives
from .conftest import Targets

pytestmark = pytest.mark.servers

LONG = "long " * 400


@pytest.fixture
def db(targets: Targets, tmp_path: Path) -> Iterator[sennit.Database]:
    with sennit.open(tmp_path / "notes", settings=targets.settings()) as opened:
        yield opened


def keyword_index(db: sennit.Database) -> KeywordIndex:
    found = db.backend.servers["opensearch"].keyword().find(None)  # type: ignore[attr-defined]
    assert isinstance(found, KeywordIndex)
    return found


def ids_on_server(db: sennit.Database, *filters: Filter) -> list[list[str]]:
    """What the server finds with each filter, before anything is checked here."""
    index = keyword_index(db)
    query = KeywordQuery([(term.hash, 1.0) for term in query_terms("common")], BM25(), "common")
    found: list[list[str]] = []
    for start in range(0, len(filters), 50):
        searches = [ServerSearch(index, query, 5000, where) for where in filters[start : start + 50]]
        for answer in index.server.search_many(searches):
            assert isinstance(answer, ScoredKeys), answer
            with db.store.snapshot() as snapshot:
                found.append(sorted(name.decode() for name in snapshot.ids(answer.keys)))
    return found


def test_the_server_tells_which_terms_of_a_query_each_record_has(db: sennit.Database) -> None:
    texts = [
        ("Łódź", "naïve cafés, HTTPServer and snake_case"),
        ("common", "the common e-mail of joe@example.org"),
        ("", "猫が好き common 1,000"),
    ]
    db.add([Record(id=str(at), title=title, text=text) for at, (title, text) in enumerate(texts)])
    db.admin.flush()
    terms = query_terms("common lodz cafe server snakecase email 猫が 1000 missing")
    query = KeywordQuery([(term.hash, 1.0) for term in terms], BM25())
    with db.store.snapshot() as snapshot:
        found, _ = db.backend.keyword.search(snapshot, query, 10)
        coverage = db.backend.keyword.coverage(snapshot, query, found)
        records = snapshot.records(found.tolist())
    assert len(found) == len(texts)
    has = terms_in([records[key].embedding_text for key in found.tolist()], {term.hash for term in terms})
    assert coverage.tolist() == pytest.approx([len(one) / len(terms) for one in has])


def test_filters_mean_on_the_server_what_they_mean_here(db: sennit.Database) -> None:
    values: list[Any] = [
        1,
        1.0,
        -1,
        2**53,
        2**53 + 1,
        1.5,
        -0.0,
        1e300,
        True,
        False,
        "1",
        "",
        "a",
        "é",
        "東",
        LONG,
    ]
    values += [["a", 2], [], {"b": "x"}, "A*b", "back\\slash", "\0", "\U0010ffff"]
    records = [
        Record(
            id=f"r{n}",
            text="common",
            metadata={"v": value},
            position=n,
            timestamp=datetime.fromtimestamp(1000.0 + n, UTC),
        )
        for n, value in enumerate(values)
    ]
    records.append(Record(id="none", text="common"))
    db.add(records)
    db.admin.flush()
    scalars = [value for value in values if isinstance(value, str | int | float)]
    conditions: list[Filter] = [Equal("v", value) for value in scalars]
    conditions += [Range("v", low, None) for low in scalars if not isinstance(low, bool)]
    conditions += [
        Range("v", None, high, include_high=False) for high in scalars if not isinstance(high, bool)
    ]
    conditions += [Like("v", pattern) for pattern in ("a*", "?", "A\\*b", "back\\\\*", "*", "lon*g*")]
    conditions += [Like("v", "a*", ignore_case=True), In("v", (1, "a", True)), field("v").exists()]
    conditions += [field("v.b") == "x", Range("position", 3, 7), Range("timestamp", 1002.0, 1005.0)]
    conditions += [Equal("timestamp", 1003.0), field("timestamp").exists()]
    wheres = [
        where
        for condition in conditions
        for where in (condition, Not(condition), Not(Not(condition)) & field("v").exists())
    ]
    inexact = 0
    for where, found in zip(wheres, ids_on_server(db, *wheres), strict=True):
        expected = {record.id for record in records if matches(where, record)}
        assert expected <= set(found), where
        inexact += set(found) != expected
    # Only order and patterns of long text, and patterns that ignore case, are not exact.
    assert inexact < len(conditions) * 3 // 2


def test_hostile_text_goes_through_every_field_filter_and_identifier(
    db: sennit.Database, naughty_strings: list[str]
) -> None:
    records = []
    for at, text in enumerate(naughty_strings):
        for place in ("text", "title", "kind", "path", "url", "parent", "collection", "id"):
            with contextlib.suppress(sennit.SennitError):
                values: dict[str, Any] = {"id": f"{place}-{at}", "text": "common", place: text}
                records.append(Record(**values, metadata={"any": text, "list": [text]}))
    unique = list({record.full_id: record for record in records}.values())
    db.add([replace_text(record) for record in unique])
    db.admin.flush()
    wheres = [
        Equal(name, text) for text in naughty_strings for name in ("title", "kind", "path", "any", "list")
    ]
    holding: dict[tuple[str, object], list[str]] = {}
    for record in unique:
        for pair in flatten(record):
            holding.setdefault(pair, []).append(record.full_id)
    for where, found in zip(wheres, ids_on_server(db, *wheres), strict=True):
        assert found == sorted(holding.get((where.field, where.value), [])), where
    for text in naughty_strings[::20]:
        assert not db.search(text[:5000] or "x", limit=3).degraded


def test_every_naughty_string_is_a_filter_of_vectors(db: sennit.Database, naughty_strings: list[str]) -> None:
    assert_survives(db, naughty_strings, "vector")


def replace_text(record: Record) -> Record:
    """The record with a word by which all can be asked for."""
    return dataclasses.replace(record, text=f"{record.text} common")


def test_a_reset_puts_a_new_index_behind_the_alias(db: sennit.Database) -> None:
    db.add([Record(id="a", text="common")])
    db.admin.flush()
    index = keyword_index(db)
    before = index._indexes()
    assert index.applied() > 0
    index.reset()
    assert index.applied() == 0
    assert len(before) == len(index._indexes()) == 1
    assert before != index._indexes()
    db.admin.flush()
    assert index.applied() > 0
    assert ids_on_server(db, EVERYTHING) == [["a"]]


def test_an_index_that_somebody_deleted_is_degraded_and_then_built_again(
    db: sennit.Database, cluster: OpenSearchCluster
) -> None:
    db.add([Record(id="a", text="common")])
    db.admin.flush()
    for name in keyword_index(db)._indexes():
        httpx.delete(f"{cluster.urls[0]}/{name}", timeout=60)
    found = db.search("common", recipe="keyword")
    assert [one.source for one in found.degraded] == ["keyword"]
    db.add([Record(id="b", text="common")])
    db.admin.flush()
    found = db.search("common", recipe="keyword")
    assert not found.degraded
    assert {hit.id for hit in found} == {"a", "b"}


def test_a_document_that_the_server_refuses_is_named(db: sennit.Database) -> None:
    db.add([Record(id="a", text="common")])
    db.admin.flush()
    index = keyword_index(db)
    with pytest.raises(SourceError, match="the document 77 was refused"):
        index._write(iter([b'{"index":{"_id":"77"}}\n{"unknown":1}\n']))


def test_the_check_says_what_the_cluster_is(db: sennit.Database) -> None:
    db.add([Record(id="a", text="common")])
    db.admin.flush()
    findings = db.backend.servers["opensearch"].check()
    assert {one.level for one in findings} <= {"ok", "note"}
    assert any("3 nodes" in one.message for one in findings)
