"""The log events of a search. They hold counts and names, and neither the query nor a result."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Final

from sennit.pipeline.source_runner import SearchPlan
from sennit.pipeline.trace_builder import RunLog
from sennit.ranking.dedupe import Dedupe
from sennit.ranking.fusion import RRF
from sennit.records import Json

log: Final = logging.getLogger("sennit.search")


def log_events(plan: SearchPlan, run: RunLog, fused_count: int, returned: int) -> None:
    """Log the events of one search: values in `record.sennit`, JSON in the message."""
    if not log.isEnabledFor(logging.INFO):
        return
    for event in _search_events(plan, run, fused_count, returned):
        log.info(json.dumps(event), extra={"sennit": event})


def _search_events(
    plan: SearchPlan, run: RunLog, fused_count: int, returned: int
) -> Iterator[dict[str, Json]]:
    found = sum(len(result.found.keys) for result in run.results)
    if isinstance(plan.recipe.fusion, RRF):
        yield {
            "event": "rrf_merge_completed",
            "collections_searched": list(plan.searched_collections),
            "results_before_merge": found,
            "results_after_merge": fused_count,
        }
    for stage in run.stages:
        if stage.name == Dedupe.name:
            yield {
                "event": "deduplication_completed",
                "results_before": len(stage.keys) + len(stage.dropped),
                "results_after": len(stage.keys),
                "duplicates_removed": len(stage.dropped),
            }
    yield {
        "event": "search",
        "recipe": plan.recipe.name,
        "limit": plan.limit,
        "sources": {
            config.name: {
                "found": len(result.found.keys),
                "milliseconds": round(result.milliseconds, 3),
                **({"error": result.error} if result.error else {}),
            }
            for config, result in zip(plan.sources, run.results, strict=True)
        },
        "before_fusion": found,
        "after_fusion": fused_count,
        "after_stages": {stage.name: len(stage.keys) for stage in run.stages},
        "returned": returned,
    }
