"""Rescoring: each source also scores the candidates that only other sources found.

A list that is limited to collections gets what other lists of the same collections found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.ranking.rank_fusion import distinct_keys
from sennit.ranking.stages import CandidateList, Keys, ListStageOutput, StageContext, stage

NO_KEYS: Final = np.empty(0, np.int64)


@stage
@dataclass(frozen=True, slots=True)
class Rescore:
    """Continues each list with its source's scores of what only other sources found, so that every sum is complete."""

    name: ClassVar[str] = "rescore"
    runs: ClassVar[Literal["before_fusion"]] = "before_fusion"

    def apply(self, lists: Sequence[CandidateList], context: StageContext) -> ListStageOutput:
        candidates = _candidates(lists)
        out = list(lists)
        scored_by: dict[int, list[str]] = {}
        for at, one in enumerate(lists):
            missing = _without(candidates[one.collections], one.keys) if one.rescore is not None else NO_KEYS
            if len(missing):
                out[at], added = _extend(one, missing)
                if context.explain:
                    for key in added.tolist():
                        scored_by.setdefault(key, []).append(one.name)
        reasons = {key: f"scored by {', '.join(names)}" for key, names in scored_by.items()}
        return ListStageOutput(out, reasons=reasons)


def _candidates(lists: Sequence[CandidateList]) -> dict[tuple[str, ...], Keys]:
    """Return the records that the lists of the same collections may be continued with, by these collections.

    The keys are in ascending order. A list without collections may be continued with all records.
    """
    out = {}
    for collections in {one.collections for one in lists}:
        found = [one.keys for one in lists if not collections or one.collections == collections]
        keys = distinct_keys(np.concatenate(found))
        # Only the source that added an ephemeral hit can score it.
        out[collections] = keys[keys.searchsorted(0) :]
    return out


def _without(keys: Keys, known: Keys) -> Keys:
    """Return those of the ascending keys that are not among the known ones."""
    places = keys.searchsorted(known[known >= 0])
    is_missing = np.ones(len(keys), bool)
    is_missing[places] = False
    return keys[is_missing]


def _extend(found: CandidateList, keys: Keys) -> tuple[CandidateList, Keys]:
    """Add records to a list, except those without a score; also return the added ones."""
    scores = found.rescore(keys) if found.rescore is not None else np.zeros(len(keys))
    usable = scores > 0.0
    count = np.count_nonzero(usable)
    if not count:
        return found, keys[:0]
    if count < len(keys):
        keys, scores = keys[usable], scores[usable]
    all_keys = np.concatenate([found.keys, keys])
    all_scores = np.concatenate([found.scores, scores])
    best = (-all_scores).argsort(kind="stable")
    return CandidateList(found.name, all_keys[best], all_scores[best], found.rescore), keys
