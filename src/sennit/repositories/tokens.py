"""Access tokens for callers that reach the database over HTTP or MCP."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sennit.errors import InvalidInput, NotFound
from sennit.privacy import Caller
from sennit.repositories.keys import encode_key, key_range
from sennit.stores.contract import RecordsRole

PREFIX: Final = "sennit_"
"""Makes a leaked token recognisable, to people and to secret scanners."""

_HASH: Final = "token"
"""The part of the key before the hash of a token."""
_NAME: Final = "token name"
"""The part of the key before the name of a token; the value is the hash."""


@dataclass(frozen=True, slots=True)
class Token:
    """What the database stores about a token: its name and its caller. The token itself is never stored."""

    name: str
    caller: Caller
    created: datetime
    write: bool = False
    """Whether the token also permits writes to what its caller may see."""


class TokenStore:
    """The tokens of one database."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records

    def issue(self, name: str, caller: Caller, *, write: bool = False) -> str:
        """Create a token for a caller. It is returned only here: the database stores its hash."""
        if not name or not name.isprintable():
            raise InvalidInput("A token needs a name of printable characters, so that it can be revoked")
        token = PREFIX + secrets.token_urlsafe(32)
        digest = _hash(token)
        with self._records.transaction() as transaction:
            state = transaction.state
            if state.get(encode_key(_NAME, name)) is not None:
                raise InvalidInput(f"A token named {name!r} exists; revoke it first, or choose another name")
            stored = _encode_token(name, caller, time.time(), write=write)
            state.put([(encode_key(_HASH, digest), stored), (encode_key(_NAME, name), digest.encode())])
        return token

    def revoke(self, name: str) -> None:
        """Delete a token: from now on it is rejected."""
        with self._records.transaction() as transaction:
            digest = transaction.state.get(encode_key(_NAME, name))
            if digest is None:
                raise NotFound(f"There is no token {name!r}")
            transaction.state.delete([encode_key(_HASH, digest.decode()), encode_key(_NAME, name)])

    def all(self) -> list[Token]:
        """Every token, ordered by name."""
        with self._records.state() as state:
            found = state.scan(*key_range(_HASH))
        return sorted((_decode_token(value) for _, value in found), key=lambda token: token.name)

    def find(self, token: str) -> Token | None:
        """The stored token, or None. The lookup is by hash, so its duration reveals nothing about other tokens."""
        with self._records.state() as state:
            found = state.get(encode_key(_HASH, _hash(token)))
        return None if found is None else _decode_token(found)

    def find_caller(self, token: str) -> Caller | None:
        """The caller that a token authenticates, or None."""
        found = self.find(token)
        return found.caller if found else None


def _hash(token: str) -> str:
    # A token has 256 random bits, so a fast hash is enough: nobody can guess it.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _encode_token(name: str, caller: Caller, created: float, *, write: bool) -> bytes:
    values = {
        "token": name,
        "created": created,
        "write": write,
        "clearance": caller.clearance,
        "scopes": sorted(caller.scopes),
        "tenant": caller.tenant,
        "name": caller.name,
        "everything": caller.everything,
    }
    return json.dumps(values).encode()


def _decode_token(stored: bytes) -> Token:
    values = json.loads(stored)
    name, created, write = values.pop("token"), values.pop("created"), values.pop("write")
    caller = Caller(**{**values, "scopes": frozenset(values["scopes"])})
    return Token(name, caller, datetime.fromtimestamp(created, UTC), write)
