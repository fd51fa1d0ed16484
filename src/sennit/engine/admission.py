"""What would admit a record to a result: the smallest change of each kind, found by running the changed search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sennit.engine.search_request import SearchRequest
from sennit.errors import InvalidInput, SennitError
from sennit.filters import EVERYTHING, And, Filter, parse_filter
from sennit.ranking.fusion import Weighted
from sennit.ranking.rank_fusion import RRF
from sennit.recipes import MAX_LIMIT, Recipe, SourceConfig
from sennit.records import Json
from sennit.results import SearchResult, Why

FACTORS: Final = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
"""By how much a weight is changed, up and down, the smallest change first."""

SINGLE_STEPS: Final = 20
"""How far the limit is raised one by one, before it is doubled."""

REFINEMENTS: Final = 5
"""How often the gap between a change that is too small and one that suffices is halved."""

MAX_SECONDS: Final = 3.0
"""When the search for changes ends. Those found by then are returned."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a search that admits a record, as a run of the changed search has shown."""

    kind: str
    """`limit`, `weight`, `filter`, `threshold` or `caller`."""
    name: str
    """What is changed: the source of a weight or threshold, or the condition that is left out."""
    before: Json
    after: Json
    message: str
    rank: int
    """The rank of the record in the changed search."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "kind": self.kind,
            "name": self.name,
            "before": self.before,
            "after": self.after,
            "message": self.message,
            "rank": self.rank,
        }


@dataclass(frozen=True, slots=True)
class Admission:
    """Why a record is in a result or not, and what would admit it."""

    why: Why
    changes: tuple[Change, ...] = ()
    tried: int = 0
    """How many changed searches were run."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "why": self.why.to_dict(),
            "changes": [change.to_dict() for change in self.changes],
            "tried": self.tried,
        }


