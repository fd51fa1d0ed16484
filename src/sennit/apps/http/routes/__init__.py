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
    recipes,
    records,
    search,
    state,
    trials,
)

ROUTERS: Final = (
    search.router,
    ask.router,
    plans.router,
    inventory.router,
    records.router,
    feedback.router,
    exploration.router,
    trials.router,
    page.router,
    recipes.router,
    opensearch.router,
    operations.router,
    state.router,
)
"""Every router, in the order of the OpenAPI document."""
