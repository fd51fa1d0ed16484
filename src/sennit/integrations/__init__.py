"""Adapters to frameworks: LangChain, Haystack and LlamaIndex. Each module needs the extra of its name."""
