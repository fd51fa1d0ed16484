"""Who is asking: decided by the token that is shown, and by nothing else in a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sennit.apps.http.errors import Refused
from sennit.apps.listening import bearer
from sennit.privacy import Caller

if TYPE_CHECKING:
    from sennit.apps.http.desk import Desk

WITHOUT_TOKEN: Final = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""What anybody may ask; it says nothing of what is kept."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who was let in, and whether to write."""

    caller: Caller
    write: bool = False
    name: str = ""
    """Of the token, for logs; empty where none is asked for."""
    known: bool = True
    """Whether this is anybody in particular."""


NOBODY: Final = Admitted(Caller(), known=False)
"""Who shows no token, where none is needed: sees the least, and may not write."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Lets in by token; `open` lets in without one, as the default caller, who may write."""

    desk: Desk = field(repr=False)
    open: bool = False
    read_only: bool = False

    def admit(self, authorization: list[str], path: str) -> Admitted:
        """Who asks for this path, or a refusal."""
        if self.open:
            return Admitted(self.desk.db.caller, write=not self.read_only)
        found = None
        token = bearer(authorization)
        if token:
            # At each request: a token that is taken back is taken back at once. And here, not in a thread: a read of one
            # row takes less than handing it over, and must not wait behind searches.
            found = self.desk.db.permits.token(token)
        if found is not None:
            return Admitted(found.caller, found.write and not self.read_only, found.name)
        if path in WITHOUT_TOKEN:
            return NOBODY
        said = "This token is not known." if authorization else "A token is needed: Authorization: Bearer …"
        raise Refused(401, said, {"www-authenticate": "Bearer"})
