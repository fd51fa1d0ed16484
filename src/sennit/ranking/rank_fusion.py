"""The alignment of ranked lists, and the fusions that use ranks only.

Every fusion works on `AlignedLists`: one row per list, one column per candidate. Its `combine` returns the fused
scores and the term that each list adds to them. Formulas: docs/ranking-contract.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.calibration import NO_BACKGROUND, Background
from sennit.ranking.normalisation import MAX_MAGNITUDE, Floats

Keys: TypeAlias = NDArray[np.int64]
RankedList: TypeAlias = tuple[str, Keys, Floats]
T = TypeVar("T")

OTHERS = "*"  # in a table by source name: every other source
MIN_DIVISOR = 1e-9  # a smaller divisor is a zero with a rounding error


class PerSource(Mapping[str, T]):
    """An immutable, hashable table by source name; `*` is every other source."""

    __slots__ = ("_table",)

    def __init__(self, table: Mapping[str, T]) -> None:
        self._table = dict(table)

    def __getitem__(self, name: str) -> T:
        return self._table[name]

    def __contains__(self, name: object) -> bool:
        # The method of Mapping would call __getitem__ and catch the KeyError, which is slower.
        return name in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __hash__(self) -> int:
        return hash(frozenset(self._table.items()))

    def __repr__(self) -> str:
        return repr(self._table)


def resolve_sources(table: Mapping[str, T], names: Sequence[str], what: str) -> list[T]:
    """Return the value of each source, in the order of `names`."""
    missing = [name for name in names if name not in table]
    if missing and OTHERS not in table:
        raise ValueError(
            f"no {what} for the source {missing[0]!r}; add it to {what}, or add {OTHERS!r} for every other source"
        )
    return [table[name if name in table else OTHERS] for name in names]


def check_table(what: str, table: object, check: Callable[[str, object], T]) -> PerSource[T]:
    """Return a table by source name, from a value of a settings file, with every value checked."""
    if (
        not isinstance(table, Mapping)
        or not table
        or not all(isinstance(name, str) and name for name in table)
    ):
        raise ValueError(
            f"{what} must be a table by source name, such as {{keyword = …, vector = …}}; got {table!r}"
        )
    return PerSource({name: check(f"{what}.{name}", value) for name, value in table.items()})


def check_number(
    what: str, value: object, lowest: float = -MAX_MAGNITUDE, highest: float = MAX_MAGNITUDE
) -> float:
    """Return a finite number within the bounds; raise ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= highest:
        least = "" if lowest == -MAX_MAGNITUDE else f", {lowest:g} or more"
        most = "" if highest == MAX_MAGNITUDE else f", {highest:g} or less"
        raise ValueError(f"{what} must be a finite number{least}{most}; got {value!r}")
    return float(value)


def check_weights(table: object) -> PerSource[float]:
    """Return a table of weights of which at least one is above 0."""
    weights = check_table("weights", table, lambda what, value: check_number(what, value, lowest=0.0))
    if not any(weights.values()):
        raise ValueError(
            "all weights are 0, so nothing can be ranked; give at least one source a weight above 0"
        )
    return weights


