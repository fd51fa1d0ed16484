"""Fusion of ranked lists: the fusions by score, the registry of all fusions, and the final order.

    fuse(RRF(k=60), [("keyword", keys, scores), ("vector", keys, scores)]) -> Fused
    order(fused.keys, fused.scores, ids_of) -> indexes, best first, equal scores by id

A fusion is a frozen value in a recipe; `fusion_from_dict` reads it from a settings table. All are pure functions
over small arrays. Formulas and degenerate cases: docs/ranking-contract.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.calibration import NO_BACKGROUND, Background
from sennit.ranking.normalisation import Floats, find_rule, normalise
from sennit.ranking.rank_fusion import (
    ISR,
    OTHERS,
    RBC,
    RRF,
    AlignedLists,
    Borda,
    Condorcet,
    Keys,
    PerSource,
    RankedList,
    ScoresAndTerms,
    align,
    check_number,
    check_table,
    check_weights,
    resolve_sources,
    sum_terms,
)

__all__ = [
    "ISR",
    "METHODS",
    "RBC",
    "RRF",
    "Borda",
    "Comb",
    "Condorcet",
    "Fused",
    "Fusion",
    "PerSource",
    "RankedList",
    "Weighted",
    "calibrated_sources",
    "check_fusion",
    "fuse",
    "fusion_from_dict",
    "fusion_to_dict",
    "named_sources",
    "order",
]

BORDA = "borda"  # the one normalisation that also gives a value to candidates that a list lacks
MAX_GAMMA = 16.0  # beyond it only the number of lists counts


@dataclass(frozen=True, slots=True)
class Fused:
    """The union of the lists, with keys in ascending order; `order` ranks it."""

    lists: AlignedLists
    scores: Floats
    terms: Floats  # [lists, n]: each list's part of the score, 0 where it has none

    @property
    def keys(self) -> Keys:
        return self.lists.keys

    @property
    def ranks(self) -> NDArray[np.int32]:
        """[lists, n]: the rank in each list, from 0, -1 where absent."""
        return self.lists.ranks

    @property
    def raw_scores(self) -> Floats:
        """[lists, n]: the score in each list, nan where absent."""
        return self.lists.scores


@dataclass(frozen=True, slots=True)
class Weighted:
    """Σ weight · normalised score; a candidate that a list lacks gets only the terms of the others.

    This is Elasticsearch's linear retriever (`none`, `minmax`) and Weaviate's relative score (`minmax`, 1 for lists of
    equal scores).
    """

    weights: Mapping[str, float]
    normalise: str | Mapping[str, str] = "max"
    all_equal: float | None = None
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", check_weights(self.weights))
        _check_normalisation(self, _check_rule)

    def combine(self, lists: AlignedLists) -> ScoresAndTerms:
        terms = lists.spread(_normalise_hits(lists, self.normalise, self.all_equal))
        terms *= lists.weights(self.weights)
        return sum_terms(terms), terms


@dataclass(frozen=True, slots=True)
class Comb:
    """The Comb family (Fox and Shaw, TREC-2, 1993; gmnz: Lee, SIGIR 1997) over normalised scores.

    `kind` is sum, mnz (sum × number of lists), anz (mean), gmnz (sum × number of lists^gamma), max, min or med.
    """

    kind: str = "sum"
    normalise: str | Mapping[str, str] = "minmax"
    all_equal: float | None = None
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in _SUM_FACTORS and self.kind not in _SELECTORS:
            raise ValueError(
                f"unknown comb kind {self.kind!r}; use one of: {', '.join([*_SUM_FACTORS, *_SELECTORS])}"
            )
        _check_normalisation(self, _check_rule_or_borda)
        object.__setattr__(self, "gamma", check_number("gamma", self.gamma, lowest=0.0, highest=MAX_GAMMA))
        if self.kind != "gmnz" and self.gamma != 1.0:
            raise ValueError(f"gamma has no effect on comb{self.kind}; remove it, or use combgmnz")

    @property
    def additive(self) -> bool:
        """Whether the terms add up to the score."""
        return self.kind in _SUM_FACTORS

    def combine(self, lists: AlignedLists) -> ScoresAndTerms:
        values = lists.spread(_normalise_hits(lists, self.normalise, self.all_equal), absent=np.nan)
        _fill_borda(values, lists, self.normalise)
        present = ~np.isnan(values)
        terms = np.where(present, values, 0.0)
        if self.kind in _SELECTORS:
            return _SELECTORS[self.kind](values), terms
        terms *= _SUM_FACTORS[self.kind](present.sum(axis=0), self.gamma)
        return sum_terms(terms), terms


Fusion: TypeAlias = RRF | Weighted | Comb | ISR | RBC | Borda | Condorcet

# The factor for a candidate's terms, from the number of lists that have it.
_SUM_FACTORS: dict[str, Callable[[NDArray[np.intp], float], Floats]] = {
    "sum": lambda count, _: np.ones(count.shape),
    "mnz": lambda count, _: count.astype(np.float64),
    "anz": lambda count, _: 1.0 / count,
    "gmnz": lambda count, gamma: np.power(count, gamma, dtype=np.float64),
}
_SELECTORS: dict[str, Callable[[Floats], Floats]] = {
    "max": lambda values: np.nanmax(values, axis=0),
    "min": lambda values: np.nanmin(values, axis=0),
    "med": lambda values: np.nanmedian(values, axis=0),
}


def fuse(
    method: Fusion,
    lists: Sequence[RankedList],
    sources: Collection[str] = (),
    background: Background = NO_BACKGROUND,
) -> Fused:
    """Fuse lists of (source name, keys best first, scores).

    `background` is what the normalisation `background` compares cosines with.

    A weight or normalisation for a source without a list is an error, unless `sources`, which names every source of
    the recipe, has it. So a misspelt name is an error, and a source that failed is not.
    """
    aligned = align(lists, background)
    unknown = named_sources(method).difference(aligned.names, sources)
    if unknown:
        known = sorted({*aligned.names, *sources})
        raise ValueError(
            f"fusion names the source {min(unknown)!r}, which the recipe does not have; use one of: {known}"
        )
    # Empty lists are combined too, so that a missing weight is reported on the first search, whatever it finds.
    scores, terms = method.combine(aligned) if lists else (np.empty(0), np.empty((0, 0)))
    return Fused(aligned, scores, terms)


def named_sources(method: Fusion) -> set[str]:
    """Return the sources that a fusion's weights and normalisations name."""
    tables = (getattr(method, "weights", None), getattr(method, "normalise", None))
    named = {name for table in tables if isinstance(table, PerSource) for name in table}
    named.discard(OTHERS)
    return named


