"""Every tool, called by a client: its text, its structured content, and its errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import MCPError

import sennit
from sennit.context.tool_output import DATA_NOTICE
from sennit.hydration.tokenizer import load_tokenizer
from sennit.recipes import BUILTIN_RECIPES
from sennit.tools.declarations import TOOLS
from sennit.tools.handlers import parse_keywords

from .conftest import SampleDatabase, note_of, structured_content_of, text_of

pytestmark = pytest.mark.anyio

CALLS: dict[str, dict[str, Any]] = {
    "hybrid_search": {"query": "vineyard"},
    "memory_search": {"query": "what does Ana drink?"},
    "grep_search": {"query": "LOGIN_TIMEOUT"},
    "vector_search": {"query": "vineyard wine barrels"},
    "read_file": {"path": "handbook.md"},
    "remember": {"text": "Ana is away in May."},
    "forget": {"ids": ["tea"]},
    "feedback": {"action": "use", "ids": ["harvest"]},
    "list_records": {"collection": "artifacts", "limit": 1},
    "explain_result": {"query": "vineyard", "id": "harvest"},
    "plan_context": {"query": "fix login() in auth.py", "max_tokens": 500},
    "ask": {"query": "When does the login time out?", "recipe": "default"},
}
"""A successful call of each tool."""


async def test_every_tool_has_schemas_hints_and_descriptions(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == [tool.name for tool in TOOLS] == list(CALLS)
    for tool in tools.values():
        assert tool.title
        assert tool.description
        assert tool.output_schema is not None
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        described = tools["hybrid_search"].input_schema["properties"]
        for argument, about in tool.input_schema["properties"].items():
            assert "description" in about or "description" in described[argument], (
                "a model knows an argument by its description"
            )
        hints = tool.annotations
        assert hints is not None
        keeps = tool.name in ("remember", "plan_context", "feedback")
        assert hints.read_only_hint is not (keeps or tool.name == "forget")
        if not hints.read_only_hint:
            assert hints.idempotent_hint is not keeps
            assert hints.destructive_hint is (tool.name == "forget")
        assert hints.open_world_hint is False


async def test_the_recipe_argument_names_the_recipes(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        (search, *_) = (await client.list_tools()).tools
        listed = await client.call_tool("list_records", {"limit": 1})
    about = search.input_schema["properties"]["recipe"]["description"]
    parts = {"rrf", "keyword", "vector"}  # of the default recipe, for experiments
    assert set(re.findall(r"`(\w+)`", about)) == set(BUILTIN_RECIPES) - parts
    with structured_content_of(listed) as values:
        assert {"artifacts", "memory", "files", "default"} <= set(values["recipes"])
        assert "examples" not in values["recipes"], "nothing is stored that it searches"
    assert f"\nRecipes that find something here: {', '.join(values['recipes'])}.\n" in text_of(listed)


async def test_the_list_of_tools_stays_short(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        tools = (await client.list_tools()).tools
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert load_tokenizer().count(json.dumps(listed, separators=(",", ":"))) <= 3480, (
        "half of what eleven were, feedback, recency and project"
    )


@pytest.mark.parametrize("name", CALLS)
async def test_structured_content_matches_the_output_schema_exactly(
    sample: SampleDatabase, name: str
) -> None:
    async with sample.client() as client:
        schema = next(tool.output_schema for tool in (await client.list_tools()).tools if tool.name == name)
        await client.call_tool("hybrid_search", CALLS["hybrid_search"])  # feedback is about a search
        with structured_content_of(await client.call_tool(name, CALLS[name])) as values:
            Draft202012Validator(closed(schema)).validate(values)
    assert schema is not None
    assert set(schema["properties"]) - {"pages"} == set(values)


async def test_hybrid_search_answers_in_the_form_of_the_specification(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        answer = await client.call_tool("hybrid_search", {"query": "vineyard"})
    with structured_content_of(answer) as values:
        assert values["recipe"] == "artifacts"
        assert values["collections"] == ["artifact_chunks", "artifacts"]
        scores = [f"{one['score']:.3f}" for one in values["results"]]
    report = "Report of the harvest: the vineyard gave more grapes than last year. "
    assert text_of(answer) == (
        "Found 2 results (searched: artifact_chunks, artifacts):\n"
        "\n"
        f"[1] RRF score: {scores[0]} (from: artifact_chunks)\n"
        "Type: chunk | ID: cellar/1\n"
        "Title: Cellar book\n"
        "Source: mail | Sensitivity: normal\n"
        'Snippet: "The vineyard\'s best wine rests in the oak barrels."\n'
        "\n"
        f"[2] RRF score: {scores[1]} (from: artifacts)\n"
        "Type: artifact | ID: harvest\n"
        "Title: Harvest report\n"
        "Source: drive | Sensitivity: normal\n"
        f'Snippet: "{(report * 8)[:200]}…"\n'
        "Evidence: https://example.org/harvest\n"
    )
    assert note_of(answer).endswith(DATA_NOTICE)


async def test_hybrid_search_cites_files_in_its_notes(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        answer = await client.call_tool("hybrid_search", {"query": "LOGIN_TIMEOUT", "recipe": "files"})
        cited = note_of(answer).partition("[1] ")[2].splitlines()[0]
        read = await client.call_tool("read_file", {"path": cited})
    assert cited.endswith("handbook.md:21-41")
    assert "LOGIN_TIMEOUT" in text_of(read)


async def test_without_artifacts_the_tool_searches_by_the_default_recipe(tmp_path: Path) -> None:
    sample = SampleDatabase(tmp_path / "db", tmp_path)
    with sennit.open(sample.db) as db:
        db.add(
            [
                sennit.Record(id="tea", collection="memory", text="Ana drinks green tea."),
                sennit.Record(id="secret", collection="artifacts", text="green", sensitivity="private"),
            ]
        )
    async with sample.client() as client:
        answer = await client.call_tool("hybrid_search", {"query": "green tea"})
    with structured_content_of(answer) as values:
        assert values["recipe"] == "default"
    lines = text_of(answer).split("\n")
    assert lines[0] == "Found 1 results (searched: memory):", (
        "nothing tells of the hidden record's collection"
    )
    assert lines[2].startswith("[1] Score: ")


async def test_pages_are_organised_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "leases.md").write_text(
        "# Leases\n\n## Overview\n\nA lease is a loan.\n\n## Renewal\n\nA worker renews its lease.\n"
    )
    sample = SampleDatabase(tmp_path / "db", tmp_path)
    with sennit.open(sample.db) as db:
        db.index(tmp_path / "docs")
    ask = {"query": "how is a lease renewed?", "recipe": "docs", "limit": 1}
    async with sample.client() as client:
        answer = await client.call_tool("hybrid_search", ask)
        cut = await client.call_tool("hybrid_search", {**ask, "max_tokens": 90})
    path = (tmp_path / "docs" / "leases.md").resolve()
    page = (
        "Found 1 results (searched: docs):\n"
        "\n"
        "[1] Page: Leases\n"
        "URL: /leases\n"
        f"Summary: {path}:1-5\n"
        "   | # Leases\n"
        "   | \n"
        "   | ## Overview\n"
        "   | \n"
        "   | A lease is a loan.\n"
    )
    assert text_of(answer) == (
        f"{page}Section: Leases > Renewal ({path}:7-9)\n"
        "   | ## Renewal\n"
        "   | \n"
        "   | A worker renews its lease.\n"
    )
    with structured_content_of(answer) as values:
        (found,) = values["pages"]
        assert [chunk["kind"] for chunk in found["chunks"]] == ["PAGE_SUMMARY", "SECTION"]
        assert not values["truncated"]
    with structured_content_of(cut) as values:
        assert values["truncated"]
    assert "Cut at max_tokens = 90" in note_of(cut)


async def test_vector_search_returns_whole_texts_within_the_budget(sample: SampleDatabase) -> None:
    ask = {"query": "harvest of the vineyard", "limit": 1}
    async with sample.client() as client:
        whole = await client.call_tool("vector_search", ask)
        cut = await client.call_tool("vector_search", {**ask, "max_tokens": 60})
    report = "Report of the harvest: the vineyard gave more grapes than last year."
    with structured_content_of(whole) as values:
        assert values["results"][0]["passage"].count(report) == 8
    assert f"   | {report}" in text_of(whole)
    with structured_content_of(cut) as values:
        assert values["truncated"]
        assert values["results"][0]["passage"].endswith("…")
    assert "Cut at max_tokens = 60. Raise max_tokens" in text_of(cut)


async def test_a_search_whose_sources_all_fail_is_a_failure(sample: SampleDatabase) -> None:
    async with sample.client(embedding__provider="none") as client:
        answer = await client.call_tool("hybrid_search", {"query": "vineyard", "recipe": "vector"})
    assert answer.is_error
    assert text_of(answer).startswith("Search failed: no source answered (")


async def test_search_without_results_says_so(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        answer = await client.call_tool("hybrid_search", {"query": "zzz", "recipe": "keyword"})
    assert text_of(answer) == "No results found."
    with structured_content_of(answer) as values:
        assert values["results"] == []


async def test_semantic_query_is_another_name_of_query(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        one = await client.call_tool("hybrid_search", {"query": "oak barrels"})
        other = await client.call_tool("hybrid_search", {"semantic_query": "oak barrels"})
        both = await client.call_tool("hybrid_search", {"query": "a", "semantic_query": "b"})
    for found in (one, other):
        assert found.structured_content.pop("query_id")
    assert one.structured_content == other.structured_content
    assert both.is_error
    assert text_of(both).startswith("Search failed: query and semantic_query are two names of one argument")


async def test_exact_keywords_select_the_recipe_files(sample: SampleDatabase) -> None:
    async with sample.client(search__recipe="artifacts") as client:
        answer = await client.call_tool(
            "hybrid_search",
            {"semantic_query": "when does the login end?", "exact_keywords": ["LOGIN_TIMEOUT"]},
        )
        plain = await client.call_tool("hybrid_search", {"query": "login"})
        named = await client.call_tool(
            "hybrid_search", {"query": "login", "exact_keywords": "x", "recipe": "keyword"}
        )
    with structured_content_of(answer) as values:
        assert values["recipe"] == "files"
        found = values["results"][0]
        assert found["citation"] == f"{sample.files.resolve() / 'handbook.md'}:21-41"
    assert f"[1] {found['citation']}\n" in note_of(answer)
    with structured_content_of(plain) as values:
        assert values["recipe"] == "artifacts", "the recipe that the server was started with"
    with structured_content_of(named) as values:
        assert values["recipe"] == "keyword"


@pytest.mark.parametrize(
    ("given", "keywords"),
    [
        (["LOGIN_TIMEOUT", " seconds "], ("LOGIN_TIMEOUT", "seconds")),
        ('login "times out" after', ("login", "times out", "after")),
        (["two words"], ("two words",)),
        ([], None),
        ("", None),
        (["", " "], None),
        ("how long?", None),
        (["how long?"], None),
    ],
)
async def test_parse_keywords(given: Any, keywords: tuple[str, ...] | None) -> None:
    assert parse_keywords(given, "how long?") == keywords


async def test_include_memory_and_memory_search(sample: SampleDatabase) -> None:
    ask = {"query": "green tea", "recipe": "artifacts"}
    async with sample.client() as client:
        without = await client.call_tool("hybrid_search", ask)
        beside = await client.call_tool("hybrid_search", {**ask, "include_memory": True})
        everywhere = await client.call_tool("hybrid_search", {"query": "green tea", "recipe": "default"})
        alone = await client.call_tool("memory_search", {"query": "vineyard green tea"})
    for answer, found in ((without, False), (beside, True), (everywhere, True)):
        with structured_content_of(answer) as values:
            assert ("tea" in [one["id"] for one in values["results"]]) is found
    assert text_of(beside).startswith(
        f"Found {len(beside.structured_content['results'])} results (searched: artifact_chunks, artifacts, memory):"
    )
    with structured_content_of(alone) as values:
        assert [one["id"] for one in values["memories"]] == ["tea"]
        assert values["memories"][0]["text"] == "Ana drinks green tea."


async def test_neighbours_are_joined_by_the_chunk_boundary(sample: SampleDatabase) -> None:
    ask = {"query": "oak", "recipe": "artifacts", "limit": 1}
    async with sample.client() as client:
        plain = await client.call_tool("hybrid_search", ask)
        expanded = await client.call_tool("hybrid_search", {**ask, "expand_neighbors": True})
    with structured_content_of(plain) as values:
        assert "passage" not in values["results"][0]
    with structured_content_of(expanded) as values:
        assert values["results"][0]["passage"] == (
            "Barrels are cleaned in March.\n[CHUNK BOUNDARY]\n"
            "The vineyard's best wine rests in the oak barrels.\n[CHUNK BOUNDARY]\nBottles are filled in May."
        )
    assert text_of(expanded) == text_of(plain)
    assert "[1] with its neighbours:\n   | Barrels are cleaned in March.\n   | [CHUNK BOUNDARY]\n" in note_of(
        expanded
    )


async def test_filters_are_applied(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        answer = await client.call_tool(
            "hybrid_search", {"query": "vineyard", "filters": {"artifact_type": ["report"]}}
        )
        bad = await client.call_tool("hybrid_search", {"query": "x", "filters": {"a": {"near": 1}}})
    with structured_content_of(answer) as values:
        assert [one["id"] for one in values["results"]] == ["harvest"]
    assert bad.is_error
    assert "Unknown operator" in text_of(bad)


@pytest.mark.parametrize("recency", [0, 0.5, 1, "auto"])
async def test_recency_is_an_argument_as_in_the_other_interfaces(
    shared_sample: SampleDatabase, recency: float | str
) -> None:
    arguments = {"query": "what does Ana drink?", "recipe": "memory", "recency": recency}
    async with shared_sample.client() as client:
        found = await client.call_tool("hybrid_search", arguments)
        explained = await client.call_tool("explain_result", {**arguments, "id": "tea"})
    assert not found.is_error, text_of(found)
    assert not explained.is_error, text_of(explained)


async def test_hidden_record_is_in_no_tool_result(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        answers = [await client.call_tool(name, given) for name, given in CALLS.items()]
        why = await client.call_tool("explain_result", {"query": "vineyard", "id": "diary"})
        nobody = await client.call_tool("explain_result", {"query": "vineyard", "id": "nobody"})
    assert not any("secretly" in str(answer) or "diary" in str(answer) for answer in answers)
    assert why.is_error
    assert text_of(why).replace("diary", "nobody") == text_of(nobody)
    async with sample.client(privacy__clearance="private") as client:
        cleared = await client.call_tool("hybrid_search", {"query": "vineyard"})
    assert "secretly" in text_of(cleared)


async def test_identity_cannot_be_passed_as_an_argument(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        for name, given in CALLS.items():
            for argument in ("clearance", "caller", "scopes", "tenant"):
                answer = await client.call_tool(name, {**given, argument: "private"})
                assert answer.is_error
                assert f"{name} has no argument {argument!r}. It takes: " in text_of(answer)


async def test_grep_marks_matching_lines(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        answer = await client.call_tool("grep_search", {"query": "LOGIN_TIMEOUT"})
        several = await client.call_tool("grep_search", {"query": "nowhere", "more_keywords": ["line 40."]})
        bad = await client.call_tool("grep_search", {"query": "(", "regex": True})
    with structured_content_of(answer) as values:
        (passage,) = values["passages"]
        assert passage["citation"] == f"{sample.files.resolve() / 'handbook.md'}:21-41"
        assert passage["matched"] == [31]
    assert "\n> 31  The login times out after LOGIN_TIMEOUT seconds.\n" in text_of(answer)
    with structured_content_of(several) as values:
        assert values["passages"][0]["keywords"] == ["line 40."]
    assert bad.is_error
    assert "regular expression" in text_of(bad)


async def test_vector_search_applies_the_distance_threshold(sample: SampleDatabase) -> None:
    query = {"query": "wine in oak barrels of the vineyard"}
    async with sample.client(files__vector_score_threshold=0.3) as client:
        near = await client.call_tool("vector_search", query)
    async with sample.client(files__vector_score_threshold=0.01) as client:
        strict = await client.call_tool("vector_search", query)
    async with sample.client(files__vector_score_threshold=2.0) as client:
        lax = await client.call_tool("vector_search", query)
    ids = [[one["id"] for one in found.structured_content["results"]] for found in (strict, near, lax)]
    assert ids[0] == []
    assert ids[1] == ["cellar/1"]
    assert ids[2][0] == "cellar/1"
    assert len(ids[2]) > len(ids[1])


async def test_read_file_returns_the_exact_text_in_a_block_of_its_own(sample: SampleDatabase) -> None:
    (sample.files / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\x1b[31m\r\n")
    async with sample.client() as client:
        whole = await client.call_tool("read_file", {"path": "handbook.md"})
        lines = await client.call_tool(
            "read_file", {"path": "handbook.md", "first_line": 31, "last_line": 31}
        )
        rest = await client.call_tool("read_file", {"path": "handbook.md", "first_line": 59})
        dos = await client.call_tool("read_file", {"path": str(sample.files / "dos.txt")})
    assert text_of(whole) == (sample.files / "handbook.md").read_text()
    assert text_of(lines) == "The login times out after LOGIN_TIMEOUT seconds.\n"
    assert text_of(rest) == "Filler line 59.\nFiller line 60.\n"
    assert text_of(dos) == "one\ntwo[31m\n"
    with structured_content_of(lines) as values:
        assert values == {
            "path": str(sample.files.resolve() / "handbook.md"),
            "text": text_of(lines),
            "first_line": 31,
            "last_line": 31,
            "total_lines": 60,
        }
    assert len(whole.content) == 2


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("missing.md", "NOT_FOUND"),
        ("../outside.txt", "ACCESS_DENIED"),
        (".", "IS_DIRECTORY"),
        ("a\0b", "BAD_PATH"),
        ("picture.bin", "NOT_TEXT"),
    ],
)
async def test_unreadable_file_is_an_error_with_a_code(sample: SampleDatabase, path: str, code: str) -> None:
    (sample.files.parent / "outside.txt").write_text("secret")
    (sample.files / "picture.bin").write_bytes(b"\x89PNG\x00")
    async with sample.client() as client:
        answer = await client.call_tool("read_file", {"path": path})
    assert answer.is_error
    assert text_of(answer).startswith(f"[ERROR: {code}] ")
    assert ("Allowed folders" in text_of(answer)) is (code == "ACCESS_DENIED")


async def test_remembered_fact_is_found_with_its_provenance(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        kept = await client.call_tool(
            "remember", {"text": "The key is under the pot.", "kind": "fact", "metadata": {"room": "hall"}}
        )
        found = await client.call_tool("memory_search", {"query": "where is the key?", "limit": 1})
        refused = await client.call_tool("remember", {"text": "x", "sensitivity": "private"})
    with structured_content_of(kept) as values:
        assert text_of(found).count(values["id"]) == 1
    with sennit.open(sample.db) as db:
        record = db.get(values["id"])
    assert record is not None
    assert record.collection == "memory"
    assert record.metadata["room"] == "hall"
    assert str(record.metadata["source"]).startswith("mcp")
    assert refused.is_error, "nobody writes what they may not read"


async def test_read_only_server_does_not_offer_remember(sample: SampleDatabase) -> None:
    async with sample.client(read_only=True) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(MCPError, match="There is no tool 'remember' here"):
            await client.call_tool("remember", {"text": "x"})
    assert names == [name for name in CALLS if name not in ("remember", "forget", "feedback")]


async def test_explain_result_reports_the_deciding_stage(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        kept = await client.call_tool("explain_result", {"query": "harvest", "id": "harvest"})
        cut = await client.call_tool("explain_result", {"query": "harvest", "id": "cellar/0", "limit": 1})
        files = await client.call_tool(
            "explain_result",
            {"query": "green tea", "id": "tea", "recipe": "artifacts", "include_memory": True},
        )
    assert text_of(kept).startswith("harvest is in the answer, at rank 1: ")
    assert text_of(cut).startswith("cellar/0 is not in the answer. Decided by limit: ")
    with structured_content_of(cut) as values:
        assert values["number"] < values["needed"]
    with structured_content_of(files) as values:
        assert values["kept"]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("hybrid_search", {}, "Search failed: hybrid_search needs the argument 'query': "),
        ("memory_search", {}, "memory_search needs the argument 'query': "),
        ("hybrid_search", {"query": 5}, "Search failed: hybrid_search: query: 5 is not of type 'string'"),
        (
            "hybrid_search",
            {"query": "x", "limit": 0},
            "Search failed: hybrid_search: limit: limit must be a whole number from 1 to 1,000, not 0",
        ),
        (
            "hybrid_search",
            {"query": "x", "limit": 1001},
            "Search failed: hybrid_search: limit: limit must be a whole number from 1 to 1,000, not 1001",
        ),
        (
            "hybrid_search",
            {"query": "x", "limit": 51, "recipe": "artifacts"},
            "Search failed: limit must be a whole number from 1 to 50 for recipe 'artifacts', not 51",
        ),
        (
            "hybrid_search",
            {"query": "x", "recency": "soon"},
            "Search failed: recency must be a number from 0 to 1, or auto, not 'soon'",
        ),
        (
            "grep_search",
            {"query": "x", "limit": 51},
            "grep_search: limit: 51 is greater than the maximum of 50",
        ),
        (
            "hybrid_search",
            {"query": "x", "recipe": "soup"},
            "Search failed: There is no recipe 'soup'. Recipes: ",
        ),
        (
            "hybrid_search",
            {"query": "x", "filters": "a"},
            "Search failed: hybrid_search: filters: 'a' is not of type 'object'",
        ),
        (
            "read_file",
            {"path": "a", "first_line": 0},
            "read_file: first_line: 0 is less than the minimum of 1",
        ),
        ("read_file", {"path": "a", "first_line": 3, "last_line": 2}, "[ERROR: BAD_RANGE] "),
        ("remember", {"text": ""}, "remember: text: "),
        ("hybrid_search", {"query": "x" * 100_001}, "Search failed: The query has 100,001 characters"),
        (
            "hybrid_search",
            {"query": "x", "recipe": "y" * 201},
            "Search failed: The recipe has 201 characters",
        ),
        ("ask", {"query": "x", "editor": "y" * 500_001}, "The editor has 500,001 characters"),
        ("plan_context", {"query": "x" * 100_001}, "The query has 100,001 characters"),
        ("memory_search", {"query": "x", "limit": 0}, "memory_search: limit: limit must be a whole number"),
        ("vector_search", {"query": "x", "limit": 0}, "limit must be a whole number"),
        ("vector_search", {"query": "x", "max_tokens": 1}, "vector_search: max_tokens: 1 is less than"),
    ],
)
async def test_bad_arguments_get_one_clear_message(
    shared_sample: SampleDatabase, name: str, given: dict[str, Any], said: str
) -> None:
    async with shared_sample.client() as client:
        answer = await client.call_tool(name, given)
    assert answer.is_error
    assert answer.structured_content is None
    assert text_of(answer).startswith(said)
    assert len(text_of(answer)) < 400


async def test_null_arguments_count_as_not_given(shared_sample: SampleDatabase) -> None:
    async with shared_sample.client() as client:
        given = {"query": "harvest", "limit": None, "filters": None, "exact_keywords": None}
        with structured_content_of(await client.call_tool("hybrid_search", given)) as values:
            assert values["recipe"] == "artifacts"


def closed(schema: Any) -> Any:
    """The schema with additionalProperties false in every object."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: closed(value) for key, value in schema.items()}
    if schema.get("type") != "object":
        return out
    named: dict[str, Any] = {name: {} for name in schema.get("required", ())}
    return {**out, "properties": {**named, **out.get("properties", {})}, "additionalProperties": False}


