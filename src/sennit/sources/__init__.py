"""Sources: each finds records in its own way and returns keys and scores."""
