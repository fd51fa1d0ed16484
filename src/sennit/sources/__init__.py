"""Sources: each finds records in its own way, and answers in keys and scores."""
