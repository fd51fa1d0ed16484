"""`sennit ask` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm.server import ChatServer, Response

from .conftest import LEASES, Cli, Run


@pytest.fixture
def docs_cli(cli: Cli, home: Path) -> Cli:
    (home / "docs").mkdir()
    (home / "docs" / "leases.md").write_text(LEASES)
    done = cli("index", "docs", "--recipe", "docs")
    assert done.exit_code == 0, done.stderr
    return cli


@pytest.fixture
def server(chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """A language model that also rewrites queries."""
    for name, value in (chat.environment() | {"SENNIT_LLM_TRANSFORM": "auto"}).items():
        monkeypatch.setenv(name, value)
    return chat


def test_answer_has_citations(docs_cli: Cli) -> None:
    done = docs_cli("ask", "what is a lease?")
    assert done.exit_code == 0
    assert "A lease is a loan of a job to a worker. [1]" in done.stdout
    assert "leases.md:1-5" in done.stdout
    assert done.stderr == ""


def test_invented_citations_of_a_model_are_reported(docs_cli: Cli, server: ChatServer) -> None:
    server.says = "It is a loan [1], and also \x1b[2J art [44]."
    done = docs_cli("ask", "what is a lease?", "--no-transform")
    assert done.exit_code == 0
    assert done.stdout.startswith("It is a loan [1], and also \ufffd[2J art.\n")
    assert "44" in done.stderr
    assert "openai/small" in done.stderr
    assert [request.body["stream"] for request in server.requests] == [True]


def test_failing_model_gives_a_warning_and_an_extractive_answer(docs_cli: Cli, server: ChatServer) -> None:
    server.script = [Response(500), Response(500)]
    done = docs_cli("ask", "what is a lease?")
    assert done.exit_code == 0
    assert "A lease is a loan" in done.stdout
    assert "Warning" in done.stderr
    assert "answered 500" in done.stderr


def test_json_has_all_fields(docs_cli: Cli) -> None:
    answer = json.loads(docs_cli("ask", "what is a lease?", "--json").stdout)
    assert answer["model"] is None
    assert answer["citations"][0]["number"] == 1
    assert answer["pages"][0]["name"] == "Leases"
    assert answer["transform"]["by"] == "offline"
    assert {"text", "removed_citations", "degraded", "examples", "editor_keywords"} <= answer.keys()


def test_prompt_option_prints_the_system_prompt(docs_cli: Cli, home: Path) -> None:
    (home / "song.js").write_text('s("bd sd").bank("RolandTR909")')
    done = docs_cli("ask", "lease", "--prompt", "--editor", "song.js", "--language", "strudel")
    assert done.exit_code == 0
    assert done.stdout.startswith("You answer questions")
    assert "RolandTR909" in done.stdout
    assert "prompt" in json.loads(docs_cli("ask", "lease", "--prompt", "--json").stdout)


def test_editor_code_can_come_from_standard_input(docs_cli: Cli) -> None:
    done = docs_cli("ask", "lease", "--editor", "-", "--json", input='s("bd").room(2)')
    assert "room" in json.loads(done.stdout)["editor_keywords"]


def test_missing_and_unreadable_editor_files_have_their_exit_codes(docs_cli: Cli, home: Path) -> None:
    assert docs_cli("ask", "lease", "--editor", "nothing.js").exit_code == 3
    assert docs_cli("ask", "lease", "--editor", ".").exit_code == 2
    (home / "binary").write_bytes(b"\xff\xfe\x00")
    done = docs_cli("ask", "lease", "--editor", "binary")
    assert (done.exit_code, "UTF-8" in done.stderr) == (2, True)


def test_nothing_found_is_not_an_error(cli: Cli, home: Path) -> None:
    cli("import", input='{"id": "a", "text": "x"}\n')
    done = cli("ask", "--recipe", "docs", "what is a lease?")
    assert (done.exit_code, done.stdout) == (0, "Nothing was found that answers this.\n")


def test_ask_runs_as_a_process(docs_cli: Cli, run: Run) -> None:
    done = run("ask", "what is a lease?")
    assert done.returncode == 0, done.stderr
    assert "[1]" in done.stdout


def test_a_search_of_documentation_is_printed_by_page(docs_cli: Cli) -> None:
    done = docs_cli("search", "-r", "docs", "how", "long", "is", "a", "lease")
    found = json.loads(docs_cli("search", "-r", "docs", "how long is a lease", "--json").stdout)
    lines = done.stdout.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    pages = [page["name"] for page in found["pages"]]
    assert [head.split("  ")[0] for head in heads if head.split("  ")[0] in pages] == pages
    ranks = [int(line.split()[0]) for line in lines if line[:4].strip().isdigit()]
    assert sorted(ranks) == list(range(1, len(found["hits"]) + 1))
    # A summary that was not found itself comes with its page, without a rank.
    shown = [chunk["id"] for page in found["pages"] for chunk in page["chunks"]]
    assert sum(line.startswith(" -  ") for line in lines) == len(shown) - len(found["hits"])
