"""Ranking as pure functions over small arrays."""
