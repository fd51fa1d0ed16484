"""`sennit doctor` finds any damage to derived data and repairs it from the records."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import xxhash

import sennit
from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.filters import field
from sennit.stores import open as stores
from sennit.stores.codec import to_float16_bytes
from sennit.stores.contract import Model
from sennit.stores.embedded import checks, field_index
from sennit.stores.embedded.arrays import read_arrays, write_arrays
from sennit.stores.embedded.checks import check
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.findings import Finding, repair

from .helpers import embedded_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database with two segments in each index, deletes in them, and a buffer."""
    path = tmp_path / "db"
    with sennit.open(path) as db:
        db.add([record(at) for at in range(40)])
        db.remove(["r3", "r4"])
        db.admin.optimise()
        db.add([record(at) for at in range(40, 45)])
        db.maintainer.flush(wait=True)
        db.remove(["r5", "r41"])
        db.add([record(6, "changed"), record(50)])
    return path


def record(number: int, verb: str = "says") -> sennit.Record:
    return sennit.Record(
        id=f"r{number}",
        text=f"The record number {number} {verb} something about topic{number % 7}.",
        title=f"Title {number}" if number % 2 else "",
        kind="even" if number % 2 == 0 else "odd",
        metadata={"n": number, "tags": ["a", f"t{number % 3}"], "flag": number % 2 == 0, "f": 1.0},
    )


@contextmanager
def open_store(folder: Path) -> Iterator[EmbeddedStore]:
    with closing(stores.open_store(folder)) as store:
        yield store


def embed(model: Model, texts: Sequence[str]) -> Sequence[bytes]:
    embedder = create_embedder(EmbeddingSpec(**json.loads(model.spec)))
    assert embedder is not None
    return to_float16_bytes(embedder.embed_documents(texts))


def findings(folder: Path, *, quick: bool = False) -> list[Finding]:
    with open_store(folder) as store:
        return check(store, quick=quick, embed=embed)


def problems(folder: Path, *, quick: bool = False) -> dict[str, str]:
    return {f.check: f.message for f in findings(folder, quick=quick) if f.level == "problem"}


def run_repairs(folder: Path) -> list[str]:
    with open_store(folder) as store:
        return repair(check(store, embed=embed))


def sql(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "sennit.db")) as connection:
        changed = connection.execute(statement, values).rowcount
        connection.commit()
        assert changed > 0, "the statement must change something"


def rewrite(
    folder: Path, index: str, change: Callable[[dict[str, np.ndarray]], None], *, field_name: str = ""
) -> None:
    """Alter the first segment of an index with valid checksums, as a bug in sennit would."""
    manifest = folder / "index" / index / "manifest.json"
    document = json.loads(manifest.read_bytes())
    entry = next(entry for entry in document["body"]["segments"] if entry["field"] == field_name)
    arrays = {
        name: array.copy()
        for name, array in read_arrays(manifest.parent / entry["file"], entry["checksum"]).items()
    }
    change(arrays)
    entry["checksum"] = write_arrays(manifest.parent / entry["file"], arrays)
    entry["count"] = len(arrays.get("rows", ()))
    document["checksum"] = xxhash.xxh3_128_hexdigest(json.dumps(document["body"], sort_keys=True).encode())
    manifest.write_text(json.dumps(document))


@pytest.mark.parametrize("quick", [False, True])
def test_an_intact_database_has_no_problems(folder: Path, quick: bool) -> None:
    found = findings(folder, quick=quick)
    assert [f for f in found if f.level == "problem"] == []
    assert {
        "database",
        "records",
        "fields",
        "vectors",
        "graph",
        "keyword index",
        "vector-1 index",
        "model",
        "disk",
    } <= {f.check for f in found}
    assert found[0].to_dict()["repairable"] is False


def test_in_memory_and_empty_databases_are_checked(tmp_path: Path) -> None:
    with sennit.open(":memory:") as db:
        db.add([record(at) for at in range(5)])
        assert [f for f in check(embedded_store(db)) if f.level == "problem"] == []
    assert problems_of_new_database(tmp_path / "new") == []


