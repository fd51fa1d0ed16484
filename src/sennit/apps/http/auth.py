"""Authentication: the bearer token alone decides who the caller is, and for whom the caller may act."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from sennit.apps.http.assets import ASSETS
from sennit.apps.http.errors import HttpError
from sennit.apps.sockets import bearer_token
from sennit.privacy import Caller
from sennit.settings import SettingsFile

if TYPE_CHECKING:
    from sennit.apps.http.executor import DatabaseExecutor

PUBLIC_PATHS: Final = frozenset({"/healthz", "/readyz", "/openapi.json", "/opensearch.xml", *ASSETS})
"""Routes that need no token. They reveal nothing about the stored records."""

SIGN_IN_PATH: Final = "/v1/sign-in"
"""The only route that accepts a one-time code."""

CODE_SECONDS: Final = 300.0
"""How long a one-time code may be used."""

SESSION_PREFIX: Final = "sennit_page_"


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
    acting: Caller | None = None
    """The caller of the token, if the request acts for another."""
    recipe_file: SettingsFile | None = None
    """Where the caller may save recipes: for administrators of a service that allows it."""
    session_token: str = field(default="", repr=False)
    """The token that the one-time code of this request is exchanged for; empty for a request with a token."""


ANONYMOUS: Final = Principal(Caller(), authenticated=False)
"""A request without a token on a public route: the least privileged caller, without write access."""


class SignIn:
    """A one-time code for the web page, and the session that it opens. Both are only in the memory of this process."""

    def __init__(self, caller: Caller, *, can_write: bool = True) -> None:
        self.code = secrets.token_urlsafe(32)
        self._principal = Principal(caller, can_write, "page")
        self._token = SESSION_PREFIX + secrets.token_urlsafe(32)
        self._expires = time.monotonic() + CODE_SECONDS
        self._used = False
        self._lock = threading.Lock()

    def exchange(self, code: str) -> Principal | None:
        """The principal with its session token, the first time that the code is shown; None otherwise."""
        if not secrets.compare_digest(code.encode(), self.code.encode()):
            return None
        with self._lock:
            if self._used or time.monotonic() > self._expires:
                return None
            self._used = True
        return replace(self._principal, session_token=self._token)

    def find(self, token: str) -> Principal | None:
        """The principal of the session token, once the code has been used."""
        is_session = self._used and secrets.compare_digest(token.encode(), self._token.encode())
        return self._principal if is_session else None


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Resolves tokens. With `open_access`, every request is the default caller, who may write."""

    executor: DatabaseExecutor = field(repr=False)
    open_access: bool = False
    read_only: bool = False
    sign_in: SignIn | None = field(default=None, repr=False)
    recipe_file: SettingsFile | None = None
    """The file in which administrators may save recipes; None if nobody may."""

    def authenticate(self, authorization: list[str], path: str, acting_for: list[str]) -> Principal:
        """The principal of a request to this path. Raises HttpError 401 if a valid token is missing."""
        principal = self._authenticate(authorization, path)
        if not acting_for or path in PUBLIC_PATHS:
            return principal
        other = self._find_other(acting_for, principal.caller)
        return replace(principal, caller=other, can_write=False, recipe_file=None, acting=principal.caller)

    def _authenticate(self, authorization: list[str], path: str) -> Principal:
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
            if found is None and self.sign_in is not None:
                session = self.sign_in.find(token)
                if session is None and path == SIGN_IN_PATH:
                    session = self.sign_in.exchange(token)
                if session is not None:
                    # It belongs to the user of this machine who started the service.
                    return self._with_rights(session, session.can_write, is_administrator=True)
        if found is not None:
            principal = Principal(found.caller, token_name=found.name)
            is_administrator = found.caller.everything and not found.caller.tenant
            return self._with_rights(principal, found.write, is_administrator=is_administrator)
        if path in PUBLIC_PATHS:
            return ANONYMOUS
        message = (
            "Unknown token." if authorization else "A token is required: send 'Authorization: Bearer TOKEN'."
        )
        raise HttpError(401, message, {"www-authenticate": "Bearer"})

    def _with_rights(self, principal: Principal, can_write: bool, *, is_administrator: bool) -> Principal:
        """The principal with what it may do on this service."""
        can_write = can_write and not self.read_only
        return replace(
            principal,
            can_write=can_write,
            can_give_feedback=not self.read_only,
            recipe_file=self.recipe_file if can_write and is_administrator else None,
        )

    def _find_other(self, acting_for: list[str], signed_in: Caller) -> Caller:
        """The caller whom the header `X-Sennit-As` names, if the signed-in one may act for that caller."""
        wanted = _parse_acting_for(acting_for)
        admin = self.executor.db.admin
        if "token" not in wanted:
            return admin.act_for(signed_in, Caller(**wanted, tenant=signed_in.tenant))
        found = next((token for token in admin.tokens.all() if token.name == wanted["token"]), None)
        # The answer is the same for a token of another tenant and for one that does not exist.
        if found is None or found.caller.tenant != signed_in.tenant:
            admin.act_for(signed_in, signed_in)
            raise HttpError(404, "There is no such token to act for.")
        return admin.act_for(signed_in, found.caller)


def _parse_acting_for(values: list[str]) -> Mapping[str, Any]:
    """Read the header: JSON in percent encoding, with the name of a token, or with a clearance and scopes."""
    try:
        (value,) = values
        wanted = json.loads(unquote(value, errors="strict"))
        if not isinstance(wanted, dict):
            raise TypeError
        if set(wanted) == {"token"} and isinstance(wanted["token"], str):
            return wanted
        clearance, scopes = wanted.pop("clearance", ""), wanted.pop("scopes", [])
        if wanted or not isinstance(clearance, str) or not isinstance(scopes, list):
            raise TypeError
        if not all(isinstance(scope, str) and scope for scope in scopes):
            raise TypeError
    except (ValueError, TypeError, RecursionError) as error:
        raise HttpError(
            422,
            'X-Sennit-As must be {"token": NAME}, or {"clearance": LEVEL, "scopes": [NAME, ...]}, as JSON in percent '
            "encoding.",
        ) from error
    return {"clearance": clearance, "scopes": frozenset(scopes)}
