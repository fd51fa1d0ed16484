"""Repositories: what a database keeps besides its records, each over the transactions of any backend."""
