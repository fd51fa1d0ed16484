"""A lease: work on something that several processes could do, and that only one should do at a time.

It is an entry in the source of truth that names its holder and expires. Losing it, for example because a clock jumped,
must do no harm.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

from sennit.stores.contract import RecordsRole

LEASE_PREFIX: Final = b"lease "
"""What the keys begin with. No key of a repository does: those begin with a byte below 3."""

LEASE_SECONDS: Final = 30.0
"""How long a process that died keeps others waiting."""

_OWNER_BYTES: Final = 8


class Lease:
    """The right of this process to work on a named thing."""

    def __init__(self, records: RecordsRole, name: str) -> None:
        self._records = records
        self._key = LEASE_PREFIX + name.encode()
        self._owner = secrets.token_bytes(_OWNER_BYTES)
        self._renew_at = 0.0

    def take(self) -> bool:
        """Take or renew the lease; False while another holds it."""
        if time.monotonic() < self._renew_at:
            return True
        with self._records.state() as state:
            if self._is_taken(state.get(self._key)):
                return False
        with self._records.transaction() as transaction:
            if self._is_taken(transaction.state.get(self._key)):
                return False
            until = int((time.time() + LEASE_SECONDS) * 1000)
            transaction.state.put([(self._key, self._owner + until.to_bytes(8, "big"))])
        self._renew_at = time.monotonic() + LEASE_SECONDS / 3
        return True

    def release(self) -> None:
        """Give the lease back, if it was taken."""
        if not self._renew_at:
            return
        self._renew_at = 0.0
        with self._records.transaction() as transaction:
            if not self._is_taken(transaction.state.get(self._key)):
                transaction.state.delete([self._key])

    def _is_taken(self, value: bytes | None) -> bool:
        """Whether another holds it."""
        if value is None or value[:_OWNER_BYTES] == self._owner:
            return False
        until = int.from_bytes(value[_OWNER_BYTES:], "big") / 1000
        # A clock that was ahead and is right again must not leave a lease for years.
        return time.time() < until <= time.time() + LEASE_SECONDS
