"""The one pipeline that runs every recipe."""

from weft.pipeline.asking import Plan
from weft.pipeline.running import Pipeline
from weft.pipeline.tracing import CONTRACT

__all__ = ["CONTRACT", "Pipeline", "Plan"]
