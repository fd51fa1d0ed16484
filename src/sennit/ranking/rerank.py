"""Reranking: a model that reads query and text together orders the best candidates anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.errors import SourceError
from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage

MAX_CANDIDATES: Final = 1000
MAX_MILLISECONDS: Final = 60_000
MAX_CHARACTERS: Final = 100_000


@stage
@dataclass(frozen=True, slots=True)
class Rerank:
    """Orders the first `candidates` by the scores of a reranker. The others follow in their order.

    If it has no answer within `milliseconds`, the ranking stays as it is, and the answer says so. The reranker reads
    title and text, up to `characters` of them. Its scores have a scale of their own, so the scores of the ranking stay
    and change their owners: stages that follow see the scale they expect.
    """

    name: ClassVar[str] = "rerank"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    candidates: int = 30
    milliseconds: int = 500
    characters: int = 2000

    def __post_init__(self) -> None:
        limits = {
            "candidates": MAX_CANDIDATES,
            "milliseconds": MAX_MILLISECONDS,
            "characters": MAX_CHARACTERS,
        }
        for name, highest in limits.items():
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= highest:
                raise ValueError(f"{name} must be a whole number from 1 to {highest:,}, not {value!r}")

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        head = ranking.keys[: self.candidates]
        unchanged = StageOutput(ranking.keys, ranking.scores)
        if len(head) < 2 or not context.query.strip():
            return unchanged
        texts = [f"{record.title}\n{record.text}".strip()[: self.characters] for record in context.read(head)]
        try:
            scores = np.asarray(context.rerank(context.query, texts, self.milliseconds / 1000), np.float64)
        except SourceError as error:
            context.warn(self.name, str(error))
            return unchanged
        best = order(head, scores, context.ids)
        keys, kept = ranking.keys.copy(), ranking.scores.copy()
        keys[: len(head)] = head[best]
        kept[: len(head)] = np.sort(kept[: len(head)])[::-1]
        reasons = {
            int(head[at]): f"{scores[at]:.4f} by the reranker, rank {rank} instead of {at + 1}"
            for rank, at in enumerate(best.tolist(), 1)
            if context.explain
        }
        return StageOutput(keys, kept, {}, reasons)
