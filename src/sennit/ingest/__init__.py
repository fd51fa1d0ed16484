"""Indexing files and folders."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sennit.ingest.report import IndexInterrupted, IndexProgress, IndexReport, Progress, Skipped
from sennit.ingest.walk import DEFAULT_MAX_BYTES, Scope

if TYPE_CHECKING:
    from sennit.ingest.indexer import IndexTarget, index
    from sennit.ingest.readers import Reader, SourceFile

__all__ = [
    "DEFAULT_MAX_BYTES",
    "IndexInterrupted",
    "IndexProgress",
    "IndexReport",
    "IndexTarget",
    "Progress",
    "Reader",
    "Scope",
    "Skipped",
    "SourceFile",
    "index",
]


def __getattr__(name: str) -> Any:
    # Lazy, because a worker process (sennit.ingest.worker_main) starts five times faster without the store.
    modules = {"IndexTarget": "indexer", "index": "indexer", "Reader": "readers", "SourceFile": "readers"}
    if name not in modules:
        raise AttributeError(f"module 'sennit.ingest' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sennit.ingest.{modules[name]}"), name)
