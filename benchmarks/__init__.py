"""Benchmarks of sennit. `python -m benchmarks.run` compares it with other systems on one machine."""
