"""Taking in files and folders."""

from weft.ingest.files import Progress, Target, index
from weft.ingest.report import IndexInterrupted, IndexReport, Skipped
from weft.ingest.walk import DEFAULT_MAX_BYTES, Scope

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
