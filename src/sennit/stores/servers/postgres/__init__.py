"""Postgres as a home of the indexes: keyword by tsvector or a BM25 extension, vectors by pgvector."""
