"""Hydration: choose which code goes into a prompt, say why, and list what did not fit.

Pure functions over what a store finds.
"""

from sennit.hydration.anchors import AnchorOptions, Catalogue, find_anchors
from sennit.hydration.introspection import Episode, EpisodeTurn, Introspection, PlanChanges, compare_plans
from sennit.hydration.plan import (
    Anchor,
    Candidate,
    CodeUnit,
    DroppedEntity,
    HydrationPlan,
    PlannedEntity,
    PlanWarning,
)
from sennit.hydration.planner import Budget, make_plan
from sennit.hydration.tokenizer import Tokenizer, load_tokenizer

__all__ = [
    "Anchor",
    "AnchorOptions",
    "Budget",
    "Candidate",
    "Catalogue",
    "CodeUnit",
    "DroppedEntity",
    "Episode",
    "EpisodeTurn",
    "HydrationPlan",
    "Introspection",
    "PlanChanges",
    "PlanWarning",
    "PlannedEntity",
    "Tokenizer",
    "compare_plans",
    "find_anchors",
    "load_tokenizer",
    "make_plan",
]
