"""Make a plan within a budget from anchors and candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sennit.hydration.plan import (
    PREVIEW_CHARACTERS,
    Anchor,
    Candidate,
    CodeUnit,
    DroppedEntity,
    HydrationPlan,
    PlannedEntity,
    PlanWarning,
    content_hash,
)
from sennit.hydration.prompt_blocks import render_unit, shorten_unit
from sennit.hydration.tokenizer import Tokenizer

AFTER_FIRST_MISFIT: Final = "after the first candidate that did not fit"
CONTAINED: Final = "it is contained in "

SEAM_TOKENS: Final = 2
"""Tokens reserved for each entry, because text is tokenized differently where two entries meet."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a plan."""

    max_tokens: int
    max_entities: int
    allow_partial: bool = False


def make_plan(
    query: str,
    anchors: Sequence[Anchor],
    candidates: Iterable[Candidate],
    budget: Budget,
    tokens: Tokenizer,
    warnings: Sequence[PlanWarning] = (),
    *,
    episode: str = "",
    turn: int = 0,
) -> HydrationPlan:
    """Take the anchors that fit, by priority, then candidates by score up to the first that does not fit."""
    draft = _Draft(query, budget, tokens)
    for anchor in anchors:
        draft.add_anchor(anchor)
    if anchors and not draft.entries:
        draft.warnings.append(
            PlanWarning(
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
        draft.add_candidate(candidate)
    return HydrationPlan(
        query=query,
        episode=episode,
        turn=turn,
        max_tokens=budget.max_tokens,
        max_entities=budget.max_entities,
        allow_partial=budget.allow_partial,
        tokenizer=tokens.name,
        entries=tuple(draft.entries),
        dropped=tuple(draft.dropped),
        warnings=(*warnings, *draft.warnings),
    )


@dataclass(slots=True)
class _Draft:
    """A plan that is being filled."""

    query: str
    budget: Budget
    tokens: Tokenizer
    entries: list[PlannedEntity] = field(default_factory=list)
    whole: list[CodeUnit] = field(default_factory=list)
    """The units that it has in full."""
    dropped: list[DroppedEntity] = field(default_factory=list)
    warnings: list[PlanWarning] = field(default_factory=list)
    used: int = 0
    ended: bool = False

    def add_anchor(self, anchor: Anchor) -> None:
        reason = f"anchor:{anchor.reason}"
        refused, size = self._take(anchor.unit, reason, anchor.priority)
        if refused:
            self.dropped.append(DroppedEntity(anchor.unit.key, reason, refused, size))
            if not refused.startswith(CONTAINED):
                message = f"the anchor {anchor.unit.key} ({anchor.reason}) is dropped: {refused}"
                self.warnings.append(PlanWarning("anchor_dropped", message, anchor.unit.key))

    def add_candidate(self, candidate: Candidate) -> None:
        if self.ended:
            size = self._size(candidate.unit)
            self.dropped.append(DroppedEntity(candidate.unit.key, candidate.reason, AFTER_FIRST_MISFIT, size))
            return
        refused, size = self._take(candidate.unit, candidate.reason, 0)
        if refused:
            self.dropped.append(DroppedEntity(candidate.unit.key, candidate.reason, refused, size))
            self.ended = not refused.startswith(CONTAINED)
        else:
            self.ended = self.entries[-1].partial

    def _size(self, unit: CodeUnit) -> int:
        return self.tokens.count(render_unit(unit)) + SEAM_TOKENS

    def _take(self, unit: CodeUnit, reason: str, priority: int) -> tuple[str, int]:
        """Add a unit if it fits; return why it does not (empty if it does), and its tokens."""
        size = self._size(unit)
        container = next((one.key for one in self.whole if one.contains(unit)), None)
        if container is not None:
            return f"{CONTAINED}{container}, which is in the plan", size
        if len(self.entries) >= self.budget.max_entities:
            limit = self.budget.max_entities
            return f"the plan already has {limit:,} {'entity' if limit == 1 else 'entities'}", size
        left = self.budget.max_tokens - self.used
        taken: CodeUnit | None = unit
        if size > left:
            short = self.budget.allow_partial
            taken = shorten_unit(unit, self.query, left - SEAM_TOKENS, self.tokens.count) if short else None
            if taken is None:
                return f"it has {size} tokens, and {left} of {self.budget.max_tokens} are left", size
        else:
            self.whole.append(unit)
        self._add(unit, taken or unit, reason, priority)
        return "", size

    def _add(self, unit: CodeUnit, taken: CodeUnit, reason: str, priority: int) -> None:
        entry = PlannedEntity(
            key=unit.key,
            reason=reason,
            priority=priority,
            tokens=self._size(taken),
            position=len(self.entries) + 1,
            path=unit.location or unit.path,
            lines=unit.lines,
            qualified=unit.qualified,
            language=unit.language,
            preview=unit.text[:PREVIEW_CHARACTERS],
            content=content_hash(unit.text),
            text=taken.text,
            partial=taken is not unit,
        )
        self.entries.append(entry)
        self.used += entry.tokens
