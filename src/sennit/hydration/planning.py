"""From anchors and candidates to a plan under a budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sennit.hydration.rendering import block_of, shortened
from sennit.hydration.tokens import Tokenizer
from sennit.hydration.values import (
    PREVIEW,
    Anchor,
    Candidate,
    Dropped,
    Entry,
    HydrationPlan,
    Notice,
    Unit,
    content_hash,
)

ENDED: Final = "after the first candidate that did not fit"
INSIDE: Final = "it stands inside "

SEAM: Final = 2
"""Tokens for where an entry meets the one before: characters there may fall into other tokens than alone."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much a plan may hold."""

    max_tokens: int
    max_entities: int
    allow_partial: bool = False


def make_plan(
    query: str,
    anchors: Sequence[Anchor],
    candidates: Iterable[Candidate],
    budget: Budget,
    tokens: Tokenizer,
    notices: Sequence[Notice] = (),
    *,
    episode: str = "",
    turn: int = 0,
) -> HydrationPlan:
    """Anchors by priority, each tried; then candidates by score, up to the first that does not fit."""
    filling = _Filling(query, budget, tokens)
    for anchor in anchors:
        filling.anchor(anchor)
    if anchors and not filling.entries:
        filling.notices.append(
            Notice(
                "no_anchor_fits",
                f"none of the {len(anchors)} anchors fits into {budget.max_tokens} tokens; "
                "raise max_tokens, or allow partial entities",
            )
        )
    known = {anchor.unit.key for anchor in anchors}
    best: dict[str, Candidate] = {}
    for one in sorted(candidates, key=lambda one: (-one.score, one.unit.key)):
        if one.unit.key not in known:
            best.setdefault(one.unit.key, one)
    for candidate in best.values():
        filling.candidate(candidate)
    return HydrationPlan(
        query=query,
        episode=episode,
        turn=turn,
        max_tokens=budget.max_tokens,
        max_entities=budget.max_entities,
        allow_partial=budget.allow_partial,
        tokenizer=tokens.name,
        entries=tuple(filling.entries),
        dropped=tuple(filling.dropped),
        warnings=(*notices, *filling.notices),
    )


@dataclass(slots=True)
class _Filling:
    """A plan while it is filled."""

    query: str
    budget: Budget
    tokens: Tokenizer
    entries: list[Entry] = field(default_factory=list)
    whole: list[Unit] = field(default_factory=list)
    """What is in it uncut."""
    dropped: list[Dropped] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    used: int = 0
    ended: bool = False

    def anchor(self, anchor: Anchor) -> None:
        reason = f"anchor:{anchor.reason}"
        refused, size = self._take(anchor.unit, reason, anchor.priority)
        if refused:
            self.dropped.append(Dropped(anchor.unit.key, reason, refused, size))
            if not refused.startswith(INSIDE):
                message = f"the anchor {anchor.unit.key} ({anchor.reason}) is left out: {refused}"
                self.notices.append(Notice("anchor_dropped", message, anchor.unit.key))

    def candidate(self, candidate: Candidate) -> None:
        if self.ended:
            size = self._size(candidate.unit)
            self.dropped.append(Dropped(candidate.unit.key, candidate.reason, ENDED, size))
            return
        refused, size = self._take(candidate.unit, candidate.reason, 0)
        if refused:
            self.dropped.append(Dropped(candidate.unit.key, candidate.reason, refused, size))
            self.ended = not refused.startswith(INSIDE)
        else:
            self.ended = self.entries[-1].partial

    def _size(self, unit: Unit) -> int:
        return self.tokens.count(block_of(unit)) + SEAM

    def _take(self, unit: Unit, reason: str, priority: int) -> tuple[str, int]:
        """Why it cannot be taken, empty when it was; and its size."""
        size = self._size(unit)
        around = next((one.key for one in self.whole if one.holds(unit)), None)
        if around is not None:
            return f"{INSIDE}{around}, which is in the plan", size
        if len(self.entries) >= self.budget.max_entities:
            most = self.budget.max_entities
            return f"the plan has its {most:,} {'entity' if most == 1 else 'entities'}", size
        room = self.budget.max_tokens - self.used
        taken: Unit | None = unit
        if size > room:
            short = self.budget.allow_partial
            taken = shortened(unit, self.query, room - SEAM, self.tokens.count) if short else None
            if taken is None:
                return f"it has {size} tokens, and {room} of {self.budget.max_tokens} are left", size
        else:
            self.whole.append(unit)
        self._add(unit, taken or unit, reason, priority)
        return "", size

    def _add(self, unit: Unit, taken: Unit, reason: str, priority: int) -> None:
        entry = Entry(
            key=unit.key,
            reason=reason,
            priority=priority,
            tokens=self._size(taken),
            position=len(self.entries) + 1,
            path=unit.path,
            lines=unit.lines,
            qualified=unit.qualified,
            language=unit.language,
            preview=unit.text[:PREVIEW],
            content=content_hash(unit.text),
            text=taken.text,
            partial=taken is not unit,
        )
        self.entries.append(entry)
        self.used += entry.tokens
