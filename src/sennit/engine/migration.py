"""Moves a database to another place or to other servers, and fills the indexes there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sennit.engine.database import Database
from sennit.records import Json
from sennit.settings import Settings, load_settings
from sennit.stores.contract import TableCopy
from sennit.stores.open import copy_store
from sennit.stores.target import describe_target

MigrationProgress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and the whole."""

POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """What was copied and verified, and which indexes were filled."""

    source: str
    target: str
    tables: tuple[TableCopy, ...]
    roles: dict[str, str]
    records: int
    seconds: float

    def to_dict(self) -> dict[str, Json]:
        return {
            "source": self.source,
            "target": self.target,
            "tables": [one.to_dict() for one in self.tables],
            "roles": dict(self.roles),
            "records": self.records,
            "seconds": round(self.seconds, 3),
        }


def migrate(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str] | None = None,
    *,
    settings: Settings | None = None,
    progress: MigrationProgress | None = None,
) -> MigrationReport:
    """Copy a database to an empty place, verify it, and fill the indexes of the roles that the settings bind.

    Records, facts, vectors, models, folders, tokens, sessions and plans are copied as they are, and nothing is embedded
    again. The source stays as it is. A run that was stopped goes on where it ended. Without a target, only the indexes
    are filled, for example after a change of `[roles]`.
    """
    began = time.monotonic()
    tables = [] if target is None else copy_store(source, target, progress)
    place = source if target is None else target
    with Database(place, settings or load_settings(), background=False) as db:
        _fill(db, progress)
        return MigrationReport(
            describe_target(os.fspath(source)),
            describe_target(os.fspath(place)),
            tuple(tables),
            db.admin.bindings,
            db.store.count(),
            time.monotonic() - began,
        )


def _fill(db: Database, progress: MigrationProgress | None) -> None:
    """Bring every index up to date, and say how far it is."""
    if progress is None:
        db.admin.flush()
        return
    total = sum(db.admin.behind().values())
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            progress("indexes", total - sum(db.admin.behind().values()), total)

    watcher = threading.Thread(target=watch, name="sennit-migrate", daemon=True)
    watcher.start()
    try:
        db.admin.flush()
    finally:
        done.set()
        watcher.join()
    progress("indexes", total, total)
