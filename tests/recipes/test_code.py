"""The recipe `code`: a project becomes entities, a search finds them, a plan gathers them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit

GO = Path(__file__).resolve().parent.parent / "fixtures" / "goproject"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GO, tmp_path / "shop"))


@pytest.fixture
def db(project: Path, tmp_path: Path) -> Iterator[sennit.Database]:
    with sennit.open(tmp_path / "db") as db:
        db.index(project, recipe="code")
        yield db


def test_every_entity_of_a_project_is_a_record_with_path_and_lines(
    db: sennit.Database, project: Path
) -> None:
    key = f"{(project / 'auth.go').resolve()}::Authenticator.Authenticate"
    record = db.get(key)
    assert record is not None
    assert (record.collection, record.kind) == ("code", "method")
    assert record.metadata["calls"] == [
        "normalise",
        "locked",
        "samePassword",
        "failed",
        "succeeded",
        "issueToken",
    ]
    assert record.lines is not None
    first, last = record.lines
    text = (project / "auth.go").read_text().splitlines()[first - 1 : last]
    assert record.text == "\n".join(text)
    assert text[0] == "// Authenticate gives a token for the right credentials."


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("ItemCount", "Basket.ItemCount"),
        ("how is a password compared", "samePassword"),
        ("what somebody is about to buy", "Basket"),
        ("when does a token expire", "Token"),
    ],
)
def test_search_finds_the_described_entity(db: sennit.Database, query: str, name: str) -> None:
    found = [hit.record.metadata.get("qualified") for hit in db.search(query, recipe="code", limit=5)]
    assert name in found


def test_each_file_appears_once_before_any_repeats(db: sennit.Database) -> None:
    paths = [hit.record.path for hit in db.search("sign in with a token", recipe="code", limit=3)]
    assert len(set(paths)) == len(paths)


def test_a_plan_takes_what_a_search_found(db: sennit.Database) -> None:
    best = db.search("how is a password compared", recipe="code", limit=1)[0].record
    plan = db.plan(f"`{best.metadata['qualified']}`")
    assert plan.entries[0].key == best.id
    assert plan.entries[0].text == best.text


def test_deleted_file_is_in_no_plan_or_search(db: sennit.Database, project: Path) -> None:
    (project / "internal" / "store" / "basket.go").unlink()
    report = db.index(project, recipe="code")
    assert report.removed == 1
    left = db.plan("basket.go and `Basket`").entries
    assert not [entry for entry in left if entry.reason.startswith("anchor:") or "basket" in entry.path]
    found = [hit.record.path or "" for hit in db.search("basket", recipe="code")]
    assert not [path for path in found if path.endswith("basket.go")]


def test_file_with_syntax_errors_yields_its_valid_entities(db: sennit.Database, project: Path) -> None:
    (project / "broken.go").write_text(
        "package shop\n\nfunc good() int { return 1 }\n\nfunc bad( {\n\nfunc alsoGood() int { return 2 }\n"
    )
    db.index(project, recipe="code")
    assert db.plan("`good`").entries[0].qualified == "good"