class AlignedLists:
    """Ranked lists as an array [lists, n] with one column per candidate, and as one flat run of hits.

    The run has the hits list by list, best first. Hit h is at flat index `indexes[h]` of the array. Arrays that only
    some fusions and the trace need are built on first use.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        keys: Keys,
        sizes: tuple[int, ...],
        hit_scores: Floats,
        indexes: NDArray[np.intp],
        present: NDArray[np.bool_],
        background: Background = NO_BACKGROUND,
    ) -> None:
        self.names = names
        self.keys = keys
        """[n], in ascending order."""
        self.sizes = sizes
        """The number of hits of each list."""
        self.hit_scores = hit_scores
        self.present = present
        """[lists, n]"""
        self._indexes = indexes
        self.background = background
        """What the cosines of the search are compared with."""

    @property
    def hit_ranks(self) -> Floats:
        """The rank of each hit, from 0; a float, because fusions divide by it. Read-only."""
        return _ranks_of(self.sizes)

    @cached_property
    def ranks(self) -> NDArray[np.int32]:
        """[lists, n]: ranks from 0, -1 where absent."""
        return self.spread(self.hit_ranks, -1.0).astype(np.int32)

    @cached_property
    def scores(self) -> Floats:
        """[lists, n]: scores, nan where absent."""
        return self.spread(self.hit_scores, np.nan)

    def scores_of(self, keys: Keys) -> Floats:
        """Return an array [lists, keys] with the score of each record in each list, nan where it is absent."""
        if not self.keys.size:
            return np.full((len(self.names), keys.size), np.nan)
        columns = self.keys.searchsorted(keys)
        found: Floats = self.scores.take(columns, axis=1, mode="clip")
        absent = self.keys.take(columns, mode="clip") != keys
        if absent.any():  # a stage after the fusion added it
            found[:, absent] = np.nan
        return found

    def spread(self, hit_values: Floats, absent: float = 0.0) -> Floats:
        """Return an array [lists, n] from one value per hit."""
        spread = np.empty(self.present.size)
        spread.fill(absent)
        spread[self._indexes] = hit_values
        return spread.reshape(self.present.shape)

    def weights(self, table: Mapping[str, float] | None) -> Floats:
        """Return the weight of each list, as a column; 1 without a table."""
        if table is None:
            return np.ones((len(self.names), 1))
        return np.array(resolve_sources(table, self.names, "weights"), dtype=np.float64)[:, None]

    def spans(self) -> list[slice]:
        """Return the slice of each list in the run of hits."""
        return _spans(self.sizes)

    def borda_points(self) -> Floats:
        """Return n points for the first of n candidates, one less for each next; absent candidates share the rest."""
        n = self.keys.size
        remaining = np.array([(n - size + 1) / 2 for size in self.sizes])
        return np.where(self.present, n - self.ranks, remaining[:, None])


@lru_cache(maxsize=64)
def _ranks_of(sizes: tuple[int, ...]) -> Floats:
    """Return the ranks of lists of these sizes, one list after the other; cached, because most lists are full."""
    ranks = np.arange(max(sizes, default=0), dtype=np.float64)
    found = np.concatenate([ranks[:size] for size in sizes] or [ranks])
    found.setflags(write=False)
    return found


def _spans(sizes: Sequence[int]) -> list[slice]:
    return [slice(end - size, end) for end, size in zip(accumulate(sizes), sizes, strict=True)]


def distinct_keys(keys: Keys) -> Keys:
    """Return each key once, in ascending order: np.unique, at a third of its cost for some hundred keys."""
    ordered = keys.copy()
    ordered.sort()
    first = np.empty(ordered.size, dtype=np.bool_)
    first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def align(lists: Sequence[RankedList], background: Background = NO_BACKGROUND) -> AlignedLists:
    """Align lists; raise ValueError for a duplicate key in one list, or a score that is not finite."""
    names = tuple([name for name, _, _ in lists])
    keys_of = [np.asarray(keys, dtype=np.int64) for _, keys, _ in lists]
    scores_of = [np.asarray(scores, dtype=np.float64) for _, _, scores in lists]
    for name, keys, scores in zip(names, keys_of, scores_of, strict=True):
        if keys.ndim != 1 or keys.shape != scores.shape:
            raise ValueError(
                f"source {name!r} gave keys of shape {keys.shape} and scores of shape {scores.shape}; "
                "return two flat arrays of one length"
            )
    sizes = tuple([keys.size for keys in keys_of])
    hits = np.concatenate(keys_of or [np.empty(0, dtype=np.int64)])
    hit_scores = np.concatenate(scores_of or [np.empty(0)])
    # A small sum of squares shows at once that all are finite; the comparison is false for nan too.
    if not hit_scores.dot(hit_scores) <= MAX_MAGNITUDE:
        for name, values in zip(names, scores_of, strict=True):
            if not (np.abs(values) <= MAX_MAGNITUDE).all():
                raise ValueError(
                    f"source {name!r} gave a score that is not finite, or beyond ±1e100; omit such hits"
                )
    keys = distinct_keys(hits)
    indexes = keys.searchsorted(hits)
    start = sizes[0] if sizes else 0
    for row, size in enumerate(sizes[1:], start=1):
        if size:
            indexes[start : start + size] += row * keys.size
            start += size
    present = np.zeros(len(names) * keys.size, np.bool_)
    present[indexes] = True
    if np.count_nonzero(present) != hits.size:
        duplicated = next(
            name for name, keys in zip(names, keys_of, strict=True) if np.unique(keys).size != keys.size
        )
        raise ValueError(f"source {duplicated!r} gave a key twice; keep the better of the two")
    by_list = present.reshape(len(names), keys.size)
    return AlignedLists(names, keys, sizes, hit_scores, indexes, by_list, background)


def sum_terms(terms: Floats) -> Floats:
    """Return the sum over lists, identical to the last bit whichever list gave which term.

    Otherwise two candidates with ranks 1, 2, 3 and 3, 1, 2 could differ by a rounding error and not tie.
    """
    if terms.shape[0] > 2:
        terms = np.sort(terms, axis=0)
    summed: Floats = np.add.reduce(terms, axis=0)
    return summed


ScoresAndTerms: TypeAlias = tuple[Floats, Floats]  # scores [n], terms [lists, n]


@dataclass(frozen=True, slots=True)
class RRF:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).

    `weighting="rank"` is Qdrant's variant: a weight w turns rank r into rank r / w, and does not scale the score.
    """

    k: float = 60.0
    first_rank: float = 1.0
    weights: Mapping[str, float] | None = None
    weighting: Literal["score", "rank"] = "score"
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", check_number("k", self.k, lowest=0.0))
        object.__setattr__(self, "first_rank", check_number("first_rank", self.first_rank, lowest=0.0))
        if self.weights is not None:
            object.__setattr__(self, "weights", check_weights(self.weights))
        if self.weighting not in ("score", "rank"):
            raise ValueError(f"weighting must be 'score' or 'rank'; got {self.weighting!r}")
        if self.weighting == "rank" and self.k + self.first_rank < 1:
            raise ValueError("k + first_rank must be 1 or more if weights act on ranks; set k = 2 or k = 60")
        if self.k + self.first_rank < MIN_DIVISOR:
            raise ValueError(
                "k + first_rank must be above 0, because the first rank divides by it; set k = 60"
            )

    def combine(self, lists: AlignedLists) -> ScoresAndTerms:
        if self.weighting == "score":
            terms = lists.spread(1.0 / (lists.hit_ranks + (self.k + self.first_rank)))
            if self.weights is not None:
                terms *= lists.weights(self.weights)
        else:
            weights = np.repeat(lists.weights(self.weights), lists.sizes)
            with np.errstate(
                divide="ignore", over="ignore"
            ):  # weight 0 gives an infinite rank and a term of 0
                divisor = (lists.hit_ranks + 1) / weights + (self.k + self.first_rank - 1)
            terms = lists.spread(1.0 / divisor)
        return sum_terms(terms), terms


