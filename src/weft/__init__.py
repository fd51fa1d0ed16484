"""weft: one hybrid-retrieval engine for assistants and agents."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.engine import Weft, open  # noqa: A004
    from weft.errors import WeftError
    from weft.filters import Filter, field
    from weft.recipes import Recipe
    from weft.records import Record
    from weft.results import Degraded, Hit, Result, Trace, Why
    from weft.settings import Settings

_HOME = {
    "Degraded": "weft.results",
    "Filter": "weft.filters",
    "Hit": "weft.results",
    "Recipe": "weft.recipes",
    "Record": "weft.records",
    "Result": "weft.results",
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
    "Degraded",
    "Filter",
    "Hit",
    "Recipe",
    "Record",
    "Result",
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
