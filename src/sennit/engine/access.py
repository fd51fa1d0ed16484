"""Who a call is made for, and what that caller may see and write."""

from __future__ import annotations

from dataclasses import dataclass

from sennit.filters import Filter
from sennit.privacy import Caller, Policy


@dataclass(frozen=True, slots=True)
class Access:
    """The policy of a database, and the caller of a call that names none."""

    policy: Policy
    default_caller: Caller

    def resolve(self, caller: Caller | None) -> Caller:
        """Return the caller of a call."""
        return self.default_caller if caller is None else caller

    def audience(self, caller: Caller | None) -> Filter:
        """Return the filter of what a caller may see."""
        return self.policy.audience(self.resolve(caller))

    def write_audience(self, caller: Caller | None) -> Filter | None:
        """Return what a caller may write; None without a caller, who is then the owner of the process."""
        return None if caller is None else self.policy.audience(caller)
