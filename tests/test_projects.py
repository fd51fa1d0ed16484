"""Projects: several indexed folders in one database, one of which a call can be limited to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit
from ingest.git_repository import commit_all, git, new_repository
from sennit.errors import NotFound
from sennit.folders import ReadError


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project under git."""
    folder = new_repository(tmp_path / "shop")
    (folder / "orders.py").write_text("def cancel_order(order):\n    return refund(order)\n")
    (folder / "guide.md").write_text("# Refunds\n\nAn order is refunded within three days.\n")
    commit_all(folder, "Start")
    return folder


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """A project that is under no version control, with a file of the same name."""
    folder = tmp_path / "bank"
    folder.mkdir()
    (folder / "orders.py").write_text("def cancel_order(standing):\n    return revoke(standing)\n")
    (folder / "guide.md").write_text("# Transfers\n\nA standing order is cancelled a day before.\n")
    return folder


@pytest.fixture
def db(tmp_path: Path, shop: Path, bank: Path) -> Iterator[sennit.Database]:
    with sennit.open(tmp_path / "db") as opened:
        opened.index([shop, bank])
        opened.memory.remember("We cancel an order by telephone.")
        yield opened


def test_a_search_is_limited_to_a_project_by_its_name_or_a_folder(
    db: sennit.Database, shop: Path, bank: Path
) -> None:
    everywhere = db.search("cancel an order", limit=50)
    assert {hit.project for hit in everywhere} == {"shop", "bank", ""}
    for project in ("shop", str(shop), str(shop / "orders.py")):
        found = db.search("cancel an order", limit=50, project=project)
        # A memory is of no project, so it belongs to each.
        assert {hit.project for hit in found} == {"shop", ""}
    assert len(db.search("cancel an order", limit=50, project="all")) == len(everywhere)
    assert len(db.search("cancel an order", limit=50, project=str(bank.parent))) == len(everywhere)


def test_a_misspelt_project_is_an_error_inside_a_project_too(
    db: sennit.Database, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    for project in ("bnak", "x" * 300):
        with pytest.raises(NotFound, match="There is no project"):
            db.search("cancel an order", project=project)


def test_a_project_ranks_as_a_database_of_its_own(db: sennit.Database, tmp_path: Path, shop: Path) -> None:
    with sennit.open(tmp_path / "alone") as alone:
        alone.index(shop)
        alone.memory.remember("We cancel an order by telephone.")
        for query in ("cancel_order", "an order is refunded", "who telephones"):
            own = [(hit.text, hit.score, hit.relevance) for hit in alone.search(query)]
            assert [(hit.text, hit.score, hit.relevance) for hit in db.search(query, project="shop")] == own


def test_results_say_project_and_revision(db: sennit.Database, shop: Path) -> None:
    commit = git(shop, "rev-parse", "HEAD")
    (hit,) = db.search("order refunded within three days", project="shop", limit=1)
    assert (hit.project, hit.revision) == ("shop", f"main@{commit[:8]}")
    values = hit.to_dict()
    assert (values["project"], values["revision"]) == ("shop", f"main@{commit[:8]}")
    (other,) = db.search("standing order cancelled a day before", project="bank", limit=1)
    assert (other.project, other.revision) == ("bank", "")


def test_the_revision_is_that_of_the_last_index_run(db: sennit.Database, shop: Path) -> None:
    git(shop, "switch", "--quiet", "--create", "feature")
    (hit,) = db.search("order refunded within three days", project="shop", limit=1)
    assert hit.revision.startswith("main@")
    (shop / "guide.md").write_text("# Refunds\n\nAn order is refunded within five days.\n")
    db.index(shop)
    (hit,) = db.search("order refunded within five days", project="shop", limit=1)
    assert hit.revision.startswith("feature@")
    assert hit.revision.endswith("-dirty")


def test_grep_read_plan_and_ask_are_limited_to_a_project(db: sennit.Database, shop: Path, bank: Path) -> None:
    (passage,) = db.files.grep("cancel_order", project="bank").passages
    assert Path(passage.real) == bank / "orders.py"
    assert "standing" in db.files.read("orders.py", project="bank").text
    assert "refund" in db.files.read("orders.py", project="shop").text
    with pytest.raises(ReadError):
        db.files.read(str(shop / "orders.py"), project="bank")
    plan = db.plan("cancel_order", project="shop")
    assert [entry.key for entry in plan.entries]
    assert all("refund" in entry.preview for entry in plan.entries if "cancel_order" in entry.preview)
    assert not any("revoke" in entry.preview for entry in plan.entries)
    answer = db.ask("When is an order refunded?", project="bank")
    assert "three days" not in answer.text


def test_why_sees_only_the_project(db: sennit.Database, shop: Path, bank: Path) -> None:
    assert db.why("cancel an order", str(shop / "guide.md"), project="shop").kept
    with pytest.raises(NotFound):
        db.why("cancel an order", str(bank / "guide.md"), project="shop")


def test_an_unknown_project_is_an_error_with_the_nearest_name(db: sennit.Database) -> None:
    with pytest.raises(NotFound, match=r"no project 'shpo'\. Did you mean 'shop'\?.*Projects: bank, shop"):
        db.search("order", project="shpo")


def test_a_folder_of_another_tenant_is_no_project(db: sennit.Database, bank: Path, tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "plan.md").write_text("# Plan\n\nSell everything.\n")
    db.index(hidden, tenant="acme")
    with pytest.raises(NotFound, match=r"Projects: bank, shop$"):
        db.search("order", project="hidden")
    with pytest.raises(NotFound):
        db.search("order", project=str(hidden))
    assert db.search("sell", project="hidden", caller=sennit.Caller(tenant="acme"))


def test_a_folder_called_all_gets_another_name(db: sennit.Database, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "a.md").write_text("# Everything\n")
    db.index(folder)
    assert db.search("everything", project="all-2", limit=1)[0].project == "all-2"


def test_a_stored_plan_keeps_its_project_and_stays_listed(db: sennit.Database) -> None:
    caller = sennit.Caller(clearance="normal")
    db.plan("`cancel_order`", episode="e", project="shop", caller=caller)
    # The project narrows what the plan is made of, not who may see it.
    assert [one.name for one in db.code.episodes(caller=caller)] == ["e"]
    found = db.introspect("e", replay=True, caller=caller)
    assert found.project == ("shop",)
    assert {entry.key.split("/")[0] for entry in found.plan.entries} == {"shop"}
    assert not found.changes
    elsewhere = db.introspect("e", project="bank", replay=True, caller=caller)
    assert elsewhere.plan.entries == ()
    assert elsewhere.changes is not None
    assert {key.split("/")[0] for key in elsewhere.changes.added} == {"bank"}
    with pytest.raises(NotFound, match="no project 'shpo'"):
        db.introspect("e", project="shpo", caller=caller)


def test_lists_and_counts_are_limited_to_a_project(db: sennit.Database, shop: Path) -> None:
    assert [one.name for one in db.files.projects()] == ["bank", "shop"]
    assert db.files.projects()[1].revision is not None
    assert db.files.projects(caller=sennit.Caller(tenant="other")) == ()
    of_shop = db.records(project="shop", limit=100)
    assert {record.metadata.get("folder", "") for record in of_shop} == {"shop", ""}
    assert of_shop.total < db.records().total
    assert {Path(one.name).parent for one in db.files.paths(project="shop")} == {shop}
    assert sum(one.records for one in db.collections(project="shop")) == of_shop.total
