"""The role `vector`: records by the nearness of their vectors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sennit.filters import EVERYTHING, Filter
from sennit.stores.contract.answers import Floats, Keys, ScoredKeys
from sennit.stores.contract.capabilities import Capabilities
from sennit.stores.contract.snapshot import Snapshot


class VectorRole(Protocol):
    """Finds records by the cosine of their vectors and the vector of the query."""

    @property
    def capabilities(self) -> Capabilities: ...

    def applied(self, snapshot: Snapshot) -> int: ...

    def search(
        self, snapshot: Snapshot, query: NDArray[np.float32], limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        """The records nearest to a unit vector of the snapshot's model. Raises SourceError without a model."""
        ...

    def scores(self, snapshot: Snapshot, query: NDArray[np.float32], keys: Keys) -> Floats:
        """The cosine of each record, nan for a record without a vector."""
        ...