async def test_list_records_shows_collections_and_pages(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        first = await client.call_tool("list_records", {"collection": "artifact_chunks", "limit": 2})
        with structured_content_of(first) as values:
            assert values["total"] == 3
            assert {one["name"] for one in values["collections"]} >= {"artifacts", "memory"}
            following = values["next"]
        rest = await client.call_tool(
            "list_records", {"collection": "artifact_chunks", "limit": 2, "after": following}
        )
    assert "- cellar/0 · artifact_chunks · Cellar book" in text_of(first)
    with structured_content_of(rest) as values:
        assert [one["id"] for one in values["records"]] == ["cellar/2"]
    assert "diary" not in text_of(first)


async def test_forget_removes_by_reference_session_or_filter(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        await client.call_tool("remember", {"text": "Ana is away.", "metadata": {"session": "s1"}})
        for arguments in ({"session": "s1"}, {"filters": {"kind": "preference"}}, {"ids": ["cellar/2"]}):
            assert text_of(await client.call_tool("forget", arguments)) == "Removed 1 record."
        refused = await client.call_tool("forget", {"ids": ["harvest"], "session": "s1"})
        assert refused.is_error
        hidden = await client.call_tool("forget", {"ids": ["diary"]})
        assert hidden.is_error


async def test_explain_result_and_read_file_take_a_citation(sample: SampleDatabase) -> None:
    async with sample.client() as client:
        read = await client.call_tool("read_file", {"path": "handbook.md:31-31"})
        assert text_of(read).startswith("The login times out")
        why = await client.call_tool(
            "explain_result", {"query": "vineyard", "id": "https://example.org/harvest"}
        )
    assert text_of(why).startswith("harvest is in the answer")
