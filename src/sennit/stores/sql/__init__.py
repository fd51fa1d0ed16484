"""The primary store over SQL: one schema and one set of statements, for SQLite and for Postgres."""
