"""The addresses of the service, by what they are for. A new one is a function in one of these, or a router in ROUTERS."""

from __future__ import annotations

from typing import Final

from sennit.apps.http.routes import asking, operating, planning, searching, writing

ROUTERS: Final = (searching.router, asking.router, planning.router, writing.router, operating.router)
"""Every router, in the order of the documentation."""
