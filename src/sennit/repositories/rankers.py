"""The learned rankers of a database, as text, each under the scope of the feedback that it was trained on."""

from __future__ import annotations

from typing import Final

from sennit.errors import NotFound
from sennit.privacy import Caller
from sennit.ranking.ranker import EVERYONE, Ranker, RankerScope, ranker_from_json
from sennit.repositories.feedback import FeedbackOwner
from sennit.repositories.keys import encode_key, key_range
from sennit.stores.contract import RecordsRole

_RANKER: Final = "ranker"
_ANY: Final = 0
"""In a key, the part for all tenants or all callers. Names are texts, so that no name means it."""


class RankerStore:
    """The rankers of one database. Rankers of different scopes may have the same name."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records

    def put(self, ranker: Ranker) -> None:
        """Store a ranker; one with the same name and scope is replaced."""
        with self._records.transaction() as transaction:
            transaction.state.put([(_key(ranker.name, ranker.training.scope), ranker.to_json().encode())])

    def find(self, name: str, caller: Caller) -> Ranker | None:
        """Return the ranker of a name for a caller: the caller's own, else that of the tenant, else everyone's."""
        owner = FeedbackOwner.of(caller)
        scopes = (RankerScope(owner.tenant, owner.identity), RankerScope(owner.tenant), EVERYONE)
        with self._records.state() as state:
            for scope in scopes:
                stored = state.get(_key(name, scope))
                if stored is not None:
                    return ranker_from_json(stored.decode())
        return None

    def all(self) -> list[Ranker]:
        """Every ranker, by name."""
        with self._records.state() as state:
            return [ranker_from_json(value.decode()) for _, value in state.scan(*key_range(_RANKER))]

    def remove(self, name: str, scope: RankerScope) -> None:
        """Remove a ranker."""
        key = _key(name, scope)
        with self._records.transaction() as transaction:
            if transaction.state.get(key) is None:
                raise NotFound(f"There is no ranker {name!r} of {scope.about}")
            transaction.state.delete([key])


def _key(name: str, scope: RankerScope) -> bytes:
    tenant = _ANY if scope.tenant is None else scope.tenant
    return encode_key(_RANKER, name, tenant, _ANY if scope.caller is None else scope.caller)
