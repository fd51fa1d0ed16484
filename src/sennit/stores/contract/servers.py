"""Indexes on servers. A binding implements `IndexServer` and `ServerIndex`, and `stores/buffered_index.py` makes a role
of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Filter
from sennit.records import Record
from sennit.stores.contract.answers import Floats, ScoredKeys
from sennit.stores.contract.capabilities import Capabilities
from sennit.stores.contract.models import Model
from sennit.stores.contract.snapshot import Snapshot
from sennit.stores.findings import Finding

T = TypeVar("T")
QueryT = TypeVar("QueryT")
AskedT = TypeVar("AskedT", contravariant=True)


class Document(NamedTuple):
    """A record as an index on a server gets it."""

    key: int
    record: Record
    vector: NDArray[np.float32]
    """By the active model; zeros while there is none."""


class ServerIndex(Protocol[AskedT]):
    """An index on a server. A failure to reach it raises SourceError."""

    @property
    def name(self) -> str:
        """Identifies the index in the source of truth. An index of another kind or for another model has another."""
        ...

    @property
    def server(self) -> IndexServer:
        """The connection that its searches go through."""
        ...

    def applied(self) -> int:
        """The number that the last `apply` stored on the server; 0 for an index that is empty or lost."""
        ...

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        """Store and delete documents under their keys, then the number. Applying a batch twice does no harm."""
        ...

    def reset(self) -> None:
        """Delete everything."""
        ...

    def score(self, query: AskedT, documents: Sequence[Document]) -> Floats:
        """The scores of documents on the scale of a search, computed in this process; nan where one does not match."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ServerSearch:
    """One search of one index on a server: the best documents, best first."""

    index: ServerIndex[Any]
    query: Any
    """A KeywordQuery or a unit vector, as the index takes it."""
    limit: int
    where: Filter
    """Has only operators that the capabilities of the role name, and it holds what the audience may see."""
    applied: int = 0
    """The last change that the index must have. A server that has lost some of them answers with an error."""


ServerAnswer: TypeAlias = ScoredKeys | SourceError
"""What a server answers to one search; no key appears twice, and no score is nan.

An index of words that knows which terms each record has says so by `MatchedKeys`: nobody need read the texts for them.
"""


class IndexServer(Protocol):
    """A connection to a server, which the indexes of a database share. Any thread may use it.

    Opening it must not need the server: one that is down at the start is reported as degraded, and used when it is back.
    """

    def search_many(self, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
        """The answer to each search, all in one round trip. An error is that of one search; raised, that of all.

        At most `limit` documents, best first; ties in any order. It returns fewer only when no other document matches.
        """
        ...

    def check(self) -> list[Finding]:
        """What is wrong, in words: unreachable, wrong credentials, an extension, a version or an index. Never raises."""
        ...

    def close(self) -> None:
        """Close the connections. A second call does nothing."""
        ...


@dataclass(frozen=True, slots=True)
class IndexOf(Generic[QueryT]):
    """A role on a server: its index for each embedding model.

    Vectors of two models never mix, so each model has an index of its own, and after a change of model the new one is
    filled from the beginning.
    """

    server: IndexServer
    capabilities: Capabilities
    find: Callable[[Model | None], ServerIndex[QueryT] | None]
    """Returns the index for the active model; None where there can be none."""


Steps: TypeAlias = Generator[Sequence[ServerSearch], Sequence[ServerAnswer], T]
"""A search that yields the server searches that it needs next, and receives their answers. So one request can hold what
several searches need (`stores/search_steps.py`)."""


@runtime_checkable
class SteppedIndex(Protocol):
    """A keyword or vector role on a server. Sources whose indexes have the same server are asked in one request."""

    @property
    def server(self) -> IndexServer: ...

    def steps(
        self, snapshot: Snapshot, query: Any, limit: int, where: Filter = EVERYTHING
    ) -> Steps[ScoredKeys]:
        """`search`, step by step."""
        ...
