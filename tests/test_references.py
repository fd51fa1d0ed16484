"""What a search prints is what `find`, `why`, `read` and `remove` take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit import Caller, Record
from sennit.engine import Database
from sennit.engine.references import is_short_id, records_covering
from sennit.errors import AmbiguousReference, NotFound
from sennit.folders import ReadError, parse_location

PAGE = "# Backups\n\nBackups run at two.\n\n## Restore\n\nStop the server, then restore.\n"
STRANGER = Caller(clearance="normal", scopes=frozenset({"public"}), name="stranger")
SECRET = Record(
    id="secret-vault-1", text="The vault opens at nine.", sensitivity="private", path="vault.md", lines=(1, 9)
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a page in `docs`."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "backup.md").write_text(PAGE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def db(folder: Path) -> Iterator[Database]:
    with sennit.open(folder / "db") as db:
        db.index("docs", recipe="docs")
        db.add(
            [
                Record(id="note-17", text="The ferry leaves at noon."),
                Record(id="note-18", text="The ferry comes back at four."),
                Record(id="page", text="A page of the web.", url="https://example.org/a"),
                SECRET,
            ]
        )
        yield db


def test_an_id_is_found_before_everything_else(db: Database) -> None:
    db.add([Record(id="docs/backup.md", text="an id that looks like a path")])
    assert db.find("docs/backup.md").text == "an id that looks like a path"
    assert db.find("note-17").text == "The ferry leaves at noon."


def test_the_citation_of_each_hit_is_a_reference_to_it(db: Database) -> None:
    found = db.search("restore the server ferry", limit=20)
    assert len(found) > 3
    for hit in found:
        assert db.find(hit.citation).id == hit.id


def test_a_location_is_relative_to_the_current_folder(
    db: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = db.find(f"{folder}/docs/backup.md:6")
    assert db.find("docs/backup.md:6").id == whole.id
    monkeypatch.chdir(folder / "docs")
    assert db.find("backup.md:6").id == whole.id
    assert db.find("./backup.md:6").id == whole.id


def test_a_location_is_relative_to_an_indexed_folder_elsewhere(
    db: Database, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = db.find("docs/backup.md:6").id
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert db.find("backup.md:6").id == here


def test_lines_mean_the_shortest_record_that_covers_them() -> None:
    outline, function, next_one = (
        Record(id=name, text="x", path="a.py", lines=lines)
        for name, lines in (("outline", (1, 90)), ("function", (4, 11)), ("next", (12, 20)))
    )
    records = [outline, function, next_one]
    assert records_covering(records, (1, 90)) == [outline]
    assert records_covering(records, (5, 5)) == [function]
    assert records_covering(records, (10, 13)) == [outline]
    assert records_covering([function, next_one], (10, 13)) == [function, next_one]
    assert records_covering([function, next_one], (10, 15)) == [next_one]
    assert records_covering(records, (91, 95)) == []


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 20)), min_size=1, max_size=8),
    st.integers(1, 40),
    st.integers(0, 20),
)
def test_no_other_record_covers_lines_more_tightly(
    spans: list[tuple[int, int]], first: int, length: int
) -> None:
    records = [
        Record(id=str(number), text="x", lines=(start, start + more))
        for number, (start, more) in enumerate(spans)
    ]
    wanted = (first, first + length)
    found = records_covering(records, wanted)
    covering = [r for r in records if r.lines and r.lines[0] <= wanted[0] and wanted[1] <= r.lines[1]]
    if covering:
        assert found
        best = min(r.lines[1] - r.lines[0] for r in covering if r.lines)
        assert all(r in covering and r.lines and r.lines[1] - r.lines[0] == best for r in found)


def test_a_unique_prefix_of_an_id_means_the_record(db: Database) -> None:
    memory = db.remember("Priya prefers the aisle seat.")
    assert db.find(memory.id[:12]).id == memory.id
    assert db.find("page").id == db.find("https://example.org/a").id == "page"
    with pytest.raises(NotFound):
        db.find(memory.id[:3])


def test_the_hash_of_a_file_record_means_the_record(db: Database) -> None:
    record = db.find("docs/backup.md:6")
    assert db.find(record.id.rpartition("#")[2][:6]).id == record.id


def test_the_id_of_a_file_record_may_have_a_relative_path(db: Database) -> None:
    record = db.find("docs/backup.md:6")
    relative = f"docs/backup.md#{record.id.rpartition('#')[2]}"
    assert db.find(relative).id == db.find(relative[:-4]).id == record.id


def test_an_ambiguous_reference_lists_the_candidates(db: Database) -> None:
    with pytest.raises(AmbiguousReference, match=r"note-17\n.*note-18") as error:
        db.find("note-1")
    assert error.value.candidates == ("note-17", "note-18")
    with pytest.raises(AmbiguousReference, match=r"backup\.md#"):
        db.find("docs/backup.md")


def test_an_unknown_reference_names_the_nearest(db: Database) -> None:
    with pytest.raises(NotFound, match=r"nearest: .*note-1"):
        db.find("note-71")
    with pytest.raises(NotFound, match=r"nearest: .*docs/backup\.md"):
        db.find("docs/bakup.md")
    with pytest.raises(NotFound, match=r"nearest: .*docs/backup\.md:1"):
        db.find("docs/backup.md:400-410")


@pytest.mark.parametrize(
    "reference", ["secret-vault-1", "secret-vault", "vault.md:3", "vault.md", "secret-vault-2"]
)
def test_a_hidden_record_is_neither_found_nor_named(db: Database, reference: str) -> None:
    assert db.find("secret-vault", caller=sennit.OWNER).id == SECRET.id
    with pytest.raises(NotFound) as error:
        db.find(reference, caller=STRANGER)
    others = str(error.value).replace(repr(reference), "")
    assert "secret" not in others
    assert "vault" not in others


def test_why_takes_what_a_search_prints(db: Database) -> None:
    found = db.search("restore the server")
    assert db.why("restore the server", found[0].citation).id == found[0].id
    assert db.why("restore the server", "note-17").kept
    relative = os.path.relpath(found[0].citation)
    assert db.why("restore the server", relative).rank == 1


def test_why_takes_the_location_of_a_passage_that_is_no_record(db: Database) -> None:
    found = db.search("restore", recipe="files", keywords=["restore"])
    assert db.why("restore", found[0].citation, recipe="files", keywords=["restore"]).rank == 1


def test_read_takes_a_location_and_an_id(db: Database, folder: Path) -> None:
    assert db.files.read("backup.md:1-1").text == "# Backups\n"
    assert db.files.read(f"{folder}/docs/backup.md:3").text == "Backups run at two.\n"
    record = db.find("docs/backup.md:6")
    text = db.files.read(record.id).text
    assert text.strip() == record.text.strip() or record.text.strip() in text
    with pytest.raises(ReadError, match="NOT_FOUND"):
        db.files.read("backup.md:x")
    with pytest.raises(ReadError, match="BAD_RANGE"):
        db.files.read("backup.md:400")


def test_read_takes_a_location_from_a_folder_beside_the_indexed_one(
    db: Database, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = folder / "beside" / "deeper"
    beside.mkdir(parents=True)
    (folder / "docs" / "link.md").symlink_to(folder / "outside.md")
    (folder / "outside.md").write_text("not indexed")
    monkeypatch.chdir(beside)
    hit = db.search("stop the server", limit=1)[0]
    assert hit.citation == "../../docs/backup.md:5-7"
    assert db.files.read(hit.citation).text.startswith("## Restore")
    assert db.files.read("./../../docs/backup.md").text == PAGE
    for refused in ("../../outside.md", "../../docs/link.md", "../../docs/../outside.md"):
        with pytest.raises(ReadError, match="ACCESS_DENIED"):
            db.files.read(refused)


def test_a_file_whose_name_ends_like_a_location_is_read_as_it_is(db: Database, folder: Path) -> None:
    (folder / "docs" / "backup.md:3").write_text("an odd name\n")
    assert db.files.read("backup.md:3").text == "an odd name\n"


def test_a_path_without_lines_means_all_records_of_the_file_to_remove(db: Database) -> None:
    found = db.find_removable(["docs/backup.md"])
    assert len(found) > 1
    assert {Path(record.path or "").name for record in found} == {"backup.md"}


def test_the_beginning_of_an_id_is_removed_only_if_sennit_made_the_id(db: Database) -> None:
    memory = db.remember("Priya prefers the aisle seat.")
    assert [record.id for record in db.find_removable([memory.id[:14]])] == [memory.id]
    db.remove(["note-18"])
    with pytest.raises(NotFound):
        db.find_removable(["note-1"])
    assert db.find("note-1").id == "note-17"


@given(st.text(max_size=8), st.text("0123456789abcdef", min_size=12, max_size=32), st.integers(0, 40))
def test_a_short_id_keeps_four_digits_of_the_hash(stem: str, digest: str, length: int) -> None:
    record_id = f"{stem}-{digest}"
    short = is_short_id(record_id[:length], record_id)
    assert short == (length >= len(stem) + 1 + 4)


@settings(max_examples=200)
@given(st.text(min_size=1), st.integers(1, 10**9), st.integers(0, 10**6))
def test_a_citation_is_parsed_back(path: str, first: int, more: int) -> None:
    record = Record(id="x", text="", path="p", lines=(first, first + more))
    suffix = sennit.Hit(record, 0.0, 1).citation.removeprefix("p")
    assert parse_location(f"{path}{suffix}") == (path, (first, first + more))


def test_lines_that_several_records_share_mean_the_most_specific_and_remove_all(
    db: Database, folder: Path
) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "storage.py").write_text('class Storage:\n    """Keeps copies."""\n')
    db.index("src")
    assert db.find("src/storage.py:1-2").id.endswith("::Storage")
    removable = [record.id for record in db.find_removable(["src/storage.py:1-2"])]
    assert db.remove(removable) == 2
    assert "storage.py" not in [hit.path for hit in db.search("keeps copies")]
