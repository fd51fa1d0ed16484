"""One result per document: a chunk is preferred to its document, and a better chunk to a worse one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage
from sennit.results import Dropped


@stage
@dataclass(frozen=True, slots=True)
class Dedupe:
    """Keeps the best chunk of each document, or the document itself if no chunk of it was found."""

    name: ClassVar[str] = "dedupe"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        keys, scores = ranking.keys.tolist(), ranking.scores.tolist()
        rows: list[tuple[str, str | None]] = [
            (name, parent) for name, parent in context.values(ranking.keys, "id", "parent")
        ]
        winner: dict[str, int] = {}
        for at, (name, parent) in enumerate(rows):
            best = winner.get(parent or name)
            # Scores are in descending order, so the first chunk of a document is its best.
            if best is None or (parent is not None and rows[best][1] is None):
                winner[parent or name] = at
        dropped = {}
        for at, (name, parent) in enumerate(rows):
            kept = winner[parent or name]
            if kept != at:
                better = "a chunk of it" if parent is None else "a better chunk of the same document"
                dropped[keys[at]] = Dropped(
                    self.name,
                    f"{better} was kept: {rows[kept][0]}",
                    scores[at],
                    scores[kept],
                    keys[kept],
                )
        remaining = sorted(winner.values())
        return StageOutput(ranking.keys[remaining], ranking.scores[remaining], dropped)
