"""The embedded store: SQLite for the truth, derived indexes for speed."""
