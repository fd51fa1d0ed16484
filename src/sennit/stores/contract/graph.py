"""The role `graph`: records by their names, and facts by their endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from sennit.filters import EVERYTHING, Filter
from sennit.graph.entity_linking import NameMatches
from sennit.graph.names import Hashes, Words
from sennit.graph.traversal import Edge
from sennit.stores.contract.answers import Keys, Mask
from sennit.stores.contract.capabilities import Capabilities
from sennit.stores.contract.snapshot import Snapshot


class LabelledText(NamedTuple):
    """The label of a record, and the words of its text."""

    label: str
    words: Words


class GraphView(Protocol):
    """The names and facts of one snapshot. A name is given by its hash."""

    @property
    def has_names(self) -> bool:
        """Whether any record has a name, visible or not."""
        ...

    @property
    def has_facts(self) -> bool: ...

    def entities_named(self, names: Hashes, where: Filter = EVERYTHING) -> NameMatches:
        """The visible records with these names that match the filter."""
        ...

    def labelled_texts(self, rows: list[int]) -> dict[int, LabelledText]:
        """The label and the words of each record; the records must exist."""
        ...

    def synonyms(self, names: Keys, where: Filter) -> dict[int, list[int]]:
        """For each name of an entity that declares aliases, all names of that entity."""
        ...

    def known_endpoints(self, names: Keys) -> Mask:
        """Which of the names are an endpoint of some fact, visible or not."""
        ...

    def edges(
        self, names: Sequence[int], count: int, at: datetime, where: Filter, *, history: bool = False
    ) -> list[list[Edge]]:
        """The heaviest visible facts of each name that are valid `at` a time and match the filter.

        Heaviest first, and of equal weight the newest first. Without `history`, `at` is the present, and facts that
        begin later are included.
        """
        ...


class GraphRole(Protocol):
    """Finds records by their names, and facts by their endpoints."""

    @property
    def capabilities(self) -> Capabilities: ...

    def applied(self, snapshot: Snapshot) -> int: ...

    def view(self, snapshot: Snapshot) -> GraphView: ...
