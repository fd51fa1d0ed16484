"""The HTTP service: searches, context for prompts, and writing, for callers who show a token."""