class AdmissionFinder:
    """Tries changes of one search until they admit one record."""

    def __init__(
        self,
        request: SearchRequest,
        recipe: Recipe,
        why: Why,
        search: Callable[[SearchRequest], SearchResult],
    ) -> None:
        self._request = replace(request, explain=False, neighbours=0, recipe=recipe)
        self._recipe = recipe
        self._why = why
        self._search = search
        self._ends = time.monotonic() + MAX_SECONDS
        self.tried = 0

    def find(self) -> Iterator[Change]:
        """Yield the smallest change of each kind that admits the record."""
        yield from self._filters()
        yield from self._thresholds()
        yield from self._limits()
        yield from self._weights()

    def _rank(self, request: SearchRequest) -> int | None:
        """Run a changed search; return the rank of the record, None if it is not found or the time is up."""
        if time.monotonic() > self._ends:
            return None
        self.tried += 1
        try:
            found = self._search(request)
        except SennitError:
            return None
        return next((hit.rank for hit in found if hit.id == self._why.id), None)

    def _filters(self) -> Iterator[Change]:
        request = self._request
        condition = parse_filter(request.filters)
        for left_out, rest in _without_one(condition):
            rank = self._rank(replace(request, filters=rest))
            if rank is not None:
                yield Change(
                    "filter",
                    str(left_out),
                    str(condition),
                    str(rest),
                    f"Leave out the condition {left_out}.",
                    rank,
                )
                break
        if request.collections:
            rank = self._rank(replace(request, collections=()))
            if rank is not None:
                names = ", ".join(request.collections)
                yield Change(
                    "filter", "collections", names, "", f"Search all collections, not only {names}.", rank
                )
        if request.look_back is not False:
            rank = self._rank(replace(request, look_back=False))
            if rank is not None:
                yield Change(
                    "filter", "look_back", request.look_back, False, "Leave out the look-back window.", rank
                )

    def _thresholds(self) -> Iterator[Change]:
        request = self._request
        if self._why.stage == "min_relevance" and self._why.number is not None:
            lower = math.floor(self._why.number * 1000) / 1000
            rank = self._rank(replace(request, min_relevance=lower))
            if rank is not None:
                message = f"Lower min_relevance from {request.min_relevance:g} to {lower:g}."
                yield Change("threshold", "min_relevance", request.min_relevance, lower, message, rank)
        for config in self._recipe.sources:
            relaxed = self._relax(config)
            if relaxed is None:
                continue
            changed, before, after, label = relaxed
            sources = [changed if one is config else one for one in self._recipe.sources]
            rank = self._rank(replace(request, recipe=replace(self._recipe, sources=tuple(sources))))
            if rank is not None:
                message = f"Change {label} of the source {config.name} from {before:g} to {after:g}."
                yield Change("threshold", config.name, before, after, message, rank)

    def _relax(self, config: SourceConfig) -> tuple[SourceConfig, float, float, str] | None:
        """Return a source whose threshold lets the record pass, with the threshold before and after."""
        if self._why.stage != f"source:{config.name}" or self._why.number is None:
            return None
        if config.min_score is not None and self._why.number < config.min_score:
            lower = math.floor(self._why.number * 1000) / 1000
            return replace(config, min_score=lower), config.min_score, lower, "min_score"
        if config.max_distance is not None and self._why.needed == config.max_distance:
            higher = math.floor(self._why.number * 1000 + 1) / 1000
            return replace(config, max_distance=higher), config.max_distance, higher, "max_distance"
        return None

    def _limits(self) -> Iterator[Change]:
        present = self._request.limit or 0
        highest = min(self._recipe.max_limit, MAX_LIMIT)
        low, high, rank = present, present, None
        # One by one at first: a greater limit also brings more candidates, which may come before the record.
        while rank is None and high < min(highest, present + SINGLE_STEPS):
            low, high = high, high + 1
            rank = self._rank(replace(self._request, limit=high))
        while rank is None and high < highest:
            low, high = high, min(highest, max(2 * high, 4))
            rank = self._rank(replace(self._request, limit=high))
            if rank is not None and rank > low:
                # More results never make the one at this rank worse by much: it is a good first guess.
                exact = self._rank(replace(self._request, limit=rank))
                high, rank = (rank, exact) if exact is not None else (high, rank)
        if rank is None:
            return
        while high - low > 1:
            middle = (low + high) // 2
            found = self._rank(replace(self._request, limit=middle))
            if found is None:
                low = middle
            else:
                high, rank = middle, found
            if time.monotonic() > self._ends:
                break
        yield Change("limit", "limit", present, high, f"Raise the limit from {present} to {high}.", rank)

    def _weights(self) -> Iterator[Change]:
        fusion = self._recipe.fusion
        if not isinstance(fusion, (RRF, Weighted)):
            return
        found: list[tuple[float, Change]] = []
        for config in self._recipe.sources:
            weights = fusion.weights or {"*": 1.0}
            before = weights.get(config.name, weights.get("*", 1.0))
            if before <= 0:
                continue
            best = self._smallest_factor(config.name, before)
            if best is not None:
                after, rank = best
                message = f"Change the weight of {config.name} from {before:g} to {after:g}."
                change = Change("weight", config.name, before, after, message, rank)
                found.append((abs(math.log(max(after, 1e-9) / before)), change))
        yield from (change for _, change in sorted(found, key=lambda one: one[0])[:2])

    def _smallest_factor(self, name: str, before: float) -> tuple[float, int] | None:
        """Return the weight nearest to the present one that admits the record, and the rank it then has."""
        for up in (True, False):
            too_small = 1.0
            for factor in FACTORS:
                exponent = factor if up else 1 / factor
                rank = self._rank_with_weight(name, before * exponent)
                if rank is None:
                    too_small = exponent
                    continue
                return self._refine(name, before, too_small, exponent, rank)
        return None

    def _refine(
        self, name: str, before: float, too_small: float, enough: float, rank: int
    ) -> tuple[float, int]:
        for _ in range(REFINEMENTS):
            middle = math.sqrt(too_small * enough)
            found = self._rank_with_weight(name, before * middle)
            if found is None:
                too_small = middle
            else:
                enough, rank = middle, found
        # A short number is easier to write down, if it still suffices.
        for digits in (2, 3):
            short = float(f"{before * enough:.{digits}g}")
            found = self._rank_with_weight(name, short)
            if found is not None:
                return short, found
        return before * enough, rank

    def _rank_with_weight(self, name: str, weight: float) -> int | None:
        fusion: Any = self._recipe.fusion
        try:
            changed = replace(fusion, weights={"*": 1.0, **(fusion.weights or {}), name: weight})
            recipe = replace(self._recipe, fusion=changed)
        except (ValueError, InvalidInput):
            return None
        return self._rank(replace(self._request, recipe=recipe))


def _without_one(condition: Filter) -> Sequence[tuple[Filter, Filter]]:
    """Return each condition of a filter with the rest that remains without it; last, the whole filter."""
    if condition == EVERYTHING:
        return []
    parts = condition.parts if isinstance(condition, And) else ()
    out: list[tuple[Filter, Filter]] = [
        (part, And(tuple(other for other in parts if other is not part))) for part in parts if len(parts) > 1
    ]
    return [*out, (condition, EVERYTHING)]
