"""The learned rankers of a database, as text, each under the scope of the feedback that it was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sennit.errors import InvalidInput, NotFound
from sennit.privacy import Caller
from sennit.ranking.ranker import EVERYONE, Ranker, RankerScope, ranker_from_json
from sennit.records import Json
from sennit.repositories.feedback import FeedbackOwner
from sennit.repositories.keys import decode_key, encode_key, key_range
from sennit.stores.contract import RecordsRole

_RANKER: Final = "ranker"
_ANY: Final = 0
"""In a key, the part for all tenants or all callers. Names are texts, so that no name means it."""


@dataclass(frozen=True, slots=True)
class UnreadableRanker:
    """A stored ranker that this version cannot read: it is damaged, or another version wrote it."""

    name: str
    scope: RankerScope
    reason: str

    def summary(self) -> dict[str, Json]:
        """Return what is known of it."""
        return {"name": self.name, "ranks_for": self.scope.about, "problem": self.reason}


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
                key = _key(name, scope)
                stored = state.get(key)
                found = None if stored is None else _read(key, stored)
                if isinstance(found, UnreadableRanker):
                    raise InvalidInput(f"The ranker {name!r} cannot be read: {found.reason}")
                if found is not None:
                    return found
        return None

    def all(self) -> list[Ranker | UnreadableRanker]:
        """Every ranker, by name."""
        with self._records.state() as state:
            return [_read(key, value) for key, value in state.scan(*key_range(_RANKER))]

    def remove(self, name: str, scope: RankerScope) -> None:
        """Remove a ranker."""
        key = _key(name, scope)
        with self._records.transaction() as transaction:
            if transaction.state.get(key) is None:
                raise NotFound(f"There is no ranker {name!r} of {scope.about}")
            transaction.state.delete([key])


def _read(key: bytes, value: bytes) -> Ranker | UnreadableRanker:
    try:
        return ranker_from_json(value.decode())
    except (InvalidInput, UnicodeDecodeError) as error:
        _, name, tenant, caller = decode_key(key)
        scope = RankerScope(None if tenant == _ANY else str(tenant), None if caller == _ANY else str(caller))
        return UnreadableRanker(str(name), scope, str(error))


def _key(name: str, scope: RankerScope) -> bytes:
    tenant = _ANY if scope.tenant is None else scope.tenant
    return encode_key(_RANKER, name, tenant, _ANY if scope.caller is None else scope.caller)
