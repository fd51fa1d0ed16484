"""Make a plan within a budget from anchors and candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from sennit.hydration.plan import (
    ANCHOR_PREFIX,
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
from sennit.hydration.prompt_blocks import outline_unit, render_unit, shorten_unit
from sennit.hydration.tokenizer import Tokenizer

AFTER_FIRST_MISFIT: Final = "after the first candidate that did not fit"
CONTAINED: Final = "it is contained in "

SEAM_TOKENS: Final = 2
"""Tokens reserved for each entry, because text is tokenized differently where two entries meet."""

OUTLINE_SHARE: Final = 0.3
"""The share of the budget for outlines of anchors that do not all fit; the rest is for the bodies of the first."""

MAX_CANDIDATE_SHARE: Final = 0.5
"""The share of what is left for candidates that one may take with its body; a longer one is outlined, so that one long
function does not stand for a whole plan."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a plan."""

    max_tokens: int
    """For everything."""
    max_entities: int
    """For candidates; anchors are limited by tokens alone."""
    allow_partial: bool = False
    semantic_tokens: int | None = None
    """For candidates; None for all that the anchors leave."""


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
    """Take the anchors that fit, then candidates in their order up to the first that does not fit.

    Anchors come by descending priority, the most relevant of each priority first.
    """
    draft = _Draft(query, budget, tokens)
    for _, group in groupby(anchors, key=lambda anchor: anchor.priority):
        draft.add_anchors(list(group))
    if anchors and not draft.entries:
        draft.warnings.append(
            PlanWarning(
                "no_anchor_fits",
                f"none of the {len(anchors)} anchors fits into {budget.max_tokens} tokens; raise max_tokens",
            )
        )
    known = {anchor.unit.key for anchor in anchors}
    best: dict[str, Candidate] = {}
    for one in candidates:
        if one.unit.key not in known:
            best.setdefault(one.unit.key, one)
    draft.add_candidates(best.values())
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

    def add_anchors(self, anchors: Sequence[Anchor]) -> None:
        """Add the anchors of one priority: all in full if they fit, else outlines and the bodies of the first."""
        containers = _find_containers([anchor.unit for anchor in anchors])
        ordered = _containers_first(anchors, containers)
        units = [anchor.unit for anchor in ordered]
        sizes = {unit.key: self._size(unit) for unit in units}
        shown = self._choose_forms(units, sizes, containers)
        outlined = 0
        for anchor in ordered:
            unit, reason = anchor.unit, f"{ANCHOR_PREFIX}{anchor.reason}"
            form = shown.get(unit.key)
            container = None if form is not None else self._container_of(unit)
            if form is not None:
                outlined += form is not unit
                self._add(unit, form, reason, anchor.priority)
                continue
            size = sizes[unit.key]
            refused = self._describe_misfit(size) if container is None else _describe_container(container)
            self.dropped.append(DroppedEntity(unit.key, reason, refused, size))
            if container is None:
                message = f"the anchor {unit.key} ({anchor.reason}) is dropped: {refused}"
                self.warnings.append(PlanWarning("anchor_dropped", message, unit.key))
        if outlined:
            message = (
                f"{outlined} of {len(anchors)} anchors ({anchors[0].reason}) are shortened to fit the budget"
            )
            self.warnings.append(PlanWarning("anchors_shortened", message))

    def add_candidates(self, candidates: Iterable[Candidate]) -> None:
        """Add candidates in their order up to the first that fits neither in full nor as an outline."""
        limit = self.budget.max_entities
        left = self.budget.max_tokens - self.used
        if self.budget.semantic_tokens is not None:
            left = min(left, self.budget.semantic_tokens)
        added, ended = 0, False
        for candidate in candidates:
            unit, size = candidate.unit, self._size(candidate.unit)
            refused, form = "", None
            container = self._container_of(unit)
            if container is not None:
                refused = _describe_container(container)
            elif ended:
                refused = AFTER_FIRST_MISFIT
            elif added >= limit:
                refused, ended = f"meaning has already added {limit:,} {_entities(limit)}", True
            else:
                form = self._fit(unit, size, left)
                if form is None:
                    refused, ended = f"it has {size} tokens, and {left} are left for candidates", True
            if form is None:
                self.dropped.append(DroppedEntity(unit.key, candidate.reason, refused, size))
                continue
            left -= self._add(unit, form, candidate.reason, candidate.priority)
            added += 1

    def _choose_forms(
        self,
        units: Sequence[CodeUnit],
        sizes: Mapping[str, int],
        containers: Mapping[str, Sequence[CodeUnit]],
    ) -> Mapping[str, CodeUnit]:
        """Return what the plan shows of each unit: all of it, or less where not all fit; units may be left out."""
        left = self.budget.max_tokens - self.used
        free = [unit for unit in units if self._container_of(unit) is None]
        outermost = [unit for unit in free if not containers[unit.key]]
        if sum(sizes[unit.key] for unit in outermost) <= left:
            return {unit.key: unit for unit in outermost}
        forms = _Forms(self._size, containers)
        outlines = {unit.key: outline_unit(unit) for unit in free}
        for unit in outermost:
            forms.show(unit, outlines[unit.key], int(OUTLINE_SHARE * left))
        for unit in free:
            forms.show(unit, unit, left)
        for unit in free:
            if unit.key not in forms.shown:
                forms.show(unit, outlines[unit.key], left)
        if self.budget.allow_partial:
            for unit in free:
                if forms.shown.get(unit.key) is not unit:
                    spare = left - forms.used + forms.sizes.get(unit.key, 0) - SEAM_TOKENS
                    forms.show(unit, shorten_unit(unit, self.query, spare, self.tokens.count), left)
        return forms.shown

    def _fit(self, unit: CodeUnit, size: int, left: int) -> CodeUnit | None:
        """Return what the plan shows of a candidate; None if nothing fits."""
        most = int(MAX_CANDIDATE_SHARE * left)
        if size <= most:
            return unit
        if self.budget.allow_partial:
            form = shorten_unit(unit, self.query, most - SEAM_TOKENS, self.tokens.count)
        else:
            form = outline_unit(unit)
        if form is not None and self._size(form) <= left:
            return form
        return unit if size <= left else None

    def _size(self, unit: CodeUnit) -> int:
        return self.tokens.count(render_unit(unit)) + SEAM_TOKENS

    def _container_of(self, unit: CodeUnit) -> CodeUnit | None:
        return next((one for one in self.whole if one.contains(unit)), None)

    def _describe_misfit(self, size: int) -> str:
        left = self.budget.max_tokens - self.used
        return f"it has {size} tokens, and {left} of {self.budget.max_tokens} are left"

    def _add(self, unit: CodeUnit, form: CodeUnit, reason: str, priority: int) -> int:
        """Add an entry; return its tokens."""
        entry = PlannedEntity(
            key=unit.key,
            reason=reason,
            priority=priority,
            tokens=self._size(form),
            position=len(self.entries) + 1,
            path=unit.location or unit.path,
            lines=unit.lines,
            qualified=unit.qualified,
            language=unit.language,
            preview=unit.text[:PREVIEW_CHARACTERS],
            content=content_hash(unit.text),
            text=form.text,
            partial=form is not unit,
        )
        self.entries.append(entry)
        self.used += entry.tokens
        if form is unit:
            self.whole.append(unit)
        return entry.tokens


