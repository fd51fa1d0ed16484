"""An empty answer says why it is empty, and which search would find something."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import sennit
from sennit import Caller, Record
from sennit.engine import Database
from sennit.errors import NotFound
from sennit.results import SearchResult

STRANGER = Caller(clearance="normal", scopes=frozenset({"public"}), name="stranger")


@pytest.fixture
def db() -> Iterator[Database]:
    with sennit.open(":memory:") as db:
        db.add(
            [
                Record(id="ferry", text="The ferry leaves at noon.", collection="travel", kind="note"),
                Record(
                    id="old",
                    text="A ferry of last year.",
                    collection="travel",
                    timestamp=datetime.now(UTC) - timedelta(days=400),
                ),
                Record(id="secret", text="The vault opens.", collection="vault", sensitivity="private"),
            ]
        )
        yield db


def codes(found: SearchResult) -> list[str]:
    assert not found.hits
    return [hint.code for hint in found.hints]


def test_a_result_with_hits_has_no_hints(db: Database) -> None:
    found = db.search("ferry")
    assert found.hits
    assert found.hints == ()
    assert "hints" not in found.to_dict()


def test_an_empty_database_says_that_nothing_is_stored() -> None:
    with sennit.open(":memory:") as db:
        found = db.search("anything")
        assert codes(found) == ["nothing_stored"]
        assert found.hints[0].command == "sennit index ."


def test_an_empty_project_leads_to_all_projects(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "bare").mkdir()
    (tmp_path / "full" / "a.md").write_text("The ferry leaves at noon.")
    with sennit.open(":memory:") as db:
        db.index([tmp_path / "full", tmp_path / "bare"])
        found = db.search("ferry", project="bare")
        assert codes(found) == ["project"]
        assert found.hints[0].message.startswith("The project 'bare' holds no records that you may see.")
        assert found.hints[0].command == "sennit search ferry --project all"
        filtered = db.search("ferry", project="full", filters='kind = "nosuch"')
        assert codes(filtered) == ["filter", "try", "project"]
        assert [hint.command for hint in filtered.hints[1:]] == [
            "sennit search ferry --project full",
            "sennit search ferry --project all --filter 'kind = \"nosuch\"'",
        ]
        assert "project" not in codes(db.search("ferry", project="all", filters='kind = "nosuch"'))


def test_a_recipe_whose_collections_are_empty_names_those_that_hold_records(db: Database) -> None:
    found = db.search("ferry", recipe="code")
    assert codes(found) == ["recipe", "try"]
    assert (
        "searches code, code_files, which hold no records. Records are in travel (2)."
        in found.hints[0].message
    )
    assert shlex.split(found.hints[1].command) == ["sennit", "search", "ferry", "--recipe", "default"]
    assert found.to_dict()["hints"]


def test_a_filter_that_nothing_passes_is_named(db: Database) -> None:
    found = db.search("ferry", filters={"kind": "letter"})
    assert codes(found) == ["filter", "try"]
    assert found.hints[0].message == 'No record passes the filter: kind = "letter"'
    assert found.hints[1].message == "Without the filter there are 2 results."
    assert found.hints[1].command == "sennit search ferry"


def test_the_suggested_search_finds_what_the_hint_says(db: Database) -> None:
    found = db.search("ferry", recipe="code", filters="kind = 'letter'", collections=("code",))
    assert codes(found)[-1] == "try"
    words = shlex.split(found.hints[-1].command)
    assert words[:3] == ["sennit", "search", "ferry"]
    assert "--filter" not in words
    assert "--collection" not in words
    assert len(db.search("ferry", recipe=words[-1])) == 2


def test_an_empty_collection_is_named(db: Database) -> None:
    assert codes(db.search("ferry", collections=("memory",))) == ["collection", "try"]


def test_a_look_back_that_reaches_nothing_is_named(db: Database) -> None:
    found = db.search("ferry", recipe="memory", include=("travel",), look_back=24, filters={"id": "old"})
    assert codes(found)[0] == "look_back"
    assert codes(found)[-1] == "try"


def test_a_threshold_that_discards_everything_names_the_nearest(db: Database) -> None:
    found = db.search("quantum chromodynamics", recipe="files")
    assert codes(found) == ["threshold", "try"]
    assert "The nearest is " in found.hints[0].message
    assert "would have to be below 0.5" in found.hints[0].message


def test_an_empty_query_is_named_as_the_reason(db: Database) -> None:
    for query in ("", " \n"):
        assert codes(db.search(query)) == ["empty_query"]


def test_the_command_for_a_query_with_a_dash_can_be_pasted(db: Database) -> None:
    command = db.search("--ferry", filters='kind = "none"').hints[-1].command
    assert command == "sennit search -- --ferry"


def test_words_that_nothing_contains_are_no_match(db: Database) -> None:
    assert codes(db.search("zebra", recipe="keyword"))[0] == "no_match"


def test_hints_count_and_name_nothing_hidden(db: Database) -> None:
    shown = str(db.search("vault", recipe="code", caller=STRANGER).to_dict())
    assert "travel (2)" in shown
    assert "secret" not in shown
    assert "vault (" not in shown
    for name in ("vault", "crypt"):
        with pytest.raises(NotFound) as error:
            db.search("opens", collections=(name,), caller=STRANGER)
        assert str(error.value).endswith("Collections with records: travel")


def test_a_misspelt_recipe_or_collection_is_an_error_with_the_nearest_name(db: Database) -> None:
    with pytest.raises(NotFound, match="Did you mean 'code'"):
        db.search("ferry", recipe="cod")
    with pytest.raises(NotFound, match="Did you mean 'travel'"):
        db.search("ferry", collections=("travell",))
    with pytest.raises(NotFound, match="Did you mean 'memory'"):
        db.search("ferry", recipe="artifacts", include=("memry",))
    with pytest.raises(NotFound) as error:
        db.search("ferry", collections=("travell", "vaultt"), caller=STRANGER)
    assert "'vault'" not in str(error.value)


def test_an_answer_without_passages_has_the_hints(db: Database) -> None:
    answer = db.ask("when does the ferry leave?", recipe="docs")
    assert [hint.code for hint in answer.hints] == ["recipe", "try"]
