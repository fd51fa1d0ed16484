"""One result per whole: a part is preferred to the whole it belongs to, a better part to a worse one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sennit.ranking.stages import Ranked, Staged, stage
from sennit.results import Dropped


@stage
@dataclass(frozen=True, slots=True)
class Dedupe:
    """Of the records of one whole (its parts, and itself), the best part stays, or else the whole."""

    name: ClassVar[str] = "dedupe"

    def apply(self, ranked: Ranked) -> Staged:
        keys, scores = ranked.keys.tolist(), ranked.scores.tolist()
        listed: list[tuple[str, str | None]] = [
            (name, parent) for name, parent in ranked.values("id", "parent")
        ]
        winner: dict[str, int] = {}
        for at, (name, parent) in enumerate(listed):
            held = winner.get(parent or name)
            # The ranking falls, so among parts the first is the best.
            if held is None or (parent is not None and listed[held][1] is None):
                winner[parent or name] = at
        dropped = {}
        for at, (name, parent) in enumerate(listed):
            kept = winner[parent or name]
            if kept != at:
                better = "a part of it" if parent is None else "a better part of the same whole"
                dropped[keys[at]] = Dropped(
                    self.name,
                    f"{better} is in the answer: {listed[kept][0]}",
                    scores[at],
                    scores[kept],
                    keys[kept],
                )
        stayed = sorted(winner.values())
        return Staged(ranked.keys[stayed], ranked.scores[stayed], dropped)