def problems_of_new_database(folder: Path) -> list[Finding]:
    sennit.open(folder).close()
    return [f for f in findings(folder) if f.level != "ok"]


@pytest.mark.parametrize("index", ["keyword", "vector-1"])
@pytest.mark.parametrize("damage", ["flip", "cut", "delete", "manifest", "no manifest"])
def test_a_damaged_file_is_found_and_rebuilt(folder: Path, index: str, damage: str) -> None:
    path = sorted((folder / "index" / index).glob("*.seg"))[0]
    manifest = path.with_name("manifest.json")
    content = path.read_bytes()
    match damage:
        case "flip":
            path.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
        case "cut":
            path.write_bytes(content[: len(content) // 2])
        case "delete":
            path.unlink()
        case "manifest":
            manifest.write_bytes(manifest.read_bytes().replace(b'"low"', b'"law"', 1))
        case "no manifest":
            manifest.unlink()
    assert list(problems(folder)) == [f"{index} index"]
    assert f"rebuilt the {index} index from the records" in run_repairs(folder)
    assert problems(folder) == {}


def test_a_whole_index_that_is_gone_is_no_problem(folder: Path) -> None:
    shutil.rmtree(folder / "index")
    assert problems(folder) == {}


def drop_a_record(arrays: dict[str, np.ndarray]) -> None:
    arrays["rows"][0] = 10**6


def change_a_count(arrays: dict[str, np.ndarray]) -> None:
    arrays["count_text"] += 1


def change_a_term(arrays: dict[str, np.ndarray]) -> None:
    arrays["terms"][3] += np.uint64(1)


def change_an_id(arrays: dict[str, np.ndarray]) -> None:
    arrays["ids"][0] ^= 1


def change_a_length(arrays: dict[str, np.ndarray]) -> None:
    arrays["lengths"][0, 2] += 1


def change_a_vector(arrays: dict[str, np.ndarray]) -> None:
    arrays["vectors"][5] = -arrays["vectors"][5]


def duplicate_last_record(arrays: dict[str, np.ndarray]) -> None:
    for name in arrays:
        arrays[name] = np.concatenate([arrays[name], arrays[name][-1:]])


@pytest.mark.parametrize(
    ("index", "change", "message"),
    [
        ("keyword", change_a_count, "disagrees with the record"),
        ("keyword", change_a_term, "disagrees with the record"),
        ("keyword", change_an_id, "disagrees with the record 'r0'"),
        ("keyword", change_a_length, "disagrees with the record 'r2'"),
        ("vector-1", change_a_vector, "disagrees with the record"),
        ("vector-1", drop_a_record, "1 records are missing; 1 removed records are still indexed"),
        ("vector-1", duplicate_last_record, "1 records are indexed twice"),
    ],
)
def test_an_index_that_disagrees_is_found_and_rebuilt(
    folder: Path, index: str, change: Callable[[dict[str, np.ndarray]], None], message: str
) -> None:
    rewrite(folder, index, change)
    found = problems(folder)
    assert list(found) == [f"{index} index"]
    assert message in found[f"{index} index"]
    assert problems(folder, quick=True)
    assert run_repairs(folder) == [f"rebuilt the {index} index from the records"]
    assert problems(folder) == {}
    with sennit.open(folder) as db:
        assert db.search("topic3", recipe="keyword").hits


def build_field_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_index, "COMPACT_AFTER", 1)
    with sennit.open(folder) as db:
        assert [hit.id for hit in db.search("number", filters=field("n") == 8)] == ["r8"]
        db.add([record(51)])


def drop_a_row(arrays: dict[str, np.ndarray]) -> None:
    arrays["rows 1"][3] = arrays["rows 1"][2]


def change_a_value(arrays: dict[str, np.ndarray]) -> None:
    values = json.loads(arrays["values 1"].tobytes())
    values[values.index(8)] = 8.5
    arrays["values 1"] = np.frombuffer(json.dumps(values).encode(), np.uint8)


def change_a_type(arrays: dict[str, np.ndarray]) -> None:
    for part in ("values", "starts", "rows"):
        arrays[f"{part} 0"] = arrays.pop(f"{part} 1")


def drop_everything(arrays: dict[str, np.ndarray]) -> None:
    arrays.clear()


@pytest.mark.parametrize("change", [drop_a_row, change_a_value, change_a_type, drop_everything])
def test_a_wrong_field_index_is_found_and_deleted(
    folder: Path, change: Callable[[dict[str, np.ndarray]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    build_field_index(folder, monkeypatch)
    rewrite(folder, "fields", change, field_name="n")
    found = problems(folder)
    assert list(found) == ["fields"]
    assert "the field index of n disagrees with the records" in found["fields"]
    assert "deleted the field index of n" in run_repairs(folder)[0]
    assert problems(folder) == {}
    with sennit.open(folder) as db:
        assert [hit.id for hit in db.search("number", filters=field("n") == 8)] == ["r8"]


def test_field_values_of_removed_records_are_no_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_field_index(folder, monkeypatch)
    with sennit.open(folder) as db:
        db.remove(["r8", "r9"])
    assert problems(folder) == {}


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "DELETE FROM vectors WHERE number = (SELECT min(number) FROM vectors)",
            "have no vector and are not pending",
        ),
        (
            "UPDATE vectors SET hash = x'00' WHERE number = (SELECT min(number) FROM vectors)",
            "vectors belong to no text or to no model",
        ),
        (
            "UPDATE vectors SET vector = x'0102' WHERE number = (SELECT min(number) FROM vectors)",
            "vectors belong to no text",
        ),
        ("INSERT INTO vectors VALUES (999, 77, x'00', x'00', 0)", "vectors belong to no text"),
        ("INSERT INTO pending_vectors VALUES (1, 999999)", "pending entries"),
        ("INSERT INTO pending_vectors SELECT 99, row FROM records LIMIT 1", "pending entries"),
    ],
)
def test_wrong_vectors_are_deleted_and_computed_again(folder: Path, statement: str, message: str) -> None:
    sql(folder, statement)
    found = findings(folder)
    assert any(message in f.message for f in found if f.check == "vectors")
    for _ in range(2):
        # The first repair deletes vectors that an index may still contain; the second repairs the index.
        run_repairs(folder)
    with sennit.open(folder) as db:
        db.maintainer.embed_pending()
        assert len(db.search("record", limit=100)) == len(db)
    assert problems(folder) == {}


def test_vectors_of_another_text_are_found_and_computed_again(folder: Path) -> None:
    shutil.rmtree(folder / "index")
    sql(
        folder,
        "UPDATE vectors SET vector = (SELECT vector FROM vectors LIMIT 1) WHERE number = (SELECT max(number) FROM vectors)",
    )
    assert list(problems(folder)) == ["model"]
    run_repairs(folder)
    with sennit.open(folder) as db:
        db.maintainer.embed_pending()
    assert problems(folder) == {}


def add_facts(folder: Path) -> None:
    with sennit.open(folder) as db:
        db.add([sennit.Entity(id=name, name=name.title()).to_record() for name in ("ada", "cleo")])
        db.memory.add_facts(
            [sennit.Fact(id="met", subject="Ada", relation="met", object="Bob", sources=("r7", "r8"))]
        )
        db.memory.add_facts(
            [sennit.Fact(id="left", subject="Ada", relation="left", object="Bob", supersedes=("met",))]
        )


def of_graph(folder: Path, *, quick: bool = False) -> list[Finding]:
    return [one for one in findings(folder, quick=quick) if one.check == "graph"]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM names WHERE row = (SELECT row FROM records WHERE id = 'ada')",
        "UPDATE names SET flags = 0 WHERE row = (SELECT row FROM records WHERE id = 'ada')",
        "DELETE FROM edges WHERE negative_row = (SELECT -row FROM records WHERE id = 'left')",
        "UPDATE edges SET valid_until = 5 WHERE negative_row = (SELECT -row FROM records WHERE id = 'left')",
        "INSERT INTO names VALUES (999, 5, 0)",
    ],
)
def test_wrong_names_and_facts_are_found_and_derived_again(folder: Path, statement: str) -> None:
    add_facts(folder)
    (before,) = of_graph(folder)
    assert (before.level, before.message) == (
        "ok",
        "2 facts and 2 entities match the records; entities without a fact: 1",
    )
    sql(folder, statement)
    (found,) = of_graph(folder)
    assert found.level == "problem"
    run_repairs(folder)
    assert of_graph(folder) == [before]


