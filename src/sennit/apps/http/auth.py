"""Authentication: the bearer token alone decides who the caller is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sennit.apps.http.errors import HttpError
from sennit.apps.sockets import bearer_token
from sennit.privacy import Caller

if TYPE_CHECKING:
    from sennit.apps.http.executor import DatabaseExecutor

PUBLIC_PATHS: Final = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Routes that need no token. They reveal nothing about the stored records."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who sent a request, and what they may do."""

    caller: Caller
    can_write: bool = False
    token_name: str = ""
    """The name of the token, for the log. Empty where no token is required."""
    can_give_feedback: bool = False
    """Whether what the caller did with results may be recorded: for everybody, unless the service is read-only."""
    authenticated: bool = True
    """False for a request without a valid token on a public route."""


ANONYMOUS: Final = Principal(Caller(), authenticated=False)
"""A request without a token on a public route: the least privileged caller, without write access."""


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Resolves tokens. With `open_access`, every request is the default caller, who may write."""

    executor: DatabaseExecutor = field(repr=False)
    open_access: bool = False
    read_only: bool = False

    def authenticate(self, authorization: list[str], path: str) -> Principal:
        """The principal of a request to this path. Raises HttpError 401 if a valid token is missing."""
        if self.open_access:
            return Principal(
                self.executor.db.caller,
                can_write=not self.read_only,
                can_give_feedback=not self.read_only,
            )
        found = None
        token = bearer_token(authorization)
        if token:
            # Looked up at each request, so that a revoked token stops working at once. Looked up on the event loop:
            # reading one row is cheaper than handing it to a thread, and must not queue behind searches.
            found = self.executor.db.admin.tokens.find(token)
        if found is not None:
            return Principal(
                found.caller,
                found.write and not self.read_only,
                found.name,
                can_give_feedback=not self.read_only,
            )
        if path in PUBLIC_PATHS:
            return ANONYMOUS
        message = (
            "Unknown token." if authorization else "A token is required: send 'Authorization: Bearer TOKEN'."
        )
        raise HttpError(401, message, {"www-authenticate": "Bearer"})
