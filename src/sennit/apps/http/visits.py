"""How an address gets at its visit: the caller, the database and a worker thread."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from sennit.apps.http.door import VISIT, Visit
from sennit.apps.http.errors import Refused

BEARER: Final = HTTPBearer(
    scheme_name="token", description="A token of `sennit tokens add NAME`.", auto_error=False
)
"""For the documentation; the door has checked the token before."""


def visit_of(request: Request) -> Visit:
    """The visit of a request."""
    visit: Visit = request.scope[VISIT]
    return visit


async def _reading(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
) -> Visit:
    return visit_of(request)


async def _writing(visit: Annotated[Visit, Depends(_reading)]) -> Visit:
    if not visit.admitted.write:
        raise Refused(
            403, "This token may only read; 'sennit tokens add NAME --write' makes one that may write."
        )
    return visit


async def _anybody(request: Request) -> Visit:
    return visit_of(request)


Anybody = Annotated[Visit, Depends(_anybody)]
"""Whoever asks, with a token or without."""

Reader = Annotated[Visit, Depends(_reading)]
"""Who has shown a token."""

Writer = Annotated[Visit, Depends(_writing)]
"""Who has shown one that may write."""
