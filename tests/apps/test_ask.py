"""`sennit ask` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llm.server import Answer, ChatServer

from .conftest import LEASES, Cli, Run


@pytest.fixture
def indexed(sennit: Cli, home: Path) -> Cli:
    (home / "docs").mkdir()
    (home / "docs" / "leases.md").write_text(LEASES)
    done = sennit("index", "docs", "--recipe", "docs")
    assert done.exit_code == 0, done.stderr
    return sennit


@pytest.fixture
def server(chat: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
    """A language model that also puts questions differently."""
    for name, value in (chat.environment() | {"SENNIT_LLM_TRANSFORM": "auto"}).items():
        monkeypatch.setenv(name, value)
    return chat


def test_an_answer_with_its_citations(indexed: Cli) -> None:
    done = indexed("ask", "what is a lease?")
    assert done.exit_code == 0
    assert "A lease is a loan of a job to a worker. [1]" in done.stdout
    assert "leases.md:1-5" in done.stdout
    assert done.stderr == ""


def test_a_model_writes_and_what_it_made_up_is_reported(indexed: Cli, server: ChatServer) -> None:
    server.says = "It is a loan [1], and also \x1b[2J art [44]."
    done = indexed("ask", "what is a lease?", "--no-transform")
    assert done.exit_code == 0
    assert done.stdout.startswith("It is a loan [1], and also \ufffd[2J art.\n")
    assert "44" in done.stderr
    assert "openai/small" in done.stderr
    assert [request.body["stream"] for request in server.requests] == [True]


def test_a_model_that_fails_is_a_warning(indexed: Cli, server: ChatServer) -> None:
    server.script = [Answer(500), Answer(500)]
    done = indexed("ask", "what is a lease?")
    assert done.exit_code == 0
    assert "A lease is a loan" in done.stdout
    assert "Warning" in done.stderr
    assert "answered 500" in done.stderr


def test_json_has_everything(indexed: Cli) -> None:
    answer = json.loads(indexed("ask", "what is a lease?", "--json").stdout)
    assert answer["model"] is None
    assert answer["citations"][0]["number"] == 1
    assert answer["pages"][0]["name"] == "Leases"
    assert answer["transform"]["by"] == "offline"
    assert {"text", "removed_citations", "degraded", "examples", "editor_keywords"} <= answer.keys()


def test_the_prompt_alone(indexed: Cli, home: Path) -> None:
    (home / "song.js").write_text('s("bd sd").bank("RolandTR909")')
    done = indexed("ask", "lease", "--prompt", "--editor", "song.js", "--language", "strudel")
    assert done.exit_code == 0
    assert done.stdout.startswith("You answer questions")
    assert "RolandTR909" in done.stdout
    assert "prompt" in json.loads(indexed("ask", "lease", "--prompt", "--json").stdout)


def test_the_editor_can_be_standard_input(indexed: Cli) -> None:
    done = indexed("ask", "lease", "--editor", "-", "--json", input='s("bd").room(2)')
    assert "room" in json.loads(done.stdout)["editor_keywords"]


def test_an_editor_that_cannot_be_read_is_wrong_usage(indexed: Cli, home: Path) -> None:
    assert indexed("ask", "lease", "--editor", "nothing.js").exit_code == 2
    (home / "binary").write_bytes(b"\xff\xfe\x00")
    done = indexed("ask", "lease", "--editor", "binary")
    assert (done.exit_code, "UTF-8" in done.stderr) == (2, True)


def test_nothing_found_is_an_answer(sennit: Cli, home: Path) -> None:
    sennit("import", input='{"id": "a", "text": "x"}\n')
    done = sennit("ask", "what is a lease?")
    assert (done.exit_code, done.stdout) == (0, "Nothing was found that answers this.\n")


def test_a_process_of_its_own_answers_too(indexed: Cli, run: Run) -> None:
    done = run("ask", "what is a lease?")
    assert done.returncode == 0, done.stderr
    assert "[1]" in done.stdout
