"""Facts from a language model are checked against the text; without a model, plain statements are taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sennit
from llm.server import ChatServer
from sennit import Record

TEXT = "Ana works at Acme. She may move to Porto."


@pytest.fixture
def opened(tmp_path: Path, server: ChatServer) -> Iterator[Callable[..., sennit.Database]]:
    made: list[sennit.Database] = []

    def open_with() -> sennit.Database:
        db = sennit.open(
            tmp_path / "db",
            llm__provider="ollama",
            llm__model="m",
            llm__base_url=server.base_url("ollama"),
            llm__retries=0,
        )
        made.append(db)
        return db

    yield open_with
    for db in made:
        db.close()


def said(server: ChatServer, answer: object) -> None:
    server.says = answer if isinstance(answer, str) else json.dumps(answer)


def test_facts_of_a_model_are_stored_with_their_sources(
    server: ChatServer, opened: Callable[..., sennit.Database]
) -> None:
    said(server, [{"subject": "Ana", "relation": "works at", "object": "Acme", "text": "works there"}])
    db = opened()
    record = Record(id="note", text=TEXT, sensitivity="sensitive", scope="me")
    found = db.memory.extract_facts([record])
    assert [fact.line for fact in found.facts] == ["Ana -> Acme: works there"]
    assert found.problems == ()
    (fact,) = found.facts
    assert (fact.sources, fact.sensitivity, fact.scope) == (("note",), "sensitive", "me")
    kept = db.get(fact.id, caller=sennit.OWNER)
    assert kept is not None
    assert db.get(fact.id) is None  # who may not see the text may not see what is in it


@pytest.mark.parametrize(
    "invented",
    [
        {"subject": "Ana", "relation": "works at", "object": "Initech"},
        {"subject": "Bob", "relation": "works at", "object": "Acme"},
        {"subject": "", "relation": "works at", "object": "Acme"},
        {"subject": ["Ana"], "relation": "works at", "object": "Acme"},
        "Ana works at Acme",
        None,
    ],
)
def test_a_fact_that_the_text_does_not_name_is_dropped(
    server: ChatServer, opened: Callable[..., sennit.Database], invented: object
) -> None:
    said(server, [invented, {"subject": "ana", "relation": "works at", "object": "ACME"}])
    found = opened().memory.extract_facts([Record(id="note", text=TEXT)])
    assert [(fact.subject, fact.object) for fact in found.facts] == [("ana", "ACME")]


@pytest.mark.parametrize("answer", ["I cannot help with that.", "{}", "[", "[1, 2", ""])
def test_an_answer_without_a_list_falls_back_to_plain_statements_and_is_reported(
    server: ChatServer, opened: Callable[..., sennit.Database], answer: str
) -> None:
    said(server, answer)
    found = opened().memory.extract_facts([Record(id="note", text=TEXT)])
    assert [fact.line for fact in found.facts] == ["Ana -> Acme: works at Acme"]
    assert len(found.problems) == 1
    assert found.problems[0].startswith("note: ")


def test_without_a_model_plain_statements_are_read() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="note", text=TEXT)])
        found = db.memory.extract_facts(db)
        assert found.by == "offline"
        assert [fact.line for fact in found.facts] == ["Ana -> Acme: works at Acme"]
        assert (
            db.search("Where does Ana work?", recipe="memory", filters={"kind": "fact"})[0].text
            == found.facts[0].line
        )
        assert db.memory.extract_facts(db, keep=False).facts == found.facts
