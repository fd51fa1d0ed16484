"""Taking in files and folders."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sennit.ingest.report import IndexInterrupted, IndexReport, Skipped
from sennit.ingest.walk import DEFAULT_MAX_BYTES, Scope

if TYPE_CHECKING:
    from sennit.ingest.files import Progress, Target, index

__all__ = [
    "DEFAULT_MAX_BYTES",
    "IndexInterrupted",
    "IndexReport",
    "Progress",
    "Scope",
    "Skipped",
    "Target",
    "index",
]


def __getattr__(name: str) -> Any:
    # A program that only parses (sennit.ingest.program) starts in a fifth of the time without the store.
    if name not in ("Progress", "Target", "index"):
        raise AttributeError(f"module 'sennit.ingest' has no attribute {name!r}")
    return getattr(importlib.import_module("sennit.ingest.files"), name)
