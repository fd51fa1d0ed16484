"""weft: one hybrid-retrieval engine for assistants and agents."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.engine import Weft, open  # noqa: A004
    from weft.engine.answering import Answer
    from weft.errors import WeftError
    from weft.facts import Entity, Fact
    from weft.filters import Filter, field
    from weft.privacy import OWNER, Caller
    from weft.recipes import Recipe
    from weft.records import Record
    from weft.results import Degraded, Hit, Result, Trace, Why
    from weft.segments import Segment
    from weft.settings import Settings

_HOME = {
    "Answer": "weft.engine.answering",
    "OWNER": "weft.privacy",
    "Caller": "weft.privacy",
    "Degraded": "weft.results",
    "Entity": "weft.facts",
    "Fact": "weft.facts",
    "Filter": "weft.filters",
    "Hit": "weft.results",
    "Recipe": "weft.recipes",
    "Record": "weft.records",
    "Result": "weft.results",
    "Segment": "weft.segments",
    "Settings": "weft.settings",
    "Trace": "weft.results",
    "Weft": "weft.engine",
    "WeftError": "weft.errors",
    "Why": "weft.results",
    "field": "weft.filters",
    "open": "weft.engine",
}
"""Where each public name lives; imported when it is first used, so that `weft --help` is quick."""

__version__ = "0.1.0"

__all__ = [
    "OWNER",
    "Answer",
    "Caller",
    "Degraded",
    "Entity",
    "Fact",
    "Filter",
    "Hit",
    "Recipe",
    "Record",
    "Result",
    "Segment",
    "Settings",
    "Trace",
    "Weft",
    "WeftError",
    "Why",
    "field",
    "open",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
