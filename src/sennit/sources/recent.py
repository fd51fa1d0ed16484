"""The recent source: the newest records, for a query that asks for conversations as such and names no topic."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import SourceRequest, period_filter
from sennit.stores.contract import ScoredKeys


class RecentSource:
    """What was said last, or in the period of the query, newest first; only what the named people said, if any did."""

    inline = True

    def search(self, request: SourceRequest) -> ScoredKeys:
        context = request.context
        where = request.where
        if context.time.period is not None:
            where = period_filter(context.time.period) & where
        names = {name.casefold() for name in context.time.names}
        keys = context.snapshot.newest(where, request.limit * (4 if names else 1))
        if names:
            speakers = [str(value or "").casefold() for (value,) in context.columns(keys, ["speaker"])]
            said = np.array([bool(names & {name, *name.split()}) for name in speakers], bool)
            keys = keys[said] if said.any() else keys
        keys = keys[: request.limit]
        for key in keys.tolist():
            context.add_match_reason(request.list_name or "recent", key, "among the newest")
        return ScoredKeys(keys, np.linspace(1.0, 1.0 / max(len(keys), 1), len(keys)))

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        found = self.search(request)
        known = dict(zip(found.keys.tolist(), found.scores.tolist(), strict=True))
        return np.array([known.get(key, np.nan) for key in keys.tolist()], np.float64)
