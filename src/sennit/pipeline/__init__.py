"""The one pipeline that runs every recipe."""

from sennit.pipeline.asking import Plan
from sennit.pipeline.running import Pipeline
from sennit.pipeline.tracing import CONTRACT

__all__ = ["CONTRACT", "Pipeline", "Plan"]