@dataclass(frozen=True, slots=True)
class ISR:
    """Inverse square rank (Mourão, Martins and Magalhães, 2013); `log` uses the logarithm of the number of lists."""

    log: bool = False
    additive: ClassVar[bool] = True

    def combine(self, lists: AlignedLists) -> ScoresAndTerms:
        count = lists.present.sum(axis=0)
        factor = np.log(count) if self.log else count
        terms = lists.spread(1.0 / np.square(lists.hit_ranks + 1)) * factor
        return sum_terms(terms), terms


@dataclass(frozen=True, slots=True)
class RBC:
    """Rank-biased centroids (Bailey, Moffat, Scholer and Thomas, SIGIR 2017)."""

    phi: float = 0.9
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "phi", check_number("phi", self.phi, lowest=0.0, highest=1.0))
        if not 0 < self.phi < 1:
            raise ValueError(f"phi must be above 0 and below 1; got {self.phi!r}")

    def combine(self, lists: AlignedLists) -> ScoresAndTerms:
        terms = lists.spread((1 - self.phi) * np.power(self.phi, lists.hit_ranks))
        return sum_terms(terms), terms


@dataclass(frozen=True, slots=True)
class Borda:
    """Borda-fuse (Aslam and Montague, SIGIR 2001); candidates that a list lacks share its remaining points."""

    additive: ClassVar[bool] = True

    def combine(self, lists: AlignedLists) -> ScoresAndTerms:
        terms = lists.borda_points()
        return sum_terms(terms), terms


@dataclass(frozen=True, slots=True)
class Condorcet:
    """Condorcet-fuse (Montague and Aslam, CIKM 2002), with Copeland scores, so that a tied duel is a tie.

    The score is 1 + the candidates beaten by a majority of lists + half of the draws. The cost is quadratic in the
    candidates. A term counts the candidates ranked lower in one list; terms explain the score and do not add up to it.
    """

    additive: ClassVar[bool] = False

    def combine(self, lists: AlignedLists) -> ScoresAndTerms:
        n = lists.keys.size
        # A list prefers a candidate it has to one it lacks; between two that it lacks it has no preference.
        positions = np.where(lists.present, lists.ranks, n)
        margins = np.zeros((n, n), dtype=np.int32)
        terms = np.zeros((len(lists.names), n))
        for row, position in enumerate(positions):
            before = position[:, None] < position
            terms[row] = before.sum(axis=1)
            margins += before
            margins -= before.T
        won = (margins > 0).sum(axis=1)
        drawn = (margins == 0).sum(axis=1) - 1  # a candidate draws with itself
        return 1.0 + won + drawn / 2, terms
