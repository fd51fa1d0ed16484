"""OpenSearch: keyword and vector index of a database on a cluster."""

from sennit.stores.servers.opensearch.server import OpenSearchServer

__all__ = ["OpenSearchServer"]
