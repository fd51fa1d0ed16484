"""Record fields are read without the rest of the record, and cached."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import sennit
from sennit import OWNER, Caller, Record
from sennit.errors import SourceError
from sennit.stores.embedded import field_cache

NAMES = ("id", "path", "timestamp", "role")


def values(db: sennit.Database, *ids: str, caller: Caller | None = None) -> list[tuple[object, ...]]:
    with db.store.snapshot() as snapshot:
        keys = [snapshot.find_key(name) for name in ids]
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


def test_cached_fields_follow_a_changed_record(tmp_path: Path) -> None:
    timestamp = datetime(2026, 1, 1, tzinfo=UTC)
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        db.add([record("a", "test"), record("b", "source")])
        for _ in range(2):
            assert values(db, "b", "a") == [
                ("b", "b.py", timestamp, "source"),
                ("a", "a.py", timestamp, "test"),
            ]
        db.add([record("a", "stub")])
        assert values(db, "a") == [("a", "a.py", timestamp, "stub")]


def test_cache_does_not_reveal_hidden_fields_to_another_caller(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        db.add([record("a", "test", "private"), record("b", "source")])
        assert len(values(db, "a", "b", caller=OWNER)) == 2
        assert len(values(db, "b", caller=Caller())) == 1
        with pytest.raises(SourceError, match="the caller may not see"):
            values(db, "a", "b", caller=Caller())


def test_full_cache_still_returns_the_right_fields(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field_cache, "MAX_CACHED_ROWS", 3)
    with sennit.open(tmp_path / "db", embedding__provider="none") as db:
        db.add([record(name, name) for name in "abcdef"])
        for wanted in ("ab", "abc", "cde", "abcdef", "f"):
            assert [role for *_, role in values(db, *wanted)] == list(wanted)
