"""The one pipeline that runs every recipe."""

from sennit.pipeline.replay import Replay
from sennit.pipeline.search_pipeline import Pipeline
from sennit.pipeline.source_runner import SearchPlan
from sennit.pipeline.trace_builder import CONTRACT_VERSION

__all__ = ["CONTRACT_VERSION", "Pipeline", "Replay", "SearchPlan"]
