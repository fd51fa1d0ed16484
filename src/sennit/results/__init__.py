"""Hits, search results, and the trace that explains them."""

from sennit.results.hints import Hint
from sennit.results.hits import CHUNK_BOUNDARY, Hit, Page, SearchResult, Why, cite_record
from sennit.results.trace import (
    Adjustment,
    Degraded,
    Dropped,
    Explanation,
    ListStageTrace,
    RelevanceTrace,
    SourceScore,
    SourceTrace,
    StageTrace,
    Trace,
)

__all__ = [
    "CHUNK_BOUNDARY",
    "Adjustment",
    "Degraded",
    "Dropped",
    "Explanation",
    "Hint",
    "Hit",
    "ListStageTrace",
    "Page",
    "RelevanceTrace",
    "SearchResult",
    "SourceScore",
    "SourceTrace",
    "StageTrace",
    "Trace",
    "Why",
    "cite_record",
]
