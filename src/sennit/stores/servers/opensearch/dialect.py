"""What OpenSearch and Elasticsearch write differently: fields of vectors, the search in them, and exact scores.

Everything else that is sent means the same to both. No query needs a licence of Elasticsearch.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeAlias

from sennit.stores.servers.opensearch.client import ClusterClient, Json, RequestRefused

Query: TypeAlias = dict[str, Any]

MAX_NEIGHBOURS: Final = 10_000
"""The most neighbours that a search in a graph of vectors returns; beyond, every vector is compared."""

COSINE_SPACES: Final = ("cosinesimil", "cosine")
"""The names of the cosine; the score of one is (1 + cosine) / 2."""


class Dialect(Protocol):
    """How one of the two servers searches vectors."""

    name: str
    oldest_version: tuple[int, int]
    vector_type: str

    def index_settings(self) -> Json:
        """What an index with vectors needs beside its mapping."""
        ...

    def vector_property(self, dimensions: int) -> Json:
        """The mapping of a field with unit vectors, compared by their inner product in a graph of plain floats."""
        ...

    def nearest(self, field: str, vector: list[float], count: int, where: Query | None) -> Query:
        """The nearest documents that match a filter, by the graph."""
        ...

    def by_inner_product(self, field: str, vector: list[float], having: Query) -> Query:
        """Every document that matches a query, with the score that `nearest` gives for an inner product."""
        ...

    def by_cosine(self, field: str, vector: list[float], having: Query) -> Query:
        """Every document that matches a query, by cosine, whatever the field is searched by."""
        ...

    def cosine_of(self, score: float) -> float:
        """The cosine from a score of `by_cosine`."""
        ...

    def space(self, mapping: Json) -> str:
        """The similarity that a field is searched by, from its mapping."""
        ...

    def dimensions(self, mapping: Json) -> int:
        """The size of the vectors of a field, from its mapping; 0 where it is not fixed."""
        ...


ELASTICSEARCH: Final = "Elasticsearch"
PRODUCT: Final = "product"
"""Where `about` puts the name in the headers."""

HALVED_SINCE: Final = (2, 19)
"""The first version of OpenSearch whose script scores a cosine as (1 + cosine) / 2, and not as 1 + cosine."""


class OpenSearchDialect:
    """OpenSearch with its k-NN plugin, and the Lucene engine."""

    def __init__(self, version: tuple[int, ...] = HALVED_SINCE) -> None:
        self._is_halved = version >= HALVED_SINCE

    name = "OpenSearch"
    oldest_version = (2, 13)
    vector_type = "knn_vector"

    def index_settings(self) -> Json:
        return {"knn": True}

    def vector_property(self, dimensions: int) -> Json:
        method = {"name": "hnsw", "engine": "lucene", "space_type": "innerproduct"}
        return {"type": self.vector_type, "dimension": dimensions, "method": method}

    def nearest(self, field: str, vector: list[float], count: int, where: Query | None) -> Query:
        narrowed = {} if where is None else {"filter": where}
        return {"knn": {field: {"vector": vector, "k": min(count, MAX_NEIGHBOURS), **narrowed}}}

    def by_inner_product(self, field: str, vector: list[float], having: Query) -> Query:
        return self._scored(field, vector, having, "innerproduct")

    def by_cosine(self, field: str, vector: list[float], having: Query) -> Query:
        return self._scored(field, vector, having, "cosinesimil")

    def cosine_of(self, score: float) -> float:
        return 2 * score - 1 if self._is_halved else score - 1

    def space(self, mapping: Json) -> str:
        method = mapping.get("method", {})
        return str(mapping.get("space_type") or method.get("space_type") or "l2")

    def dimensions(self, mapping: Json) -> int:
        return int(mapping.get("dimension", 0))

    def _scored(self, field: str, vector: list[float], having: Query, space: str) -> Query:
        params = {"field": field, "query_value": vector, "space_type": space}
        script = {"lang": "knn", "source": "knn_score", "params": params}
        return {"script_score": {"query": having, "script": script}}


class ElasticsearchDialect:
    """Elasticsearch with `dense_vector`; the scores of a graph are those of Lucene too."""

    name = ELASTICSEARCH
    oldest_version = (8, 15)
    vector_type = "dense_vector"

    def index_settings(self) -> Json:
        return {}

    def vector_property(self, dimensions: int) -> Json:
        # Without options the server would round the vectors to bits or bytes.
        options = {"type": "hnsw"}
        return {
            "type": self.vector_type,
            "dims": dimensions,
            "similarity": "max_inner_product",
            "index_options": options,
        }

    def nearest(self, field: str, vector: list[float], count: int, where: Query | None) -> Query:
        narrowed = {} if where is None else {"filter": where}
        count = min(count, MAX_NEIGHBOURS)
        asked = {"field": field, "query_vector": vector, "k": count, "num_candidates": count, **narrowed}
        return {"knn": asked}

    def by_inner_product(self, field: str, vector: list[float], having: Query) -> Query:
        return self._scored(field, vector, having, "dotProduct", "p < 0 ? 1 / (1 - p) : p + 1")

    def by_cosine(self, field: str, vector: list[float], having: Query) -> Query:
        # A score is never below 0; rounding may take a cosine below -1.
        return self._scored(field, vector, having, "cosineSimilarity", "Math.max(p + 1, 0)")

    def cosine_of(self, score: float) -> float:
        return score - 1

    def space(self, mapping: Json) -> str:
        return str(mapping.get("similarity") or "cosine")

    def dimensions(self, mapping: Json) -> int:
        return int(mapping.get("dims", 0))

    def _scored(self, field: str, vector: list[float], having: Query, function: str, score: str) -> Query:
        source = f"double p = {function}(params.query, params.field); return {score};"
        script = {"source": source, "params": {"field": field, "query": vector}}
        return {"script_score": {"query": having, "script": script}}


def about(client: ClusterClient) -> Json:
    """What a server says of itself: its answer to `GET /`, and the product that its headers name.

    In Elasticsearch `GET /` is a module, which a server may lack; then its nodes tell its version.
    """
    try:
        return {**client.get("/"), PRODUCT: client.product}
    except RequestRefused as error:
        if client.product != ELASTICSEARCH or error.status in (401, 403):
            raise
    nodes: Json = client.get("/_nodes/_local?filter_path=nodes.*.version")["nodes"]
    (node, *_) = nodes.values()
    return {"version": {"number": node["version"]}, PRODUCT: ELASTICSEARCH}


def dialect_of(found: Json) -> Dialect | None:
    """The dialect of a server, from what it says of itself; None for one that is neither."""
    version = _version(found)
    if version.get("distribution") == "opensearch":
        return OpenSearchDialect(version_of(found))
    is_elastic = (
        found.get(PRODUCT) == ELASTICSEARCH
        or str(found.get("tagline", "")).startswith("You Know, for Search")
        or "build_flavor" in version
    )
    return ElasticsearchDialect() if is_elastic and "distribution" not in version else None


def version_of(found: Json) -> tuple[int, ...]:
    """The first two numbers of the version of a server, from what it says of itself."""
    number = str(_version(found).get("number", ""))
    return tuple(int(part) for part in number.split(".")[:2] if part.isdigit())


def _version(found: Json) -> Json:
    version = found.get("version")
    return version if isinstance(version, dict) else {}


class DialectOf:
    """Which dialect a cluster speaks; asked once, when it first matters."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._known: Dialect | None = None

    def get(self) -> Dialect:
        """The dialect; that of OpenSearch for a server that does not say what it is."""
        if self._known is None:
            self._known = dialect_of(about(self._client)) or OpenSearchDialect()
        return self._known
