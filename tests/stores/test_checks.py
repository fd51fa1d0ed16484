"""What doctor proves: whatever is done to what is derived is found, and mended from the records."""

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
from sennit.embedding import EmbeddingSpec, build
from sennit.filters import field
from sennit.stores.embedded import fields
from sennit.stores.embedded.arrays import read_arrays, write_arrays
from sennit.stores.embedded.checks import Finding, check, repair
from sennit.stores.embedded.codec import half
from sennit.stores.embedded.models import Model
from sennit.stores.embedded.store import EmbeddedStore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database with two segments in each index, removals in them, and a tail."""
    path = tmp_path / "db"
    with sennit.open(path) as db:
        db.add([record(at) for at in range(40)])
        db.remove(["r3", "r4"])
        db.optimise()
        db.add([record(at) for at in range(40, 45)])
        db.keeper.fold(wait=True)
        db.remove(["r5", "r41"])
        db.add([record(6, "changed"), record(50)])
    return path


def record(at: int, said: str = "says") -> sennit.Record:
    return sennit.Record(
        id=f"r{at}",
        text=f"The record number {at} {said} something about topic{at % 7}.",
        title=f"Title {at}" if at % 2 else "",
        kind="even" if at % 2 == 0 else "odd",
        metadata={"n": at, "tags": ["a", f"t{at % 3}"], "flag": at % 2 == 0, "f": 1.0},
    )


@contextmanager
def opened(folder: Path) -> Iterator[EmbeddedStore]:
    with closing(EmbeddedStore(folder)) as store:
        yield store


def embed(model: Model, texts: Sequence[str]) -> Sequence[bytes]:
    embedder = build(EmbeddingSpec(**json.loads(model.spec)))
    assert embedder is not None
    return half(embedder.embed_documents(texts))


def findings(folder: Path, *, quick: bool = False) -> list[Finding]:
    with opened(folder) as store:
        return check(store, quick=quick, embed=embed)


def problems(folder: Path, *, quick: bool = False) -> dict[str, str]:
    return {f.check: f.message for f in findings(folder, quick=quick) if f.level == "problem"}


def mended(folder: Path) -> list[str]:
    with opened(folder) as store:
        return repair(check(store, embed=embed))


def sql(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "sennit.db")) as connection:
        changed = connection.execute(statement, values).rowcount
        connection.commit()
        assert changed > 0, "the damage must be done"


def rewrite(
    folder: Path, index: str, change: Callable[[dict[str, np.ndarray]], None], *, of: str = ""
) -> None:
    """Alter the first segment of an index, with the right checksums: as a bug in sennit would."""
    manifest = folder / "index" / index / "manifest.json"
    document = json.loads(manifest.read_bytes())
    entry = next(entry for entry in document["body"]["segments"] if entry["of"] == of)
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
def test_a_sound_database_has_no_problems(folder: Path, quick: bool) -> None:
    found = findings(folder, quick=quick)
    assert [f for f in found if f.level == "problem"] == []
    assert {
        "database",
        "records",
        "fields",
        "vectors",
        "keyword index",
        "vector-1 index",
        "model",
        "disk",
    } <= {f.check for f in found}
    assert found[0].to_dict()["repairable"] is False


def test_a_database_in_memory_and_an_empty_one_are_checked_too(tmp_path: Path) -> None:
    with sennit.open(":memory:") as db:
        db.add([record(at) for at in range(5)])
        assert [f for f in check(db.store) if f.level == "problem"] == []
    assert problems_of_new(tmp_path / "new") == []


def problems_of_new(folder: Path) -> list[Finding]:
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
    assert f"rebuilt the {index} index from the records" in mended(folder)
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


def twice(arrays: dict[str, np.ndarray]) -> None:
    for name in arrays:
        arrays[name] = np.concatenate([arrays[name], arrays[name][-1:]])


@pytest.mark.parametrize(
    ("index", "change", "said"),
    [
        ("keyword", change_a_count, "disagrees with the record"),
        ("keyword", change_a_term, "disagrees with the record"),
        ("keyword", change_an_id, "disagrees with the record 'r0'"),
        ("keyword", change_a_length, "disagrees with the record 'r2'"),
        ("vector-1", change_a_vector, "disagrees with the record"),
        ("vector-1", drop_a_record, "1 records are missing; 1 removed records are still there"),
        ("vector-1", twice, "1 records are there twice"),
    ],
)
def test_an_index_that_disagrees_is_found_and_rebuilt(
    folder: Path, index: str, change: Callable[[dict[str, np.ndarray]], None], said: str
) -> None:
    rewrite(folder, index, change)
    found = problems(folder)
    assert list(found) == [f"{index} index"]
    assert said in found[f"{index} index"]
    assert problems(folder, quick=True)
    assert mended(folder) == [f"rebuilt the {index} index from the records"]
    assert problems(folder) == {}
    with sennit.open(folder) as db:
        assert db.search("topic3", recipe="keyword").hits


def with_kept_fields(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "SETTLE_AT", 1)
    with sennit.open(folder) as db:
        assert [hit.id for hit in db.search("number", filters=field("n") == 8)] == ["r8"]
        db.add([record(51)])


def one_less(arrays: dict[str, np.ndarray]) -> None:
    arrays["rows 1"][3] = arrays["rows 1"][2]


def another_value(arrays: dict[str, np.ndarray]) -> None:
    values = json.loads(arrays["values 1"].tobytes())
    values[values.index(8)] = 8.5
    arrays["values 1"] = np.frombuffer(json.dumps(values).encode(), np.uint8)


def another_type(arrays: dict[str, np.ndarray]) -> None:
    for part in ("values", "starts", "rows"):
        arrays[f"{part} 0"] = arrays.pop(f"{part} 1")


def none_at_all(arrays: dict[str, np.ndarray]) -> None:
    arrays.clear()


@pytest.mark.parametrize("change", [one_less, another_value, another_type, none_at_all])
def test_kept_values_that_are_not_those_of_the_records_are_found_and_forgotten(
    folder: Path, change: Callable[[dict[str, np.ndarray]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_kept_fields(folder, monkeypatch)
    rewrite(folder, "fields", change, of="n")
    found = problems(folder)
    assert list(found) == ["fields"]
    assert "values of n is not what the records say" in found["fields"]
    assert "forgot what was kept of the values of n" in mended(folder)[0]
    assert problems(folder) == {}
    with sennit.open(folder) as db:
        assert [hit.id for hit in db.search("number", filters=field("n") == 8)] == ["r8"]


def test_kept_values_of_removed_records_are_no_problem(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_kept_fields(folder, monkeypatch)
    with sennit.open(folder) as db:
        db.remove(["r8", "r9"])
    assert problems(folder) == {}


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "DELETE FROM vectors WHERE number = (SELECT min(number) FROM vectors)",
            "have no vector and do not wait",
        ),
        (
            "UPDATE vectors SET hash = x'00' WHERE number = (SELECT min(number) FROM vectors)",
            "vectors of texts or models that are gone",
        ),
        (
            "UPDATE vectors SET vector = x'0102' WHERE number = (SELECT min(number) FROM vectors)",
            "vectors of texts or models",
        ),
        ("INSERT INTO vectors VALUES (999, 77, x'00', x'00', 0)", "vectors of texts or models"),
        ("INSERT INTO pending VALUES (1, 999999)", "backlog"),
        ("INSERT INTO pending SELECT 99, row FROM records LIMIT 1", "backlog"),
    ],
)
def test_vectors_are_cleared_and_made_again(folder: Path, statement: str, said: str) -> None:
    sql(folder, statement)
    found = findings(folder)
    assert any(said in f.message for f in found if f.check == "vectors")
    for _ in range(2):
        # What a first repair queues, an index may have yet to let go of.
        mended(folder)
    with sennit.open(folder) as db:
        db.keeper.embed_backlog()
        assert len(db.search("record", limit=100)) == len(db)
    assert problems(folder) == {}


def test_vectors_of_another_text_are_found_and_made_again(folder: Path) -> None:
    shutil.rmtree(folder / "index")
    sql(
        folder,
        "UPDATE vectors SET vector = (SELECT vector FROM vectors LIMIT 1) WHERE number = (SELECT max(number) FROM vectors)",
    )
    assert list(problems(folder)) == ["model"]
    mended(folder)
    with sennit.open(folder) as db:
        db.keeper.embed_backlog()
    assert problems(folder) == {}


def test_a_record_changed_from_outside_is_reported_and_left_alone(folder: Path) -> None:
    sql(folder, "UPDATE records SET text = 'Altered by hand' WHERE id = 'r8'")
    found = findings(folder)
    (finding,) = [f for f in found if f.check == "records"]
    assert finding.level == "problem"
    assert "'r8'" in finding.message
    assert finding.fix is None


def test_a_damaged_database_is_told_and_nothing_else(folder: Path) -> None:
    path = folder / "sennit.db"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'records_embedding'"
        (root,) = connection.execute(query).fetchone()
    content = bytearray(path.read_bytes())
    content[root * page - 200 : root * page] = bytes(200)
    path.write_bytes(content)
    with opened(folder) as store:
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
    (finding,) = [f for f in findings(folder) if f.check == "leftovers"]
    assert finding.level == "note"
    assert finding.message.startswith("2 files")
    assert mended(folder) == ["deleted what was left over"]
    assert not stray.exists()
    assert not other.parent.exists()
    assert fresh.exists()


def test_progress_and_backlog_are_told(folder: Path) -> None:
    sql(folder, "INSERT INTO pending SELECT 1, row FROM records LIMIT 3")
    told: list[tuple[str, int, int]] = []
    with opened(folder) as store:
        found = check(store, progress=lambda *now: told.append(now))
    assert {"records", "keyword index", "vector-1 index"} <= {what for what, _, _ in told}
    assert any(f.check == "backlog" and "3 of 42 records wait" in f.message for f in found)
