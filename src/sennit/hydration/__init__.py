"""Hydration: which code goes into a prompt, why, and what did not fit. Pure functions over what a store finds."""

from sennit.hydration.anchors import Catalogue, Switches, find_anchors
from sennit.hydration.planning import Budget, make_plan
from sennit.hydration.rendering import rendered
from sennit.hydration.replaying import Changes, Introspection, changes
from sennit.hydration.tokens import Tokenizer, tokenizer
from sennit.hydration.values import Anchor, Candidate, Dropped, Entry, HydrationPlan, Notice, Unit

__all__ = [
    "Anchor",
    "Budget",
    "Candidate",
    "Catalogue",
    "Changes",
    "Dropped",
    "Entry",
    "HydrationPlan",
    "Introspection",
    "Notice",
    "Switches",
    "Tokenizer",
    "Unit",
    "changes",
    "find_anchors",
    "make_plan",
    "rendered",
    "tokenizer",
]
