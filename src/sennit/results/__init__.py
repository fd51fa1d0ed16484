"""What flows: hits, results, and the trace from which everything is explained."""

from sennit.results.hits import BOUNDARY, Hit, Page, Result, Why, citation
from sennit.results.trace import (
    Adjustment,
    Degraded,
    Dropped,
    Explanation,
    SourceTrace,
    StageTrace,
    Standing,
    Trace,
)

__all__ = [
    "BOUNDARY",
    "Adjustment",
    "Degraded",
    "Dropped",
    "Explanation",
    "Hit",
    "Page",
    "Result",
    "SourceTrace",
    "StageTrace",
    "Standing",
    "Trace",
    "Why",
    "citation",
]