def calibrated_sources(method: Fusion, names: Sequence[str]) -> list[str]:
    """Return the sources whose scores the fusion compares with the background."""
    rules = getattr(method, "normalise", None)
    if rules is None:
        return []
    resolved = [rules] * len(names) if isinstance(rules, str) else resolve_sources(rules, names, "normalise")
    return [
        name
        for name, rule in zip(names, resolved, strict=True)
        if rule != BORDA and find_rule(rule).needs_background
    ]


def check_fusion(method: Fusion, names: Sequence[str]) -> None:
    """Fuse one candidate of each source; raise ValueError if the method lacks a setting for one of them."""
    fuse(method, [(name, np.zeros(1, np.int64), np.ones(1)) for name in names])


def order(
    keys: Keys,
    scores: Floats,
    tie_keys: Callable[[Keys], Sequence[str] | Sequence[bytes]],
    limit: int | None = None,
) -> NDArray[np.intp]:
    """Return the first `limit` indexes by descending score, and by ascending id where scores are equal.

    `tie_keys` returns the ids of keys. It is called at most once, and only for keys that tie with another within
    reach of `limit`, because reading an id may cost a query.
    """
    best = (-scores).argsort(kind="stable")
    sorted_scores = scores[best]
    if limit is not None and limit < best.size:
        # Every member of a tie at the limit competes for the last ranks.
        end = int(np.count_nonzero(sorted_scores >= sorted_scores[limit - 1])) if limit > 0 else 0
        best, sorted_scores = best[:end], sorted_scores[:end]
    same = sorted_scores[1:] == sorted_scores[:-1]
    if np.count_nonzero(same):
        tied = np.zeros(best.size, dtype=np.bool_)
        tied[1:] = same
        tied[:-1] |= same
        indexes = best[tied]
        tied_keys = keys[indexes]
        ids = tie_keys(tied_keys)
        by_id = sorted(
            zip((-sorted_scores[tied]).tolist(), ids, tied_keys.tolist(), indexes.tolist(), strict=True)
        )
        best[tied] = [index for *_, index in by_id]
    return best[:limit]


