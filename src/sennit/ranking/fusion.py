"""Fuse ranked lists into one: the fusions by score, the registry of all of them, and the final order.

    fuse(RRF(k=60), [("keyword", keys, scores), ("vector", keys, scores)]) -> Fused
    order(fused.keys, fused.scores, ids_of) -> indexes, best first, equal scores by id

A fusion is a frozen value that a recipe names; `fusion_from_dict` reads it from a settings table. All are pure
functions over small arrays. Formulas and degenerate cases: docs/ranking-contract.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.normalise import Floats, normalise, rule_named
from sennit.ranking.rankfusion import (
    ISR,
    OTHERS,
    RBC,
    RRF,
    Aligned,
    Borda,
    Combined,
    Condorcet,
    Keys,
    PerSource,
    RankedList,
    align,
    number,
    per_source,
    resolve,
    total,
    weight_table,
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
    "fuse",
    "fusion_from_dict",
    "fusion_to_dict",
    "order",
    "sources_named",
    "try_out",
]

BORDA = "borda"  # the one normalisation that also gives a value to candidates a list does not have
MAX_GAMMA = 16.0  # beyond it the number of lists decides alone


@dataclass(frozen=True, slots=True)
class Fused:
    """The union of the lists, keys ascending; `order` ranks it."""

    lists: Aligned
    scores: Floats
    terms: Floats  # [lists, n], each list's part of the score, 0 where it has none

    @property
    def keys(self) -> Keys:
        return self.lists.keys

    @property
    def ranks(self) -> NDArray[np.int32]:
        """[lists, n], position from 0 in each list, -1 where absent."""
        return self.lists.ranks

    @property
    def source_scores(self) -> Floats:
        """[lists, n], nan where absent."""
        return self.lists.scores


@dataclass(frozen=True, slots=True)
class Weighted:
    """Σ weight · normalised score; a candidate that one list lacks gets the other lists' shares.

    Elasticsearch's linear retriever (`none`, `minmax`), Weaviate's relative score (`minmax`, flat lists 1).
    """

    weights: Mapping[str, float]
    normalise: str | Mapping[str, str] = "max"
    all_equal: float | None = None
    additive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", weight_table(self.weights))
        _check_normalising(self, _rule_name)

    def combine(self, lists: Aligned) -> Combined:
        terms = lists.spread(_normalised(lists, self.normalise, self.all_equal))
        terms *= lists.weights(self.weights)
        return total(terms), terms


@dataclass(frozen=True, slots=True)
class Comb:
    """The Comb family (Fox and Shaw, TREC-2, 1993; gmnz: Lee, SIGIR 1997) over normalised scores.

    `kind` is sum, mnz (sum × lists that have it), anz (their mean), gmnz (sum × lists^gamma), max, min or med.
    """

    kind: str = "sum"
    normalise: str | Mapping[str, str] = "minmax"
    all_equal: float | None = None
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in _SUMS and self.kind not in _PICKS:
            raise ValueError(f"unknown comb kind {self.kind!r}; use one of: {', '.join([*_SUMS, *_PICKS])}")
        _check_normalising(self, _rule_name_or_borda)
        object.__setattr__(self, "gamma", number("gamma", self.gamma, lowest=0.0, highest=MAX_GAMMA))
        if self.kind != "gmnz" and self.gamma != 1.0:
            raise ValueError(f"gamma has no effect on comb{self.kind}; remove it, or use combgmnz")

    @property
    def additive(self) -> bool:
        """Whether the terms add up to the score."""
        return self.kind in _SUMS

    def combine(self, lists: Aligned) -> Combined:
        values = lists.spread(_normalised(lists, self.normalise, self.all_equal), absent=np.nan)
        _fill_borda(values, lists, self.normalise)
        given = ~np.isnan(values)
        terms = np.where(given, values, 0.0)
        if self.kind in _PICKS:
            return _PICKS[self.kind](values), terms
        terms *= _SUMS[self.kind](given.sum(axis=0), self.gamma)
        return total(terms), terms


Fusion: TypeAlias = RRF | Weighted | Comb | ISR | RBC | Borda | Condorcet

# What each kind of sum multiplies a candidate's terms by, from the number of lists that have it.
_SUMS: dict[str, Callable[[NDArray[np.intp], float], Floats]] = {
    "sum": lambda count, _: np.ones(count.shape),
    "mnz": lambda count, _: count.astype(np.float64),
    "anz": lambda count, _: 1.0 / count,
    "gmnz": lambda count, gamma: np.power(count, gamma, dtype=np.float64),
}
_PICKS: dict[str, Callable[[Floats], Floats]] = {
    "max": lambda values: np.nanmax(values, axis=0),
    "min": lambda values: np.nanmin(values, axis=0),
    "med": lambda values: np.nanmedian(values, axis=0),
}


def fuse(method: Fusion, lists: Sequence[RankedList], sources: Collection[str] = ()) -> Fused:
    """Fuse lists of (source name, keys best first, scores).

    A weight or normalisation for a source that gave no list is an error, unless `sources` (all that the recipe
    could have asked) has it: so a misspelt name is caught, and a source that failed or was not asked is not.
    """
    aligned = align(lists)
    unknown = sources_named(method).difference(aligned.names, sources)
    if unknown:
        known = sorted({*aligned.names, *sources})
        raise ValueError(
            f"fusion names the source {min(unknown)!r}, which is not searched; use one of: {known}"
        )
    # Lists that are all empty go through, so that a missing weight shows on the first search, whatever it finds.
    scores, terms = method.combine(aligned) if lists else (np.empty(0), np.empty((0, 0)))
    return Fused(aligned, scores, terms)


def sources_named(method: Fusion) -> set[str]:
    """The sources that a fusion's weights and normalisations name, for a check when a recipe is read."""
    tables = (getattr(method, "weights", None), getattr(method, "normalise", None))
    named = {name for table in tables if isinstance(table, PerSource) for name in table}
    named.discard(OTHERS)
    return named


