"""Qdrant: keyword and vector index of a database, and collections that others own."""

from sennit.stores.servers.qdrant.server import QdrantServer

__all__ = ["QdrantServer"]