_METHODS: dict[str, tuple[type[Fusion], dict[str, object]]] = {
    "rrf": (RRF, {}),
    "weighted": (Weighted, {}),
    "linear": (Weighted, {"normalise": "none"}),
    "relative_score": (Weighted, {"normalise": "minmax", "all_equal": 1.0}),
    "dbsf": (Comb, {"kind": "sum", "normalise": "dbsf_sample", "all_equal": 0.5}),
    **{f"comb{kind}": (Comb, {"kind": kind}) for kind in (*_SUM_FACTORS, *_SELECTORS)},
    "isr": (ISR, {"log": False}),
    "log_isr": (ISR, {"log": True}),
    "rbc": (RBC, {}),
    "borda": (Borda, {}),
    "condorcet": (Condorcet, {}),
}
METHODS: tuple[str, ...] = tuple(_METHODS)
_FIELDS_IN_NAME = ("kind", "log")  # fields that the name of the method decides


def fusion_from_dict(table: Mapping[str, object]) -> Fusion:
    """Read a fusion from a settings table such as `{method = "rrf", k = 60, first_rank = 1}`."""
    options = dict(table)
    name = options.pop("method", None)
    if not isinstance(name, str) or name not in _METHODS:
        raise ValueError(f"unknown fusion method {name!r}; set method to one of: {', '.join(METHODS)}")
    kind, preset = _METHODS[name]
    known = {
        field.name: field.default is MISSING for field in fields(kind) if field.name not in _FIELDS_IN_NAME
    }
    unknown = sorted(set(options) - set(known))
    if unknown:
        choice = f"it takes: {', '.join(known)}" if known else "it takes no settings"
        raise ValueError(f"fusion method {name!r} has no setting {unknown[0]!r}; {choice}")
    for option, required in known.items():
        if required and option not in options:
            raise ValueError(
                f"fusion method {name!r} needs {option}, such as {{keyword = 0.3, vector = 0.7}}"
            )
    build: Callable[..., Fusion] = kind
    return build(**{**preset, **options})


def fusion_to_dict(method: Fusion) -> dict[str, object]:
    """Return the table that `fusion_from_dict` reads back as an equal value."""
    if isinstance(method, Comb):
        name = f"comb{method.kind}"
    elif isinstance(method, ISR):
        name = "log_isr" if method.log else "isr"
    else:  # the first name of a class is the general one, which presets nothing
        name = next(name for name, (kind, _) in _METHODS.items() if isinstance(method, kind))
    table: dict[str, object] = {"method": name}
    for field in fields(method):
        value = getattr(method, field.name)
        if field.name not in _FIELDS_IN_NAME and value is not None:
            table[field.name] = dict(value) if isinstance(value, Mapping) else value
    return table


def _rule_names(lists: AlignedLists, rules: str | Mapping[str, str]) -> list[str]:
    return (
        [rules] * len(lists.names)
        if isinstance(rules, str)
        else resolve_sources(rules, lists.names, "normalise")
    )


def _normalise_hits(lists: AlignedLists, rules: str | Mapping[str, str], all_equal: float | None) -> Floats:
    """Return the normalised score of each hit; under the rule `borda`, which needs all lists, the raw score."""
    values = np.empty(lists.hit_scores.size)
    for name, hits in zip(_rule_names(lists, rules), lists.spans(), strict=True):
        if hits.start == hits.stop:
            continue
        rule = "none" if name == BORDA else name
        values[hits] = normalise(rule, lists.hit_scores[hits], all_equal, lists.background)
    return values


def _fill_borda(values: Floats, lists: AlignedLists, rules: str | Mapping[str, str]) -> None:
    """Set the rows with the rule `borda` to points / maximum points, for absent candidates too."""
    rows = [row for row, name in enumerate(_rule_names(lists, rules)) if name == BORDA]
    if rows:
        values[rows] = lists.borda_points()[rows] / lists.keys.size


def _check_normalisation(method: Weighted | Comb, check: Callable[[str, object], str]) -> None:
    rules = method.normalise
    if isinstance(rules, Mapping):
        object.__setattr__(method, "normalise", check_table("normalise", rules, check))
    else:
        check("normalise", rules)
    if method.all_equal is not None:
        object.__setattr__(method, "all_equal", check_number("all_equal", method.all_equal))


def _check_rule(what: str, value: object) -> str:
    name = value if isinstance(value, str) else repr(value)
    try:
        find_rule(name)
    except ValueError as unknown:
        raise ValueError(f"{what}: {unknown}") from None
    return name


def _check_rule_or_borda(what: str, value: object) -> str:
    return BORDA if value == BORDA else _check_rule(what, value)
