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
from sennit.stores.sql.connection import SqlPool

PREFIX: Final = "sennit_"
"""Makes a leaked token recognisable, to people and to secret scanners."""

_SELECT: Final = "SELECT name, caller, created FROM tokens"


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

    def __init__(self, pool: SqlPool) -> None:
        self._pool = pool

    def issue(self, name: str, caller: Caller, *, write: bool = False) -> str:
        """Create a token for a caller. It is returned only here: the database stores its hash."""
        if not name or not name.isprintable():
            raise InvalidInput("A token needs a name of printable characters, so that it can be revoked")
        token = PREFIX + secrets.token_urlsafe(32)
        with self._pool.write() as connection:
            if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone():
                raise InvalidInput(f"A token named {name!r} exists; revoke it first, or choose another name")
            connection.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?)",
                (_hash(token), name, _encode_caller(caller, write=write), time.time()),
            )
        return token

    def revoke(self, name: str) -> None:
        """Delete a token: from now on it is rejected."""
        with self._pool.write() as connection:
            if not connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount:
                raise NotFound(f"There is no token {name!r}")

    def all(self) -> list[Token]:
        """Every token, ordered by name."""
        with self._pool.read() as connection:
            found = connection.execute(f"{_SELECT} ORDER BY name").fetchall()
        return [_decode_token(*values) for values in found]

    def find(self, token: str) -> Token | None:
        """The stored token, or None. The lookup is by hash, so its duration reveals nothing about other tokens."""
        with self._pool.read() as connection:
            found = connection.execute(f"{_SELECT} WHERE hash = ?", (_hash(token),)).fetchone()
        return _decode_token(*found) if found else None

    def find_caller(self, token: str) -> Caller | None:
        """The caller that a token authenticates, or None."""
        found = self.find(token)
        return found.caller if found else None


def _hash(token: str) -> bytes:
    # A token has 256 random bits, so a fast hash is enough: nobody can guess it.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _encode_caller(caller: Caller, *, write: bool) -> str:
    return json.dumps(
        {
            "clearance": caller.clearance,
            "scopes": sorted(caller.scopes),
            "tenant": caller.tenant,
            "name": caller.name,
            "everything": caller.everything,
            "write": write,
        }
    )


def _decode_token(name: str, caller_json: str, created: float) -> Token:
    values = json.loads(caller_json)
    write = values.pop("write", False)
    caller = Caller(**{**values, "scopes": frozenset(values["scopes"])})
    return Token(name, caller, datetime.fromtimestamp(created, UTC), write)
