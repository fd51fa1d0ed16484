"""The four roles of one database together, with background work and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sennit.records import Json
from sennit.stores.contract.graph import GraphRole
from sennit.stores.contract.keyword import KeywordRole
from sennit.stores.contract.models import Embed
from sennit.stores.contract.records import RecordsRole
from sennit.stores.contract.servers import IndexServer
from sennit.stores.contract.vector import VectorRole
from sennit.stores.findings import Finding


class Cancelled(Exception):
    """Work was stopped in the middle because the store closes; a later process repeats it."""


class Upkeep(Protocol):
    """Work that can wait. None of it changes an answer, and it may stop at any point."""

    def flush(self, at_least: int = 1, *, wait: bool = False) -> None:
        """Bring the indexes up to date where at least this many changes are missing; `wait` for another process."""
        ...

    def merge(self, *, whole: bool = False, max_unmerged: int = 0, wait: bool = False) -> None:
        """Merge segments where there are more than `max_unmerged`; into one segment when `whole`."""
        ...

    def purge(self) -> None:
        """Delete what no reader needs any more."""
        ...

    def rest(self) -> None:
        """Do what waits for a pause, and release what only work in progress needs; called when there is none."""
        ...

    def cancel(self) -> None:
        """Make work in progress raise Cancelled."""
        ...


CheckProgress = Callable[[str, int, int], None]
"""Called with the name of the check, the number of records done and their total."""


class Check(Protocol):
    """Compares derived data with the records."""

    def __call__(
        self, *, quick: bool = False, progress: CheckProgress | None = None, embed: Embed | None = None
    ) -> list[Finding]:
        """`quick` compares a sample. With `embed`, some texts are embedded again and compared."""
        ...


@dataclass(frozen=True, slots=True)
class Backend:
    """The four roles of one database, and what keeps them in order."""

    records: RecordsRole
    keyword: KeywordRole
    vector: VectorRole
    graph: GraphRole
    upkeep: tuple[Upkeep, ...] = ()
    check: Check | None = None
    """None where nothing is derived that could be wrong."""
    bindings: Mapping[str, str] = field(default_factory=dict)
    """What each role is bound to, by name, for people: `sqlite`, `postgres`, `local`."""
    servers: Mapping[str, IndexServer] = field(default_factory=dict)
    """The servers of the roles and of attached collections, by name. They are closed with the database."""
    attached: Mapping[str, Any] = field(default_factory=dict)
    """The attached collections by name: `AttachedCollection` of `stores/attached.py`."""


@dataclass(frozen=True, slots=True)
class TableCopy:
    """One table of a migration: its rows, how many this run copied, and the checksum that both sides have."""

    name: str
    rows: int
    copied: int
    checksum: str

    def to_dict(self) -> dict[str, Json]:
        return {"table": self.name, "rows": self.rows, "copied": self.copied, "checksum": self.checksum}
