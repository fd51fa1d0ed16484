"""An old plan, seen again: what was decided, and what the same question would bring today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sennit.hydration.planning import INSIDE
from sennit.hydration.values import HydrationPlan
from sennit.records import Json


@dataclass(frozen=True, slots=True)
class Changes:
    """How today's plan differs from an old one, by key."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """In both, with another content."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def to_dict(self) -> dict[str, Json]:
        return {"added": list(self.added), "removed": list(self.removed), "changed": list(self.changed)}


@dataclass(frozen=True, slots=True)
class Introspection:
    """A plan of an episode, which turns there are, and what a replay gave where one was asked for."""

    plan: HydrationPlan
    """Without the texts: those are where they came from."""
    turns: tuple[int, ...]
    changes: Changes | None = None

    def to_dict(self) -> dict[str, Json]:
        out = {**self.plan.to_dict(text=False), "turns": list(self.turns)}
        return out if self.changes is None else {**out, "replay": self.changes.to_dict()}


def changes(before: HydrationPlan, after: HydrationPlan) -> Changes:
    """What a later plan has that an earlier one had not, and the other way round."""
    old = {entry.key: entry.content for entry in before.entries}
    new = {entry.key: entry.content for entry in after.entries}
    return Changes(
        tuple(key for key in new if key not in old),
        tuple(key for key in old if key not in new),
        tuple(key for key in new if key in old and new[key] != old[key]),
    )


def limited(plan: HydrationPlan, sees: Callable[[str], bool]) -> HydrationPlan:
    """The plan with only what may be seen of it, as if the rest had never been there."""
    if all(map(sees, (*plan.keys, *(one.key for one in plan.dropped)))):
        return plan
    entries = [entry for entry in plan.entries if sees(entry.key)]
    return replace(
        plan,
        entries=tuple(replace(entry, position=number) for number, entry in enumerate(entries, 1)),
        # Those that stand inside another would name it.
        dropped=tuple(one for one in plan.dropped if sees(one.key) and not one.reason.startswith(INSIDE)),
        warnings=tuple(one for one in plan.warnings if one.key and sees(one.key)),
    )
