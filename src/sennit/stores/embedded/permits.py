"""What the owner has permitted: folders that were indexed, and tokens for callers from outside."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sennit.errors import InvalidInput, NotFound
from sennit.privacy import Caller
from sennit.stores.embedded.sqlite import SqlitePool

PREFIX: Final = "sennit_"
"""So that a token is known for one wherever it turns up."""

_SELECT: Final = "SELECT name, caller, created FROM tokens"


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept: what it is called and whom it lets in, not the token itself."""

    name: str
    caller: Caller
    created: datetime
    write: bool = False
    """Whether it may also change what its caller may see."""


class Permits:
    """Folders and tokens of one database."""

    def __init__(self, database: SqlitePool) -> None:
        self._database = database

    def folders(self) -> list[str]:
        """The folders that were indexed."""
        with self._database.read() as connection:
            return [path for (path,) in connection.execute("SELECT path FROM folders ORDER BY path")]

    def keep_folders(self, paths: Iterable[str]) -> None:
        """Remember folders as indexed."""
        known = set(self.folders())
        fresh = [(path,) for path in paths if path not in known]
        if fresh:
            with self._database.write() as connection:
                connection.executemany("INSERT OR IGNORE INTO folders VALUES (?)", fresh)

    def issue(self, name: str, caller: Caller, *, write: bool = False) -> str:
        """A new token for a caller. It is shown once: only its hash is kept."""
        if not name or not name.isprintable():
            raise InvalidInput("A token needs a name of visible characters, so that it can be taken back")
        token = PREFIX + secrets.token_urlsafe(32)
        with self._database.write() as connection:
            if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchone():
                raise InvalidInput(f"There is a token {name!r} already; take it back first, or choose a name")
            connection.execute(
                "INSERT INTO tokens VALUES (?, ?, ?, ?)",
                (_hash(token), name, _written(caller, write=write), time.time()),
            )
        return token

    def revoke(self, name: str) -> None:
        """Take a token back."""
        with self._database.write() as connection:
            if not connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount:
                raise NotFound(f"There is no token {name!r}")

    def tokens(self) -> list[Token]:
        """Every token, by name."""
        with self._database.read() as connection:
            found = connection.execute(f"{_SELECT} ORDER BY name").fetchall()
        return [_read(*values) for values in found]

    def token(self, shown: str) -> Token | None:
        """The token that was shown, or None. Found by its hash, so that nothing is learnt from the time it takes."""
        with self._database.read() as connection:
            found = connection.execute(f"{_SELECT} WHERE hash = ?", (_hash(shown),)).fetchone()
        return _read(*found) if found else None

    def caller(self, token: str) -> Caller | None:
        """Whom a token lets in, or None."""
        found = self.token(token)
        return found.caller if found else None


def _hash(token: str) -> bytes:
    # A token has 256 random bits: nothing that would have to be made slow to guess.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _written(caller: Caller, *, write: bool) -> str:
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


def _read(name: str, text: str, created: float) -> Token:
    values = json.loads(text)
    write = values.pop("write", False)
    caller = Caller(**{**values, "scopes": frozenset(values["scopes"])})
    return Token(name, caller, datetime.fromtimestamp(created, UTC), write)
