"""`sennit search` and `sennit why`."""

from __future__ import annotations

import json

import click
import pytest

from sennit.apps.cli.demo import load_samples

from .conftest import Cli, jsonl

LANGUAGES = [
    ("笔记本电脑丢失", "zh/backup"),
    ("语义检索", "zh/search"),
    ("列車の出発", "ja/train"),
    ("検索エンジン", "ja/search"),
    ("책을 빌릴", "ko/library"),
    ("고춧가루와 마늘", "ko/kimchi"),
    ("FUSSGÄNGERÜBERGANG", "de/crossing"),
    ("fussgangerubergang", "de/crossing"),
    ("Schaeden Hund Mietwohnung", "de/insurance"),
    ("http header map", "code/HTTPHeaderMap"),
    ("HTTPHeaderMap", "code/HTTPHeaderMap"),
    ("upload rate", "code/max_upload_rate"),
    ("max_upload_rate", "code/max_upload_rate"),
    ("maxUploadRate", "code/max_upload_rate"),
    ("parse retry after", "code/parse_retry_after"),
]


@pytest.fixture
def samples_cli(cli: Cli) -> Cli:
    done = cli("import", input=jsonl([record.to_dict() for record in load_samples()]))
    assert done.exit_code == 0, done.stderr
    return cli


def test_all_scripts_and_parts_of_identifiers_are_found(samples_cli: Cli) -> None:
    for query, expected in LANGUAGES:
        answer = json.loads(samples_cli("search", query, "--json").stdout)
        assert answer["hits"][0]["id"] == expected, query


def test_hit_shows_rank_score_title_citation_and_text(filled_cli: Cli) -> None:
    done = filled_cli("search", "how do I bake dough", "-n", "1")
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()
    assert first.split()[0] == "1"
    assert "Sunday bread  bread" in first
    assert second.strip() == "Knead the dough and bake it in a hot oven."
    assert "docs/a.md:3-9" in filled_cli("search", "line of text", "-n", "1").stdout


def test_json_is_the_whole_result(filled_cli: Cli) -> None:
    answer = json.loads(filled_cli("search", "ferry", "--json", "--limit", "2").stdout)
    assert set(answer) == {"query_id", "query", "recipe", "fits", "hits", "degraded", "milliseconds"}
    assert answer["hits"][0] | {"score": 0, "relevance": 1} == {
        "rank": 1,
        "relevance": 1,
        "fits": True,
        "score": 0,
        "citation": "boat",
        "sources": ["keyword", "vector"],
        "id": "boat",
        "text": "The ferry leaves at noon.",
        "collection": "travel",
        "metadata": {"price": 12},
    }
    explained = json.loads(filled_cli("--json", "search", "ferry", "--explain").stdout)
    assert explained["hits"][0]["explanation"]["sources"][0]["source"] == "keyword"
    assert explained["trace"]["candidates"]


def test_explain_lists_every_source(filled_cli: Cli) -> None:
    lines = filled_cli("search", "ferry", "--explain", "-n", "1").stdout.splitlines()
    assert lines[2].split() == ["source", "rank", "score", "share"]
    assert [line.split()[0] for line in lines[3:5]] == ["keyword", "vector"]


def test_recipe_collection_and_filter_narrow_the_result(filled_cli: Cli) -> None:
    def ids(*args: str) -> list[str]:
        return [hit["id"] for hit in json.loads(filled_cli("search", "--json", *args).stdout)["hits"]]

    assert ids("ferry", "--recipe", "keyword") == ["boat"]
    assert ids("the", "-c", "travel") == ["boat"]
    assert sorted(ids("the", "-c", "travel", "-c", "default")) == ["boat", "bread", "path"]
    assert ids("the", "--filter", "price < 20") == ["boat"]
    assert ids("the", "-c", "default", "--filter", "price < 20") == []
    assert ids("the", "--filter", 'kind = "note"') == ["bread"]


def test_nothing_found_is_not_an_error(filled_cli: Cli) -> None:
    done = filled_cli("search", "zzz", "--recipe", "keyword")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("Nothing found.\nNo record matches")
    assert "\n  sennit search zzz --recipe default\n" in done.stderr
    elsewhere = filled_cli("--db", ".sennit", "search", "ferry", "--filter", 'kind = "nothing"')
    assert "\n  sennit --db .sennit search ferry\n" in elsewhere.stderr
    assert filled_cli("search", "zzz", "--recipe", "keyword", "-q").stderr == ""


def test_invalid_filter_error_points_at_the_position(filled_cli: Cli) -> None:
    done = filled_cli("search", "x", "--filter", "price <")
    assert done.exit_code == 2
    assert "^" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--limit", "0"), 2, "from 1 to"),
        (("--limit", "x"), 2, "not a valid integer"),
        (("--recipe", "nope"), 3, "Recipes:"),
        (("--nope",), 2, "No such option"),
    ],
)
def test_invalid_options_are_one_sentence(
    filled_cli: Cli, args: tuple[str, ...], code: int, message: str
) -> None:
    done = filled_cli("search", "x", *args)
    assert done.exit_code == code
    assert done.stderr.startswith("Error: ")
    assert message in done.stderr


def test_disabled_source_is_reported_and_the_others_answer(
    filled_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_EMBEDDING_PROVIDER", "none")
    done = filled_cli("search", "ferry")
    assert done.exit_code == 0
    assert "Warning: the source vector did not answer: embedding is off" in done.stderr
    assert "The ferry leaves" in done.stdout
    answer = filled_cli("search", "ferry", "--json")
    assert json.loads(answer.stdout)["degraded"][0]["source"] == "vector"
    assert answer.stderr == ""
    assert filled_cli("search", "ferry", "--recipe", "vector").exit_code == 5
    assert filled_cli("why", "ferry", "bread", "--recipe", "vector").exit_code == 5


def test_why_reports_stage_and_number(filled_cli: Cli) -> None:
    kept = filled_cli("why", "ferry", "boat")
    assert kept.stdout.startswith("boat is in the answer\n    rank 1 of 3: keyword")
    dropped = json.loads(filled_cli("why", "ferry", "bread", "--limit", "1", "--json").stdout)
    assert (dropped["kept"], dropped["stage"]) == (False, "limit")
    assert dropped["number"] < dropped["needed"]
    assert "would need" in filled_cli("why", "ferry", "bread", "--limit", "1").stdout
    assert "decided by: filter" in filled_cli("why", "ferry", "bread", "-c", "travel").stdout
    missing = filled_cli("why", "ferry", "nobody")
    assert missing.exit_code == 3
    assert "There is no record 'nobody'" in missing.stderr


def test_control_characters_of_records_are_not_printed(cli: Cli) -> None:
    evil = "\x1b[31mred\x1b]0;title\x07 \u009b2J \u202eback"
    cli("import", input=jsonl([{"id": "a\x1b[2J", "text": evil, "title": evil}]))
    for args in (("search", "red", "-e"), ("get", "a\x1b[2J"), ("why", "red", "a\x1b[2J")):
        done = cli(*args)
        assert done.exit_code == 0, done.stderr
        assert not set("\x1b\x07\u009b\u202e") & set(done.output), args
    answer = cli("search", "red", "--json")
    assert not set("\x1b\x07\u009b\u202e") & set(answer.output)
    assert json.loads(answer.stdout)["hits"][0]["text"] == evil


def test_output_in_a_pipe_has_no_styles(filled_cli: Cli) -> None:
    assert (
        click.unstyle(filled_cli("search", "ferry", "-e").output)
        == filled_cli("search", "ferry", "-e").output
    )
