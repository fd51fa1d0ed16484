"""The output of tools for a model: complete, exact, and not controlled by retrieved text."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sennit.context.sanitize import one_line
from sennit.context.tool_output import (
    DATA_NOTICE,
    TokenBudget,
    ToolOutput,
    opening,
    render_explanation,
    render_memories,
    render_passages,
    render_results,
    render_texts,
)
from sennit.folders.passages import GrepResult, Passage
from sennit.hydration.tokenizer import estimate_tokens
from sennit.records import Record
from sennit.results import Degraded, Hit, SearchResult, SourceScore, Why


def result(*records: Record, degraded: tuple[Degraded, ...] = ()) -> SearchResult:
    hits = tuple(Hit(record, 1 / (60 + at), at, relevance=0.5) for at, record in enumerate(records, 1))
    return SearchResult("what?", "artifacts", hits, degraded)


def budget(max_tokens: int = 2000) -> TokenBudget:
    return TokenBudget(max_tokens, estimate_tokens)


def rendered(found: SearchResult, *collections: str, **options: Any) -> ToolOutput:
    return render_results(found, collections, "RRF score", budget(), **options)


CHUNK = Record(
    id="cellar/1",
    text="Wine rests in oak.",
    title="Cellar book",
    collection="artifact_chunks",
    parent="cellar",
    position=1,
    url="https://example.org/cellar",
    sensitivity="sensitive",
    metadata={"source_system": "mail", "artifact_type": "book"},
)


def test_a_result_has_every_field_of_the_contract() -> None:
    told = rendered(result(CHUNK), "artifacts", "artifact_chunks")
    assert told.text == (
        "Found 1 results (searched: artifact_chunks, artifacts):\n"
        "\n"
        "[1] RRF score: 0.016 (from: artifact_chunks)\n"
        "Type: chunk | ID: cellar/1\n"
        "Title: Cellar book\n"
        "Source: mail | Sensitivity: sensitive\n"
        'Snippet: "Wine rests in oak."\n'
        "Evidence: https://example.org/cellar\n"
    )
    assert told.notes == (DATA_NOTICE,)
    assert told.values["count"] == 1
    assert told.values["results"] == [
        {
            "number": 1,
            "relevance": 0.5,
            "score": 1 / 61,
            "collections": ["artifact_chunks"],
            "type": "chunk",
            "id": "cellar/1",
            "title": "Cellar book",
            "source_system": "mail",
            "sensitivity": "sensitive",
            "snippet": "Wine rests in oak.",
            "citation": "https://example.org/cellar",
            "url": "https://example.org/cellar",
            "project": "",
        }
    ]


def test_a_line_without_a_value_is_left_out_and_an_unknown_system_is_a_question_mark() -> None:
    plain = Record(id="a", text="x")
    unknown = Record(
        id="b", text="y", metadata={"artifact_type": "note", "source_url": "https://example.org/b"}
    )
    assert rendered(result(plain, unknown), "default").text == (
        "Found 2 results (searched: default):\n"
        "\n"
        "[1] RRF score: 0.016 (from: default)\n"
        "Type: artifact | ID: a\n"
        'Snippet: "x"\n'
        "\n"
        "[2] RRF score: 0.016 (from: default)\n"
        "Type: artifact | ID: b\n"
        "Source: ? | Sensitivity: normal\n"
        'Snippet: "y"\n'
        "Evidence: https://example.org/b\n"
    )


def test_a_record_found_in_several_collections_names_them_all() -> None:
    hit = Hit(CHUNK, 0.5, 1, sources=("vector:memory", "vector:artifact_chunks", "keyword:memory"))
    text = rendered(SearchResult("q", "artifacts", (hit,)), "memory").text
    assert "[1] RRF score: 0.500 (from: artifact_chunks, memory)\n" in text


def test_an_empty_result_says_so() -> None:
    assert rendered(result(), "artifacts").text == "No results found."
    assert render_texts(result(), (), budget()).text == "No results found."
    assert render_memories(result(), budget()).text == "No results found."


def test_a_missing_source_is_named_with_and_without_results() -> None:
    missing = (Degraded("vector", "no answer within 2 s"),)
    for found in (result(degraded=missing), result(CHUNK, degraded=missing)):
        told = rendered(found)
        assert "Missing from this answer: vector: no answer within 2 s" in told.notes
        assert told.values["degraded"] == [{"source": "vector", "reason": "no answer within 2 s"}]


def test_a_part_of_a_file_is_a_chunk_and_cited_by_path_and_lines_in_the_notes() -> None:
    file = Record(id="b", text="y", path="docs/a.md", lines=(3, 9))
    told = rendered(result(file))
    assert "Type: chunk | ID: b\n" in told.text
    assert told.notes == ("[1] docs/a.md:3-9", DATA_NOTICE)


def test_a_snippet_is_the_first_two_hundred_characters_on_one_line() -> None:
    long = Record(id="a", text="word \n" * 200)
    assert f'Snippet: "{("word " * 40)}…"\n' in rendered(result(long)).text
    assert opening("x" * 200) == "x" * 200
    assert opening("x" * 201) == "x" * 200 + "…"


def test_neighbours_are_joined_by_the_boundary_and_every_line_is_marked() -> None:
    before = Record(id="cellar/0", text="Clean\nbarrels.", parent="cellar", position=0)
    hit = Hit(CHUNK, 0.5, 1, neighbours=(before, CHUNK), relevance=0.5)
    found = SearchResult("q", "artifacts", (hit,))
    told = rendered(found, passages=True)
    assert told.notes == (
        "[1] with its neighbours:",
        "   | Clean",
        "   | barrels.",
        "   | [CHUNK BOUNDARY]",
        "   | Wine rests in oak.",
        DATA_NOTICE,
    )
    assert told.text == rendered(found).text


def test_results_that_only_are_the_nearest_are_marked_as_such() -> None:
    found = SearchResult("q", "artifacts", (Hit(CHUNK, 0.5, 1, relevance=0.01),))
    assert rendered(found).notes[0] == "Nothing fits the query; these are the nearest."


def test_texts_are_whole_until_the_budget_ends_and_the_cut_is_reported() -> None:
    records = [Record(id=name, text=f"{name} line\n" * 30) for name in "abc"]
    whole = render_texts(result(*records), ("default",), budget())
    assert not whole.values["truncated"]
    assert whole.text.count(" line") == 90
    cut = render_texts(result(*records), ("default",), budget(150))
    assert cut.text == (
        "Found 3 results.\n"
        "\n"
        "1. a · relevance 0.50\n"
        + "   | a line\n" * 30
        + "\n2. b · relevance 0.50\n"
        + "   | b line\n" * 14
        + "   | b line…\n"
        "\n"
        "Cut at max_tokens = 150; 1 more left out. Raise max_tokens, or narrow the query.\n"
        f"{DATA_NOTICE}"
    )
    assert (cut.values["truncated"], cut.values["count"]) == (True, 2)


@given(st.lists(st.text(st.sampled_from("ab \n")), max_size=5), st.integers(1, 60))
def test_what_fits_never_has_more_tokens_than_the_budget(texts: list[str], max_tokens: int) -> None:
    fitting = budget(max_tokens)
    kept = [fitting.fit(["head"], text) for text in texts]
    assert sum(estimate_tokens(text) for text in kept if text is not None) <= max_tokens
    assert fitting.truncated is (kept != texts)
    for text, part in zip(texts, kept, strict=True):
        assert part is None or part == text or text.startswith(part.removesuffix("…"))


def test_a_memory_has_its_whole_text_day_and_kind() -> None:
    memory = Record(
        id="m", text="Ana\ndrinks tea.", kind="preference", timestamp=datetime(2026, 3, 1, tzinfo=UTC)
    )
    told = render_memories(result(memory), budget())
    assert "1. relevance 0.50 · id: m · 2026-03-01 · preference\n   | Ana\n   | drinks tea.\n" in told.text
    assert told.values["memories"] == [
        {
            "id": "m",
            "relevance": 0.5,
            "score": 1 / 61,
            "text": "Ana\ndrinks tea.",
            "title": "",
            "kind": "preference",
            "timestamp": "2026-03-01T00:00:00+00:00",
        }
    ]


def test_passages_are_cited_marked_and_counted_and_limits_are_stated() -> None:
    passage = Passage("a.md", Path("a.md"), 4, 6, "one\ntwo\x1b\nthree", (5,), ("two",), 1)
    found = GrepResult((passage, passage), 1, 2, ("The search stopped.",), ("b.md: Permission denied",))
    told = render_passages(found, 1, budget())
    assert told.text == (
        "Found 2 matches in 1 file; showing 1 passage of 2. Matched lines are marked.\n"
        "\n"
        "1. a.md:4-6 · two\n"
        "  4  one\n"
        "> 5  two\n"
        "  6  three\n"
        "\n"
        "Not complete: The search stopped.\n"
        "Not read: b.md: Permission denied\n"
        f"{DATA_NOTICE}"
    )
    assert told.values["passages"] == [{**passage.to_dict(), "text": "one\ntwo\nthree"}]
    assert render_passages(GrepResult(), 5, budget()).text == "No results found."


def test_an_explanation_has_the_stage_the_number_and_every_source() -> None:
    source_scores = (SourceScore("keyword", 3, 1.5, 0.25), SourceScore("vector", None, None, 0.0))
    dropped = Why("m", False, "limit", "rank 6 of 9", 0.25, 0.5, None, source_scores)
    assert render_explanation(dropped).text == (
        "m is not in the answer. Decided by limit: rank 6 of 9\n"
        "It has 0.2500 and would need 0.5000.\n"
        "- keyword: rank 3, score 1.5000, adds 0.2500\n"
        "- vector: not found, adds 0.0000"
    )
    duplicate = Why("m", False, "dedupe", "a chunk of it was kept: m#0", 0.0331, 0.0328, None, ())
    assert render_explanation(duplicate).text == (
        "m is not in the answer. Decided by dedupe: a chunk of it was kept: m#0"
    )
    close = Why("m", False, "limit", "rank 6 of 9", 0.25001, 0.250012, None, ())
    assert "It has 0.250010 and would need 0.250012." in render_explanation(close).text
    tied = Why("m", False, "limit", "rank 6 of 9", 0.25, 0.25, None, ())
    assert "equal scores are ordered by id" in render_explanation(tied).text
    kept = Why("m", True, "limit", "among the best 5", 0.5, 0.5, 2, ())
    assert render_explanation(kept).text == "m is in the answer, at rank 2: among the best 5"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_escapes_from_its_marked_line(text: str) -> None:
    told = rendered(result(Record(id="a", text=text, title=text)), "default").text
    first, *body, last = told.split("\n")
    assert first == "Found 1 results (searched: default):"
    labels = ["", "[1] RRF score: ", "Type: ", *(["Title: "] if one_line(text) else []), 'Snippet: "']
    assert len(body) == len(labels)
    assert all(line.startswith(label) for line, label in zip(body, labels, strict=True))
    assert last == ""
    assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in told)
