"""The HTTP service: search, context for prompts, plans, answers and writes, authenticated by bearer token."""
