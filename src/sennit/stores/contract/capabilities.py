"""What an index promises beyond the rules that hold for every backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

FILTER_OPERATORS: Final = frozenset({"equal", "in", "range", "like", "exists", "and", "or", "not"})
"""The nodes of a filter expression, by the names of their classes in lower case."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an index promises beyond the rules above. A skipped test of the conformance kit names one of these."""

    scores: Literal["contract", "own"] = "contract"
    """`contract`: the scores of docs/ranking-contract.md. `own`: the server's own, of which only the order counts."""
    statistics: Literal["audience", "whole", "shard", "none"] = "audience"
    """Which records the document frequencies of a score come from; `none` for a score that needs no statistics."""
    lags: bool = False
    """Whether the index applies changes later, so that a buffer covers the last ones."""
    filters: frozenset[str] = FILTER_OPERATORS
    """The filter operators that the index applies itself. For the others it over-fetches, and the snapshot cuts."""
    partly: tuple[str, ...] = ()
    """Conditions of these operators, in words, for which it returns more than what matches; the snapshot cuts here too."""
    waits: bool = False
    """Whether a call may wait on a network. Then the source runs in a thread of its own, under the deadline."""
