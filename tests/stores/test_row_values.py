"""Fields of records that are read without the records, and remembered."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import sennit
from sennit import OWNER, Caller, Record
from sennit.errors import SourceError
from sennit.stores.embedded import rowvalues

NAMES = ("id", "path", "timestamp", "role")


def values(db: sennit.Database, *ids: str, caller: Caller | None = None) -> list[tuple[object, ...]]:
    with db.store.snapshot() as snapshot:
        keys = [snapshot.key_of(name) for name in ids]
    with db.store.snapshot(db.audience(caller)) as snapshot:
        return snapshot.columns(np.array(keys, np.int64), NAMES)


def record(name: str, role: str, sensitivity: str = "normal") -> Record:
    return Record(
        id=name,
        text="…",
        path=f"{name}.py",
        timestamp=datetime(2026, 1, 1, tzinfo=UTC),
        sensitivity=sensitivity,
        metadata={"role": role},
    )


def test_they_are_those_of_the_record_also_after_it_changes(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        db.add([record("a", "test"), record("b", "source")])
        for _ in range(2):
            assert values(db, "b", "a") == [
                ("b", "b.py", moment, "source"),
                ("a", "a.py", moment, "test"),
            ]
        db.add([record("a", "stub")])
        assert values(db, "a") == [("a", "a.py", moment, "stub")]


def test_what_a_caller_may_not_see_is_not_told_when_another_has_seen_it(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        db.add([record("a", "test", "private"), record("b", "source")])
        assert len(values(db, "a", "b", caller=OWNER)) == 2
        assert len(values(db, "b", caller=Caller())) == 1
        with pytest.raises(SourceError, match="may not be seen"):
            values(db, "a", "b", caller=Caller())


def test_no_more_are_remembered_than_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rowvalues, "MOST", 3)
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        db.add([record(name, name) for name in "abcdef"])
        for wanted in ("ab", "abc", "cde", "abcdef", "f"):
            assert [role for *_, role in values(db, *wanted)] == list(wanted)
