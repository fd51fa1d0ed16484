"""sennit: one hybrid-retrieval engine for assistants and agents."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sennit.engine import AsyncDatabase, Database, aopen, open  # noqa: A004
    from sennit.engine.answers import Answer
    from sennit.engine.migration import migrate
    from sennit.engine.search_request import SearchRequest
    from sennit.errors import SennitError
    from sennit.facts import Entity, Fact
    from sennit.feedback import Feedback
    from sennit.filters import Filter, field
    from sennit.privacy import OWNER, Caller
    from sennit.recipes import Recipe
    from sennit.records import Record
    from sennit.results import Degraded, Hit, SearchResult, Trace, Why
    from sennit.settings import Settings
    from sennit.tools import Tools
    from sennit.turns import Turn

_MODULE_OF = {
    "Answer": "sennit.engine.answers",
    "AsyncDatabase": "sennit.engine",
    "OWNER": "sennit.privacy",
    "Caller": "sennit.privacy",
    "Degraded": "sennit.results",
    "Entity": "sennit.facts",
    "Fact": "sennit.facts",
    "Feedback": "sennit.feedback",
    "Filter": "sennit.filters",
    "Hit": "sennit.results",
    "Recipe": "sennit.recipes",
    "Record": "sennit.records",
    "SearchRequest": "sennit.engine.search_request",
    "SearchResult": "sennit.results",
    "Turn": "sennit.turns",
    "Settings": "sennit.settings",
    "Tools": "sennit.tools",
    "Trace": "sennit.results",
    "Database": "sennit.engine",
    "SennitError": "sennit.errors",
    "Why": "sennit.results",
    "aopen": "sennit.engine",
    "field": "sennit.filters",
    "migrate": "sennit.engine.migration",
    "open": "sennit.engine",
}
"""The module of each public name. A name is imported on first use, so that `sennit --help` is fast."""

__version__ = "0.1.0"

__all__ = [
    "OWNER",
    "Answer",
    "AsyncDatabase",
    "Caller",
    "Database",
    "Degraded",
    "Entity",
    "Fact",
    "Feedback",
    "Filter",
    "Hit",
    "Recipe",
    "Record",
    "SearchRequest",
    "SearchResult",
    "SennitError",
    "Settings",
    "Tools",
    "Trace",
    "Turn",
    "Why",
    "aopen",
    "field",
    "migrate",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'sennit' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
