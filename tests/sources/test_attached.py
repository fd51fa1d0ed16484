"""Attached collections: rows of somebody else's table in the same ranking, with the caller's audience applied."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sennit
from sennit.analysis import count_terms
from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.errors import InvalidInput, SettingsError, SourceError
from sennit.filters import EVERYTHING, Filter, parse_filter
from sennit.settings import load_settings
from sennit.settings.attached import AttachedMapping, read_mapping
from sennit.stores import open as opening_module
from sennit.stores.attached import AttachedRow, AttachedSearch, narrow, to_record
from sennit.stores.contract import KeywordQuery
from sennit.stores.findings import Finding
from sennit.stores.open import Opening

PAGES = {
    "server": "postgres",
    "source": "doc_embeddings",
    "id": "id",
    "text": "content",
    "title": "section_title",
    "url": "page_url",
    "parent": "page_name",
    "vector": "embedding",
    "keyword": "content_tsvector",
    "time": "written",
    "sensitivity": "level",
    "metadata": {"page_name": "page_name", "lang": "language"},
}


class Table:
    """A table in a list, searched by counting words and by cosine. It ignores filters, as a server may."""

    def __init__(self, mapping: AttachedMapping, rows: list[dict[str, Any]]) -> None:
        self.mapping, self.rows = mapping, rows
        self.filters: list[Filter] = []
        self.limits: list[int] = []
        self.answers = threading.Event()
        self.answers.set()
        self.is_down = False

    def search(self, search: AttachedSearch) -> list[AttachedRow]:
        self.answers.wait(60)
        if self.is_down:
            raise SourceError("connection refused")
        self.filters.append(search.where)
        self.limits.append(search.limit)
        score = self._count if isinstance(search.query, KeywordQuery) else self._cosine
        found = [AttachedRow(row, score(search.query, row)) for row in self.rows]
        return sorted((one for one in found if one.score > 0), key=lambda one: -one.score)[: search.limit]

    def get(self, ids: Sequence[str]) -> list[AttachedRow]:
        return [AttachedRow(row) for row in self.rows if str(row[self.mapping.id]) in ids]

    def check(self, dimensions: int = 0) -> list[Finding]:
        return [Finding(self.mapping.name, "ok", f"the table answers, for {dimensions} dimensions")]

    def _count(self, query: Any, row: dict[str, Any]) -> float:
        counts, _ = count_terms(str(row[self.mapping.text]))
        return float(sum(counts.get(term, 0) for term, _ in query.terms))

    def _cosine(self, query: Any, row: dict[str, Any]) -> float:
        return float(np.dot(query, row[self.mapping.vector]))


class Tables:
    """A server with tables."""

    def __init__(self, tables: dict[str, Table], contents: dict[str, list[dict[str, Any]]]) -> None:
        self.tables, self._contents = tables, contents

    def attach(self, mapping: AttachedMapping) -> Table:
        return self.tables.setdefault(mapping.name, Table(mapping, self._contents[mapping.name]))

    def check(self) -> list[Finding]:
        return []

    def close(self) -> None:
        """Nothing is open."""


@cache
def embed(text: str) -> Any:
    embedder = create_embedder(EmbeddingSpec())
    assert embedder is not None
    return embedder.embed_documents([text])[0]


def page(number: int, text: str, **other: Any) -> dict[str, Any]:
    return {
        "id": number,
        "content": text,
        "section_title": f"Section {number}",
        "page_name": "Guide",
        "page_url": "https://example.org/guide",
        "level": "normal",
        "written": datetime(2026, 1, number, tzinfo=UTC),
        "language": "en",
        "embedding": embed(text),
    } | other


Open = Callable[..., sennit.Database]


@pytest.fixture
def tables() -> dict[str, Table]:
    return {}


@pytest.fixture
def open_with(tmp_path: Path, tables: dict[str, Table], monkeypatch: pytest.MonkeyPatch) -> Open:
    def open_it(mappings: dict[str, Any], contents: dict[str, Any], **overrides: Any) -> sennit.Database:
        def make(_opening: Opening) -> Tables:
            return Tables(tables, contents)

        for name in ("postgres", "qdrant"):
            monkeypatch.setitem(opening_module.SERVERS, name, make)
        settings = load_settings(
            start=tmp_path, overrides={key.replace("__", "."): value for key, value in overrides.items()}
        )
        object.__setattr__(settings, "attached", mappings)
        return sennit.open(tmp_path / "db", settings=settings)

    return open_it


GUIDE = [
    page(1, "how to open a river gate by hand"),
    page(2, "the colours of the evening sky"),
    page(3, "how to close a river gate", level="private"),
]


def test_rows_are_ranked_with_records_and_keep_their_fields(
    open_with: Open, tables: dict[str, Table]
) -> None:
    with open_with({"docs": PAGES}, {"docs": GUIDE}) as db:
        db.add([sennit.Record(id="own", text="a river gate in the north", collection="docs")])
        result = db.search("river gate", limit=5)
        assert {"docs/1", "own"} <= {hit.id for hit in result}
        hit = next(hit for hit in result if hit.id == "docs/1")
        assert hit.record.collection == "docs"
        assert hit.record.title == "Section 1"
        assert hit.record.url == "https://example.org/guide"
        assert hit.record.timestamp == datetime(2026, 1, 1, tzinfo=UTC)
        assert hit.record.metadata["lang"] == "en"
        assert set(hit.sources) == {"keyword", "vector"}
        assert not result.degraded
        assert tables["docs"].rows == GUIDE
        assert db.status().records == 1


def test_nobody_sees_a_row_above_their_clearance(open_with: Open) -> None:
    with open_with({"docs": PAGES}, {"docs": [*GUIDE, page(4, "a river gate", level=None)]}) as db:
        seen = {hit.id for hit in db.search("river gate", limit=10)}
        assert "docs/3" not in seen
        assert "docs/4" not in seen
        all_of_it = sennit.Caller(everything=True)
        everything = {hit.id for hit in db.search("river gate", limit=10, caller=all_of_it)}
        assert {"docs/1", "docs/3", "docs/4"} <= everything


def test_a_filter_is_applied_and_the_limit_is_filled(open_with: Open, tables: dict[str, Table]) -> None:
    rows = [page(1 + n % 28, "river gate", id=n, language="de" if n % 20 else "en") for n in range(400)]
    with open_with({"docs": PAGES}, {"docs": rows}) as db:
        result = db.search("river gate", filters='lang = "en" and timestamp >= 2026-01-01', limit=10)
        assert len(result) == 10
        assert all(hit.record.metadata["lang"] == "en" for hit in result)
        assert len(set(tables["docs"].limits)) > 1
        assert any("lang" in str(where) for where in tables["docs"].filters)


def test_a_table_that_is_down_or_slow_is_named_and_the_rest_answers(
    open_with: Open, tables: dict[str, Table]
) -> None:
    with open_with({"docs": PAGES}, {"docs": GUIDE}, search__deadline=1.0) as db:
        db.add([sennit.Record(id="own", text="a river gate", collection="docs")])
        tables["docs"].is_down = True
        result = db.search("river gate")
        assert [hit.id for hit in result] == ["own"]
        assert {one.reason for one in result.degraded} == {"docs: connection refused"}
        tables["docs"].is_down = False
        tables["docs"].answers.clear()
        result = db.search("river gate")
        assert [hit.id for hit in result] == ["own"]
        assert {one.reason for one in result.degraded} == {"docs: no answer within 0.9 s"}
        tables["docs"].answers.set()
        assert not db.search("river gate").degraded


def test_why_explains_a_row_in_the_result_and_one_behind_the_limit(open_with: Open) -> None:
    with open_with({"docs": PAGES}, {"docs": GUIDE}) as db:
        found = db.why("river gate", "docs/1", limit=1)
        assert found.kept
        other = db.why("river gate", "docs/2", limit=1, filters='lang = "en"')
        assert not other.kept
        assert other.stage == "limit"


def test_texts_may_be_in_another_collection_than_the_vectors(open_with: Open) -> None:
    segments = {
        "server": "postgres",
        "id": "id",
        "text": "content",
        "keyword": "tsv",
        "collection": "history",
        "sensitivity": "level",
    }
    vectors = {"server": "qdrant", "id": "segment", "vector": "v", "records_of": "segments"}
    rows = [
        {"id": 7, "content": "the river rose", "level": "normal"},
        {"id": 8, "content": "the river is secret", "level": "private"},
    ]
    points = [{"segment": "7", "v": embed("the river rose")}, {"segment": "8", "v": embed("secret")}]
    tables = {"segments": segments, "segment_vectors": vectors}
    with open_with(tables, {"segments": rows, "segment_vectors": points}) as db:
        (hit,) = db.search("river", recipe="memory")
        assert hit.id == "segments/7"
        assert set(hit.sources) == {"keyword", "vector"}


def test_a_recipe_that_does_not_search_the_collection_does_not_ask(
    open_with: Open, tables: dict[str, Table]
) -> None:
    with open_with({"docs": PAGES}, {"docs": GUIDE}) as db:
        db.search("river gate", recipe="memory")
        assert tables["docs"].limits == []
        assert db.search("river gate", collections=["docs"]).hits


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({**PAGES, "id": ""}, "id must be a text"),
        ({**PAGES, "colour": "x"}, "there is no setting 'colour'"),
        ({**PAGES, "server": "mysql"}, "server must be one of"),
        ({key: value for key, value in PAGES.items() if key != "id"}, "id is missing"),
        ({key: value for key, value in PAGES.items() if key != "text"}, "text is missing"),
        ({**PAGES, "values": {"title": "x"}}, "values may have"),
        ({"server": "postgres", "id": "i", "text": "t"}, "keyword or vector is missing"),
        ({**PAGES, "metadata": "x"}, "metadata must be a table"),
    ],
)
def test_a_mapping_that_cannot_be_used_says_why(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        read_mapping("docs", table)


def test_a_found_file_may_not_attach_anything(tmp_path: Path) -> None:
    text = '[attached.docs]\nserver = "postgres"\nid = "id"\ntext = "t"\nkeyword = "k"\n'
    (tmp_path / "sennit.toml").write_text(text, encoding="utf-8")
    env = {"XDG_CONFIG_HOME": str(tmp_path / "none")}
    with pytest.raises(SettingsError, match=r"attached\.docs"):
        load_settings(start=tmp_path, env=env)
    named = load_settings(tmp_path / "sennit.toml", env=env)
    assert named.attached["docs"]["server"] == "postgres"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('collection = "docs"', EVERYTHING),
        ('collection = "other"', None),
        ('scope = "public" and lang = "en"', parse_filter('lang = "en"')),
        ('scope = "me" and lang = "en"', None),
        ('scope = "me" or lang = "en"', parse_filter('lang = "en"')),
        ('not lang = "en"', EVERYTHING),
        ('unmapped = "x" and lang = "en"', parse_filter('lang = "en"')),
        ('unmapped = "x" or lang = "en"', EVERYTHING),
        ("timestamp >= 2026-01-01", parse_filter("timestamp >= 2026-01-01")),
    ],
)
def test_a_server_gets_only_what_lets_no_fewer_rows_through(text: str, expected: Filter | None) -> None:
    assert narrow(parse_filter(text), read_mapping("docs", PAGES)) == expected


def test_a_row_with_hostile_values_is_a_record_or_left_out() -> None:
    mapping = read_mapping("docs", PAGES)
    odd = {
        "id": "a/b",
        "content": b"\xff",
        "section_title": None,
        "written": "no time",
        "language": float("nan"),
    }
    record = to_record(mapping, AttachedRow(odd), "private")
    assert (record.id, record.sensitivity, record.timestamp) == ("docs/a/b", "private", None)
    with pytest.raises(InvalidInput):
        to_record(mapping, AttachedRow({"id": None}), "private")
