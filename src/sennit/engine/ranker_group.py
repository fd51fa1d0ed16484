"""`db.rankers`: learned rankers, which the stage `learned` of a recipe names."""

from __future__ import annotations

import time
from typing import Final

from sennit.engine.access import Access
from sennit.errors import AccessDenied, NotFound
from sennit.privacy import Caller
from sennit.ranking.features import FEATURE_NAMES
from sennit.ranking.ranker import EVERYONE, Ranker, RankerScope, check_usable, ranker_from_json
from sennit.repositories.feedback import FeedbackOwner
from sennit.repositories.rankers import RankerStore, UnreadableRanker
from sennit.stores.contract import RecordsRole

REFRESH_SECONDS: Final = 5.0
"""How soon a process notices that another one stored or removed a ranker."""

MAX_CACHED: Final = 64
"""Rankers that a process keeps ready, each with tables of up to 8 MB."""


class RankerGroup:
    """`db.rankers`: rankers that `sennit learn` trained, each for the callers whose feedback it was trained on."""

    def __init__(self, access: Access, records: RecordsRole) -> None:
        self._access = access
        self._store = RankerStore(records)
        self._cache: dict[tuple[str, FeedbackOwner], tuple[float, Ranker | None]] = {}

    def add(self, ranker: Ranker | str) -> Ranker:
        """Store a ranker, or the JSON text of one; one with the same name and scope is replaced.

        Raises InvalidInput for a text that is no ranker over the features of this version, and for a ranker that no
        search can use.
        """
        text = ranker.to_json() if isinstance(ranker, Ranker) else ranker
        read = ranker_from_json(text, FEATURE_NAMES)
        check_usable(read.training)
        self._store.put(read)
        self._cache.clear()
        return read

    def find(self, name: str, *, caller: Caller | None = None) -> Ranker:
        """Return the ranker that ranks a caller's searches: the caller's own, else the tenant's, else everyone's."""
        who = self._access.resolve(caller)
        key = name, FeedbackOwner.of(who)
        now = time.monotonic()
        expires, ranker = self._cache.get(key, (0.0, None))
        if now >= expires:
            ranker = self._store.find(name, who)
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[key] = now + REFRESH_SECONDS, ranker
        if ranker is None:
            raise NotFound(f"There is no ranker {name!r}; 'sennit learn' trains one")
        return ranker

    def all(self, *, caller: Caller | None = None) -> tuple[Ranker, ...]:
        """Return the rankers that may rank the caller's searches, by name; without a caller, every ranker."""
        found = [one for one in self._store.all() if isinstance(one, Ranker)]
        return tuple(one for one in found if _admits(one.training.scope, caller))

    def unreadable(self, *, caller: Caller | None = None) -> tuple[UnreadableRanker, ...]:
        """Return the rankers that are stored but cannot be read; a recipe that names one ranks without it."""
        found = [one for one in self._store.all() if isinstance(one, UnreadableRanker)]
        return tuple(one for one in found if _admits(one.scope, caller))

    def remove(self, name: str, scope: RankerScope = EVERYONE, *, caller: Caller | None = None) -> None:
        """Remove the ranker of a name and scope. A caller may remove only its own."""
        if caller is not None:
            owner = FeedbackOwner.of(caller)
            if scope != RankerScope(owner.tenant, owner.identity):
                raise AccessDenied("A caller may remove only the caller's own ranker")
        self._store.remove(name, scope)
        self._cache.clear()


def _admits(scope: RankerScope, caller: Caller | None) -> bool:
    if caller is None:
        return True
    owner = FeedbackOwner.of(caller)
    return scope.admits(owner.tenant, owner.identity)
