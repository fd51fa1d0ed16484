"""The routes of the service, grouped by purpose. A new route is a function in one of these modules."""

from __future__ import annotations

from typing import Final

from sennit.apps.http.routes import (
    ask,
    exploration,
    feedback,
    inventory,
    opensearch,
    operations,
    page,
    plans,
    records,
    search,
)

ROUTERS: Final = (
    search.router,
    ask.router,
    plans.router,
    inventory.router,
    records.router,
    feedback.router,
    exploration.router,
    page.router,
    opensearch.router,
    operations.router,
)
"""Every router, in the order of the OpenAPI document."""
