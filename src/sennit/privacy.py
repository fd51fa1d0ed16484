"""Access control: a caller's clearance, scopes and tenant become one filter, which every source applies.

A record has a sensitivity (a level), a scope and a tenant. A caller sees a record if the caller's clearance is at
least its level, its scope is public or one of the caller's, and its tenant is the caller's own. Only the owner sees
a record whose level is not in the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from sennit.errors import InvalidInput
from sennit.filters import EVERYTHING, Equal, Exists, Filter, In, parse_filter

LEVELS: Final = ("normal", "sensitive", "private")
"""From the least to the most sensitive."""

PUBLIC_SCOPES: Final = ("public",)
"""Scopes that every caller has."""

FilterLike = Filter | dict[str, object] | str | None
Rule = Callable[["Caller"], FilterLike]
"""A deployment's own rule: a filter on what a caller may see. It can only restrict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller of a search. The default sees the least: the lowest level and the public scopes."""

    clearance: str = ""
    """A sensitivity level; empty for the lowest."""
    scopes: AbstractSet[str] = frozenset()
    """Stored as a frozenset."""
    tenant: str = ""
    name: str = ""
    """For logs and the provenance of writes; it grants nothing."""
    everything: bool = field(default=False)
    """Whether the caller is the owner, who sees every record of the tenant, whatever its level and scope."""

    def __post_init__(self) -> None:
        for label in ("clearance", "tenant", "name"):
            if not isinstance(getattr(self, label), str):
                raise InvalidInput(f"Caller.{label} must be a string, not {getattr(self, label)!r}")
        if isinstance(self.scopes, str) or not isinstance(self.scopes, Iterable):
            raise InvalidInput(f"Caller.scopes must be a set of names, not {self.scopes!r}")
        scopes = frozenset(self.scopes)
        if not all(isinstance(scope, str) and scope for scope in scopes):
            raise InvalidInput("Caller.scopes must be names, which are non-empty strings")
        object.__setattr__(self, "scopes", scopes)


OWNER: Final = Caller(everything=True, name="owner")


@dataclass(frozen=True, slots=True)
class Policy:
    """The levels, the public scopes, and a deployment's own rule."""

    levels: Sequence[str] = LEVELS
    public_scopes: Sequence[str] = PUBLIC_SCOPES
    rule: Rule | None = None

    def audience(self, caller: Caller) -> Filter:
        """Return what the caller may see, as a filter."""
        if not isinstance(caller, Caller):
            raise InvalidInput(f"caller must be a sennit.Caller, not {type(caller).__name__}")
        levels = () if caller.everything else self.levels_up_to(caller.clearance)
        visible = _build_audience(caller, levels, tuple(self.public_scopes))
        if self.rule is not None:
            allowed = parse_filter(self.rule(caller))
            visible = visible if allowed == EVERYTHING else visible & allowed
        return visible

    def levels_up_to(self, clearance: str) -> tuple[str, ...]:
        """Return the levels up to a clearance."""
        if not clearance:
            return tuple(self.levels[:1])
        if clearance not in self.levels:
            raise InvalidInput(
                f"There is no sensitivity level {clearance!r}. Levels, lowest first: {', '.join(self.levels)}"
            )
        return tuple(self.levels[: self.levels.index(clearance) + 1])


@lru_cache(256)
def _build_audience(caller: Caller, levels: tuple[str, ...], public_scopes: tuple[str, ...]) -> Filter:
    """Return what a caller may see by tenant, clearance and scopes; cached, because every search needs it."""
    visible: Filter = Equal("tenant", caller.tenant) if caller.tenant else ~Exists("tenant")
    if not caller.everything:
        visible = visible & In("sensitivity", levels) & In("scope", (*public_scopes, *caller.scopes))
    return visible
