"""Who may see what: a caller's clearance, scopes and tenant become one filter that every search applies inside.

A record carries a sensitivity (a level), a scope and a tenant. A caller sees a record if the caller's clearance
is at least its level, its scope is one of the caller's or open to everyone, and the tenant is the caller's own.
A level that no setting names is seen by nobody but the owner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from sennit.errors import InvalidInput
from sennit.filters import EVERYTHING, Equal, Exists, Filter, In, parse_filter

LEVELS: Final = ("normal", "sensitive", "private")
"""From the least to the most sensitive."""

EVERYONE: Final = ("public",)
"""Scopes that need no membership."""

FilterLike = Filter | dict[str, object] | str | None
Rule = Callable[["Caller"], FilterLike]
"""A deployment's own rule: a filter of what a caller may see at most. It can only take away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks. The default sees the least: the lowest level, and what is open to everyone."""

    clearance: str = ""
    """A sensitivity level; empty: the lowest."""
    scopes: frozenset[str] = frozenset()
    tenant: str = ""
    name: str = ""
    """For logs and the provenance of what the caller writes; it decides nothing."""
    everything: bool = field(default=False)
    """The owner: sees every record of the tenant, whatever its level and scope."""

    def __post_init__(self) -> None:
        for label in ("clearance", "tenant", "name"):
            if not isinstance(getattr(self, label), str):
                raise InvalidInput(f"Caller.{label} must be a string, not {getattr(self, label)!r}")
        if isinstance(self.scopes, str) or not isinstance(self.scopes, Iterable):
            raise InvalidInput(f"Caller.scopes must be a set of names, not {self.scopes!r}")
        scopes = frozenset(self.scopes)
        if not all(isinstance(scope, str) and scope for scope in scopes):
            raise InvalidInput("Caller.scopes must be names, each a string that is not empty")
        object.__setattr__(self, "scopes", scopes)


OWNER: Final = Caller(everything=True, name="owner")


@dataclass(frozen=True, slots=True)
class Policy:
    """Which levels there are, what everyone may see, and a deployment's own rule."""

    levels: Sequence[str] = LEVELS
    everyone: Sequence[str] = EVERYONE
    rule: Rule | None = None

    def audience(self, caller: Caller) -> Filter:
        """What the caller may see, as a filter."""
        if not isinstance(caller, Caller):
            raise InvalidInput(f"caller must be a sennit.Caller, not {type(caller).__name__}")
        levels = () if caller.everything else self.levels_up_to(caller.clearance)
        seen = _granted(caller, levels, tuple(self.everyone))
        if self.rule is not None:
            allowed = parse_filter(self.rule(caller))
            seen = seen if allowed == EVERYTHING else seen & allowed
        return seen

    def levels_up_to(self, clearance: str) -> tuple[str, ...]:
        """The levels that a clearance reaches."""
        if not clearance:
            return tuple(self.levels[:1])
        if clearance not in self.levels:
            raise InvalidInput(
                f"There is no sensitivity level {clearance!r}. Levels, lowest first: {', '.join(self.levels)}"
            )
        return tuple(self.levels[: self.levels.index(clearance) + 1])


@lru_cache(256)
def _granted(caller: Caller, levels: tuple[str, ...], everyone: tuple[str, ...]) -> Filter:
    """What tenant, clearance and scopes let a caller see; kept, because each search asks it."""
    seen: Filter = Equal("tenant", caller.tenant) if caller.tenant else ~Exists("tenant")
    if not caller.everything:
        seen = seen & In("sensitivity", levels) & In("scope", (*everyone, *caller.scopes))
    return seen