def test_a_quick_check_compares_the_names_and_facts_of_its_sample(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "QUICK_SAMPLE_RECORDS", 10)
    add_facts(folder)
    assert [one.level for one in of_graph(folder, quick=True)] == ["ok"]
    sql(folder, "UPDATE names SET flags = flags + 4")
    assert [one.level for one in of_graph(folder, quick=True)] == ["problem"]


def test_facts_that_name_missing_records_are_noted(folder: Path) -> None:
    add_facts(folder)
    with sennit.open(folder) as db:
        db.remove(["r8", "met"])
        db.memory.add_facts(
            [sennit.Fact(id="knew", subject="Ada", relation="knew", object="Bob", sources=("r8",))]
        )
    _, *notes = of_graph(folder)
    assert [(one.level, one.message) for one in notes] == [
        ("note", "a source that is missing is named by the record 'knew'"),
        ("note", "a superseded fact that is missing is named by the record 'left'"),
    ]


def test_a_record_changed_outside_sennit_is_reported_and_not_repaired(folder: Path) -> None:
    sql(folder, "UPDATE records SET text = 'Altered by hand' WHERE id = 'r8'")
    found = findings(folder)
    (finding,) = [f for f in found if f.check == "records"]
    assert finding.level == "problem"
    assert "'r8'" in finding.message
    assert finding.fix is None


