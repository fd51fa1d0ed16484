"""Rescoring: each source also scores the candidates that only other sources found.

A list that is limited to collections gets what other lists of the same collections found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sennit.ranking.stages import CandidateList, Keys, ListStageOutput, StageContext, stage


@stage
@dataclass(frozen=True, slots=True)
class Rescore:
    """Continues each list with its source's scores of what only other sources found, so that every sum is complete."""

    name: ClassVar[str] = "rescore"
    runs: ClassVar[Literal["before_fusion"]] = "before_fusion"

    def apply(self, lists: Sequence[CandidateList], context: StageContext) -> ListStageOutput:
        known = [one.keys.tolist() for one in lists]
        candidates = _candidates(lists, known)
        out = list(lists)
        scored_by: dict[int, list[str]] = {}
        for at, one in enumerate(lists):
            wanted = candidates.get(one.collections) if one.rescore is not None else None
            missing = sorted(wanted.difference(known[at])) if wanted else []
            if missing:
                out[at], added = _extend(one, np.array(missing, np.int64))
                if context.explain:
                    for key in added.tolist():
                        scored_by.setdefault(key, []).append(one.name)
        reasons = {key: f"scored by {', '.join(names)}" for key, names in scored_by.items()}
        return ListStageOutput(out, reasons=reasons)


def _candidates(
    lists: Sequence[CandidateList], known: Sequence[Sequence[int]]
) -> dict[tuple[str, ...], set[int]]:
    """Return the records that the lists of the same collections may be continued with, by these collections."""
    # Only the source that added an ephemeral hit can score it.
    stored = [{key for key in keys if key >= 0} for keys in known]
    out: dict[tuple[str, ...], set[int]] = {(): set().union(*stored)}
    for one, keys in zip(lists, stored, strict=True):
        if one.collections:
            out.setdefault(one.collections, set()).update(keys)
    return out


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
