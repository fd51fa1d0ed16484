"""Chroma: vector index of a database, and collections that others own."""

from sennit.stores.servers.chroma.server import ChromaServer

__all__ = ["ChromaServer"]
