"""The programs people use: each a thin layer over the engine."""
