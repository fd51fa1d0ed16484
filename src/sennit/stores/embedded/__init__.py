"""The embedded store: SQLite as the source of truth, derived indexes for speed."""