@dataclass(slots=True)
class _Forms:
    """What is shown of the units of one priority, within a number of tokens."""

    size_of: Callable[[CodeUnit], int]
    containers: Mapping[str, Sequence[CodeUnit]]
    shown: dict[str, CodeUnit] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    used: int = 0

    def show(self, unit: CodeUnit, form: CodeUnit | None, max_tokens: int) -> None:
        """Show a form of a unit in place of the one before, if it fits and no unit that contains it is shown whole."""
        if form is None or any(self.shown.get(one.key) is one for one in self.containers[unit.key]):
            return
        size = self.size_of(form)
        used = self.used - self.sizes.get(unit.key, 0) + size
        if used <= max_tokens:
            self.shown[unit.key], self.sizes[unit.key], self.used = form, size, used


def _find_containers(units: Sequence[CodeUnit]) -> dict[str, list[CodeUnit]]:
    """Return for each unit the others that contain it, the outermost first."""
    out: dict[str, list[CodeUnit]] = {unit.key: [] for unit in units}
    around: list[CodeUnit] = []
    placed = [(unit.path, unit.lines[0], -unit.lines[1], unit.key, unit) for unit in units if unit.lines]
    for path, first, _, _, unit in sorted(placed, key=lambda one: one[:4]):
        around = [one for one in around if one.path == path and one.lines and one.lines[1] >= first]
        out[unit.key] = [one for one in around if one.contains(unit)]
        around.append(unit)
    return out


def _containers_first(
    anchors: Sequence[Anchor], containers: Mapping[str, Sequence[CodeUnit]]
) -> list[Anchor]:
    """Return the anchors in their order, except that an entity comes before the entities that it contains."""
    by_key = {anchor.unit.key: anchor for anchor in anchors}
    keys = (
        key
        for anchor in anchors
        for key in (*(one.key for one in containers[anchor.unit.key]), anchor.unit.key)
    )
    return [by_key[key] for key in dict.fromkeys(keys)]


def _describe_container(container: CodeUnit) -> str:
    return f"{CONTAINED}{container.key}, which is in the plan"


def _entities(number: int) -> str:
    return "entity" if number == 1 else "entities"
