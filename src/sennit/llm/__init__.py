"""Language models: one small protocol, three kinds of servers, and what is done without any."""

from sennit.llm.base import LanguageModel, LanguageSpec
from sennit.llm.models import language_model

__all__ = ["LanguageModel", "LanguageSpec", "language_model"]
