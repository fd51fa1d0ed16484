"""Hits and search results: sequences, citations, JSON."""

from __future__ import annotations

import json

import pytest

import sennit
from sennit import Record
from sennit.results import Hit, SearchResult, cite_record
from sennit.results.hits import make_hit


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "r1"),
        ({"path": "notes/a.md"}, "notes/a.md"),
        ({"path": "notes/a.md", "lines": (3, 9)}, "notes/a.md:3-9"),
        ({"path": "notes/a.md", "lines": (3, 3)}, "notes/a.md:3"),
        ({"url": "https://example.org/x"}, "https://example.org/x"),
        ({"path": "a.md", "url": "https://example.org/x"}, "a.md"),
        ({"lines": (1, 2)}, "r1"),
        ({"metadata": {"path": "b.md", "file_path": "c.md"}, "lines": (1, 2)}, "b.md:1-2"),
        ({"metadata": {"file_path": "c.md"}, "url": "https://example.org/x"}, "c.md"),
        ({"path": "a.md", "metadata": {"path": "b.md"}}, "a.md"),
        ({"metadata": {"path": ["b.md"], "file_path": ""}}, "r1"),
    ],
)
def test_citation_is_path_with_lines_url_or_id(fields: dict[str, object], expected: str) -> None:
    assert cite_record(Record.from_dict({"id": "r1", "text": "words", **fields})) == expected


def test_a_result_is_a_sequence_of_hits() -> None:
    hits = tuple(Hit(Record(id=name, text=name), 1.0, rank) for rank, name in enumerate("abc", 1))
    result = SearchResult("question", "default", hits)
    assert len(result) == 3
    assert result[0].id == "a"
    assert result[-1].text == "c"
    assert [hit.id for hit in result[1:]] == ["b", "c"]
    assert hits[1] in result
    assert [hit.rank for hit in result] == [1, 2, 3]


def test_result_converts_to_json_with_all_fields() -> None:
    record = Record(
        id="a",
        text="harbour",
        title="Port",
        kind="note",
        path="a.md",
        lines=(1, 2),
        metadata={"n": [1, None]},
    )
    with sennit.open(":memory:") as db:
        db.add([record])
        result = db.search("harbour", explain=True)
        document = json.loads(json.dumps(result.to_dict()))
    (hit,) = document["hits"]
    assert hit["rank"] == 1
    assert hit["citation"] == "a.md:1-2"
    assert hit["metadata"] == {"n": [1, None]}
    assert {name: hit[name] for name in record.to_dict()} == json.loads(record.to_json())
    assert hit["explanation"]["score"] == hit["score"]
    assert document["degraded"] == []
    assert document["milliseconds"] > 0
    assert result[0].collection == "default"
    assert result[0].title == "Port"
    assert result[0].metadata == {"n": [1, None]}


def test_a_hit_of_a_search_is_a_hit_like_any_other() -> None:
    record = Record(id="a", text="vines")
    made = make_hit(record, 0.5, 2, ("keyword",), "a.md", "main@1a2b3c4d", 0.25, 7)
    expected = Hit(
        record, 0.5, 2, ("keyword",), (), location="a.md", revision="main@1a2b3c4d", relevance=0.25, key=7
    )
    assert type(made) is Hit
    assert made == expected
    assert (made.key, made.trace) == (7, None)
    with pytest.raises(AttributeError):
        made.score = 1.0  # type: ignore[misc]