def try_out(method: Fusion, names: Sequence[str]) -> None:
    """Fuse a candidate of each source; raises ValueError where the method lacks something about one of them."""
    fuse(method, [(name, np.zeros(1, np.int64), np.ones(1)) for name in names])


def order(
    keys: Keys,
    scores: Floats,
    tie_keys: Callable[[Keys], Sequence[str] | Sequence[bytes]],
    limit: int | None = None,
) -> NDArray[np.intp]:
    """Indexes by falling score, equal scores by rising id, the first `limit` of them.

    `tie_keys` gives the ids of keys. It is called once at most, and only for keys that share a score with
    another within reach of `limit`, because reading an id may cost a query.
    """
    best = (-scores).argsort(kind="stable")
    ranked = scores[best]
    if limit is not None and limit < best.size:
        # The whole of a tie that straddles the limit competes for the last places.
        end = int(np.count_nonzero(ranked >= ranked[limit - 1])) if limit > 0 else 0
        best, ranked = best[:end], ranked[:end]
    same = ranked[1:] == ranked[:-1]
    if np.count_nonzero(same):
        tied = np.zeros(best.size, dtype=np.bool_)
        tied[1:] = same
        tied[:-1] |= same
        places = best[tied]
        tied_keys = keys[places]
        ids = tie_keys(tied_keys)
        by_id = sorted(zip((-ranked[tied]).tolist(), ids, tied_keys.tolist(), places.tolist(), strict=True))
        best[tied] = [place for *_, place in by_id]
    return best[:limit]


_METHODS: dict[str, tuple[type[Fusion], dict[str, object]]] = {
    "rrf": (RRF, {}),
    "weighted": (Weighted, {}),
    "linear": (Weighted, {"normalise": "none"}),
    "relative_score": (Weighted, {"normalise": "minmax", "all_equal": 1.0}),
    "dbsf": (Comb, {"kind": "sum", "normalise": "dbsf_sample", "all_equal": 0.5}),
    **{f"comb{kind}": (Comb, {"kind": kind}) for kind in (*_SUMS, *_PICKS)},
    "isr": (ISR, {"log": False}),
    "log_isr": (ISR, {"log": True}),
    "rbc": (RBC, {}),
    "borda": (Borda, {}),
    "condorcet": (Condorcet, {}),
}
METHODS: tuple[str, ...] = tuple(_METHODS)
_IN_THE_NAME = ("kind", "log")  # fields that the method's name already decides


def fusion_from_dict(table: Mapping[str, object]) -> Fusion:
    """A fusion from a settings table such as `{method = "rrf", k = 60, first_rank = 1}`."""
    options = dict(table)
    name = options.pop("method", None)
    if not isinstance(name, str) or name not in _METHODS:
        raise ValueError(f"unknown fusion method {name!r}; set method to one of: {', '.join(METHODS)}")
    kind, preset = _METHODS[name]
    known = {field.name: field.default is MISSING for field in fields(kind) if field.name not in _IN_THE_NAME}
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
    """The table that `fusion_from_dict` reads back as an equal value, for traces and `sennit config`."""
    if isinstance(method, Comb):
        name = f"comb{method.kind}"
    elif isinstance(method, ISR):
        name = "log_isr" if method.log else "isr"
    else:  # the first of a class is its general name, which presets nothing
        name = next(name for name, (kind, _) in _METHODS.items() if isinstance(method, kind))
    table: dict[str, object] = {"method": name}
    for field in fields(method):
        value = getattr(method, field.name)
        if field.name not in _IN_THE_NAME and value is not None:
            table[field.name] = dict(value) if isinstance(value, Mapping) else value
    return table


def _rule_names(lists: Aligned, rules: str | Mapping[str, str]) -> list[str]:
    return [rules] * len(lists.names) if isinstance(rules, str) else resolve(rules, lists.names, "normalise")


def _normalised(lists: Aligned, rules: str | Mapping[str, str], all_equal: float | None) -> Floats:
    """The normalised score of each hit; by the rule `borda`, which is not of one list alone, still as it was."""
    values = np.empty(lists.hit_scores.size)
    for name, hits in zip(_rule_names(lists, rules), lists.spans(), strict=True):
        if hits.start == hits.stop:
            continue
        values[hits] = normalise("none" if name == BORDA else name, lists.hit_scores[hits], all_equal)
    return values


def _fill_borda(values: Floats, lists: Aligned, rules: str | Mapping[str, str]) -> None:
    """In rows by the rule `borda`: points, as a share of the most there could be, absent candidates included."""
    rows = [row for row, name in enumerate(_rule_names(lists, rules)) if name == BORDA]
    if rows:
        values[rows] = lists.borda_points()[rows] / lists.keys.size


def _check_normalising(method: Weighted | Comb, check: Callable[[str, object], str]) -> None:
    rules = method.normalise
    if isinstance(rules, Mapping):
        object.__setattr__(method, "normalise", per_source("normalise", rules, check))
    else:
        check("normalise", rules)
    if method.all_equal is not None:
        object.__setattr__(method, "all_equal", number("all_equal", method.all_equal))


def _rule_name(what: str, value: object) -> str:
    name = value if isinstance(value, str) else repr(value)
    try:
        rule_named(name)
    except ValueError as unknown:
        raise ValueError(f"{what}: {unknown}") from None
    return name


def _rule_name_or_borda(what: str, value: object) -> str:
    return BORDA if value == BORDA else _rule_name(what, value)
