"""Structured log events: what a search found, before and after each step. Never what was asked or found."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Final

from sennit.pipeline.asking import Answer, Plan
from sennit.records import Json
from sennit.results import StageTrace

log: Final = logging.getLogger("sennit.search")


def log_search(
    plan: Plan, answers: Sequence[Answer], fused: int, steps: Sequence[StageTrace], returned: int
) -> None:
    """One event per search: `record.sennit` holds it as values, the message as JSON."""
    if not log.isEnabledFor(logging.INFO):
        return
    event: dict[str, Json] = {
        "event": "search",
        "recipe": plan.recipe.name,
        "limit": plan.limit,
        "lists": {
            use.name: {
                "found": len(answer.found.keys),
                "milliseconds": round(answer.milliseconds, 3),
                **({"error": answer.error} if answer.error else {}),
            }
            for use, answer in zip(plan.lists, answers, strict=True)
        },
        "before_fusion": sum(len(answer.found.keys) for answer in answers),
        "after_fusion": fused,
        "after_stages": {step.name: len(step.keys) for step in steps},
        "returned": returned,
    }
    log.info(json.dumps(event), extra={"sennit": event})
