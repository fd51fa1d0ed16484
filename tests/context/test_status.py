"""The status message after a search or a grep."""

from __future__ import annotations

from pathlib import Path

import pytest

import sennit
from sennit.context.status import status_message
from sennit.folders.passages import GrepResult, Passage
from sennit.results import Hit, SearchResult


def found(*texts: str, milliseconds: float) -> SearchResult:
    hits = [Hit(sennit.Record(id=str(at), text=text), score=1.0, rank=at) for at, text in enumerate(texts, 1)]
    return SearchResult("q", "default", tuple(hits), milliseconds=milliseconds)


def grepped(*texts: str, files: int, milliseconds: float) -> GrepResult:
    passages = (Passage("a", Path("a"), 1, 1, text, (1,), ("a",), 1) for text in texts)
    return GrepResult(tuple(passages), files, len(texts), milliseconds=milliseconds)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (found("a" * 1200, "b" * 34, milliseconds=4.4), "1,234 characters, 2 chunks found, 4 ms"),
        (found("a", milliseconds=0.4), "1 character, 1 chunk found, <1 ms"),
        (found(milliseconds=1234.5), "0 characters, 0 chunks found, 1,234 ms"),
        (grepped("a" * 1234, files=3, milliseconds=12), "1,234 characters, 3 files matched, 12 ms"),
        (grepped("a", files=1, milliseconds=12), "1 character, 1 file matched, 12 ms"),
    ],
)
def test_the_status_counts_characters_and_chunks_or_files(
    answer: SearchResult | GrepResult, said: str
) -> None:
    assert status_message(answer) == said


def test_neighbours_count_as_returned_text() -> None:
    parts = [sennit.Record(id=str(at), text="x" * 10, parent="p", position=at) for at in range(3)]
    with sennit.open(":memory:") as db:
        db.add(parts)
        result = db.search("x" * 10, recipe="keyword", limit=1, neighbours=1)
    assert status_message(result).startswith(f"{len(result[0].passage)} characters, 1 chunk found")
    assert len(result[0].passage) > 10


def test_a_search_counts_chunks_and_a_grep_counts_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The ferry leaves at noon.\n")
    (tmp_path / "b.txt").write_text("No ferry on Sunday.\n")
    with sennit.open(tmp_path / ".sennit") as db:
        db.index(tmp_path)
        assert status_message(db.search("ferry", recipe="keyword")).startswith(
            "44 characters, 2 chunks found, "
        )
        assert status_message(db.files.grep(["ferry"])).startswith("44 characters, 2 files matched, ")