def test_a_damaged_sqlite_file_is_the_only_finding(folder: Path) -> None:
    path = folder / "sennit.db"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'records_embedding_hash'"
        (root,) = connection.execute(query).fetchone()
    content = bytearray(path.read_bytes())
    content[root * page - 200 : root * page] = bytes(200)
    path.write_bytes(content)
    with open_store(folder) as store:
        found = check(store)
    assert [f.check for f in found] == ["database"]
    assert found[0].level == "problem"
    assert "sennit export" in found[0].message


def test_what_is_left_over_is_swept(folder: Path) -> None:
    stray = folder / "index" / "keyword" / "0-1-dead.seg"
    other = folder / "index" / "vector-99" / "old.seg"
    fresh = folder / "index" / "keyword" / "being-written.tmp"
    other.parent.mkdir()
    for path in (stray, other, fresh):
        path.write_bytes(b"x" * 1000)
    for path in (stray, other):
        os.utime(path, (0, 0))
    (finding,) = [f for f in findings(folder) if f.check == "orphans"]
    assert finding.level == "note"
    assert finding.message.startswith("2 orphaned files")
    assert run_repairs(folder) == ["deleted orphaned files and replaced models"]
    assert not stray.exists()
    assert not other.parent.exists()
    assert fresh.exists()


def test_progress_and_pending_vectors_are_reported(folder: Path) -> None:
    sql(folder, "INSERT INTO pending_vectors SELECT 1, row FROM records LIMIT 3")
    calls: list[tuple[str, int, int]] = []
    with open_store(folder) as store:
        found = check(store, progress=lambda *call: calls.append(call))
    assert {"records", "keyword index", "vector-1 index"} <= {what for what, _, _ in calls}
    assert any(f.check == "pending vectors" and "3 of 42 records lack a vector" in f.message for f in found)
