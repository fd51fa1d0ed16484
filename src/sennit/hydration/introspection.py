"""Introspection of a stored plan: what was decided, and what the same query would select today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sennit.hydration.plan import DroppedEntity, HydrationPlan, PlannedEntity
from sennit.hydration.planner import CONTAINED
from sennit.records import Json


@dataclass(frozen=True, slots=True)
class PlanChanges:
    """How a new plan differs from an old one, by entity key."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """In both plans, with different text."""

    def map_keys(self, show: Callable[[str], str]) -> PlanChanges:
        """Return the same changes with other keys."""
        return PlanChanges(*(tuple(map(show, keys)) for keys in (self.added, self.removed, self.changed)))

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def to_dict(self) -> dict[str, Json]:
        return {"added": list(self.added), "removed": list(self.removed), "changed": list(self.changed)}


@dataclass(frozen=True, slots=True)
class Introspection:
    """A plan of an episode, the turns of the episode, and the result of a replay if one was requested."""

    plan: HydrationPlan
    """The plan without the texts of its entities."""
    turns: tuple[int, ...]
    changes: PlanChanges | None = None
    project: tuple[str, ...] = ()
    """The indexed folders that the plan is limited to; none for all."""

    def to_dict(self) -> dict[str, Json]:
        """Return the plan under the names that programs rely on."""
        plan = self.plan
        out: dict[str, Json] = {
            "episode_id": plan.episode,
            "query": plan.query,
            "turn": plan.turn,
            "turns": list(self.turns),
            "max_tokens": plan.max_tokens,
            "max_entities": plan.max_entities,
            "allow_partial": plan.allow_partial,
            "tokenizer": plan.tokenizer,
            "token_count": plan.tokens,
            "entities": [_entity_to_dict(entry) for entry in plan.entries],
            "dropped": [_dropped_to_dict(one) for one in plan.dropped],
            "warnings": [warning.to_dict() for warning in plan.warnings],
        }
        if self.project:
            out["project"] = list(self.project)
        return out if self.changes is None else {**out, "replay": self.changes.to_dict()}


@dataclass(frozen=True, slots=True)
class EpisodeTurn:
    """What one turn of an episode put into the prompt, in numbers."""

    turn: int
    created: datetime
    query: str
    tokens: int
    max_tokens: int
    anchors: int
    """Entities that the query or the episode names."""
    semantic: int
    """Entities that were found for the query."""
    dropped: int

    def to_dict(self) -> dict[str, Json]:
        return {
            "turn": self.turn,
            "created": self.created.isoformat(),
            "query": self.query,
            "tokens": self.tokens,
            "max_tokens": self.max_tokens,
            "anchors": self.anchors,
            "semantic": self.semantic,
            "dropped": self.dropped,
        }


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode and its turns, in order."""

    name: str
    turns: tuple[EpisodeTurn, ...]

    def to_dict(self) -> dict[str, Json]:
        return {"episode_id": self.name, "turns": [turn.to_dict() for turn in self.turns]}


def summarise_plan(plan: HydrationPlan, created: datetime) -> EpisodeTurn:
    """Return the numbers of a plan."""
    anchors = sum(entry.is_anchor for entry in plan.entries)
    return EpisodeTurn(
        plan.turn,
        created,
        plan.query,
        plan.tokens,
        plan.max_tokens,
        anchors,
        len(plan.entries) - anchors,
        len(plan.dropped),
    )


def _entity_to_dict(entry: PlannedEntity) -> dict[str, Json]:
    return {
        "entity_key": entry.key,
        "reason": entry.reason,
        "priority": entry.priority,
        "token_count": entry.tokens,
        "included_at": entry.position,
        "content": entry.preview,
        "content_hash": entry.content,
        "partial": entry.partial,
        "path": entry.path,
        "lines": list(entry.lines) if entry.lines else None,
        "qualified": entry.qualified,
        "language": entry.language,
    }


def _dropped_to_dict(one: DroppedEntity) -> dict[str, Json]:
    return {
        "entity_key": one.key,
        "selection_reason": one.selection_reason,
        "reason": one.reason,
        "token_count": one.tokens,
    }


def compare_plans(before: HydrationPlan, after: HydrationPlan) -> PlanChanges:
    """Return what a later plan added, removed and changed."""
    old = {entry.key: entry.content for entry in before.entries}
    new = {entry.key: entry.content for entry in after.entries}
    return PlanChanges(
        tuple(key for key in new if key not in old),
        tuple(key for key in old if key not in new),
        tuple(key for key in new if key in old and new[key] != old[key]),
    )


def show_keys(plan: HydrationPlan, show: Callable[[str], str]) -> HydrationPlan:
    """Return the plan with its keys as they are shown, in reasons and warnings too."""
    shown = {key: show(key) for key in (*plan.keys, *(one.key for one in plan.dropped))}
    longest_first = sorted((key for key in shown if shown[key] != key), key=len, reverse=True)

    def rewrite(text: str) -> str:
        for key in longest_first:
            text = text.replace(key, shown[key])
        return text

    return replace(
        plan,
        entries=tuple(replace(entry, key=shown[entry.key]) for entry in plan.entries),
        dropped=tuple(replace(one, key=shown[one.key], reason=rewrite(one.reason)) for one in plan.dropped),
        warnings=tuple(
            replace(one, key=show(one.key) if one.key else "", message=rewrite(one.message))
            for one in plan.warnings
        ),
    )


def restrict_plan(plan: HydrationPlan, is_visible: Callable[[str], bool]) -> HydrationPlan:
    """Return the plan with the visible entities only, as if the others had never been selected."""
    if all(map(is_visible, (*plan.keys, *(one.key for one in plan.dropped)))):
        return plan
    entries = [entry for entry in plan.entries if is_visible(entry.key)]
    return replace(
        plan,
        entries=tuple(replace(entry, position=number) for number, entry in enumerate(entries, 1)),
        # An entity dropped because another contains it would name that other.
        dropped=tuple(
            one for one in plan.dropped if is_visible(one.key) and not one.reason.startswith(CONTAINED)
        ),
        warnings=tuple(one for one in plan.warnings if one.key and is_visible(one.key)),
    )
