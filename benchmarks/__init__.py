"""sennit beside other systems, on one machine, in one run: `python -m benchmarks.run`."""
