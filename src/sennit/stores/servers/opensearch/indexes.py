"""The keyword index and the vector index of a database on a cluster.

Each is an index behind an alias, so that a new one can take its place at once. Every shard holds a marker with the number
of the last change that was applied. The markers are written after the documents, with the refresh that makes both
searchable, and the smallest of them counts: so the number is never ahead of the data, also when a shard was lost.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import ANALYSIS_ID
from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Filter
from sennit.settings.servers import OpenSearchSettings
from sennit.stores.buffered_index import cosine_scores
from sennit.stores.contract import (
    BM25,
    Document,
    Floats,
    IndexServer,
    KeywordQuery,
    Mask,
    MatchedKeys,
    Model,
    ScoredKeys,
)
from sennit.stores.document_terms import document_terms
from sennit.stores.servers.opensearch import terms as words
from sennit.stores.servers.opensearch.client import (
    ClusterClient,
    Json,
    RequestRefused,
    describe_error,
    shorten,
)
from sennit.stores.servers.opensearch.dialect import MAX_NEIGHBOURS, DialectOf
from sennit.stores.servers.opensearch.filters import NONE, TIME, VALUES, field_values, to_query

LAYOUT: Final = 1
"""Increase it when the mapping or the tokens change: the index then has another name, and is built again."""

MAX_BULK_BYTES: Final = 8_000_000
"""Of one bulk request. The server refuses 100 MB, and recommends 5 to 15."""

BULK_ATTEMPTS: Final = 6
BULK_PAUSE_SECONDS: Final = 0.1
"""Before the second attempt; each later pause is twice as long."""

MAX_WINDOW: Final = 1_000_000
"""The most hits of one search."""

EXTRA_CANDIDATES: Final = 4
"""One candidate more for so many wanted, for those that the server ranks otherwise than the contract."""

KEY: Final = "key"
MARKER: Final = "applied"
TERMS, COUNTS = "terms", "counts"
TEXT_LENGTH, TITLE_LENGTH = "text_length", "title_length"
VECTOR: Final = "vector"

_RETRY: Final = frozenset((429, 502, 503, 504))


class Cluster(IndexServer, Protocol):
    """What an index needs of its server."""

    settings: OpenSearchSettings
    client: ClusterClient
    dialect: DialectOf
    stopped: threading.Event
    """Set when the database is closed: nothing is sent any more."""

    def index_name(self, what: str) -> str:
        """The alias of an index of this database."""
        ...

    def put_template(self) -> None:
        """Store the index template."""
        ...

    def ask(self, requests: Sequence[tuple[str, Json]]) -> list[Json]:
        """Search indexes in one request."""
        ...


class ClusterIndex:
    """What both indexes have in common."""

    kind: str

    def __init__(self, server: Cluster, name: str) -> None:
        self.server = server
        self.name = name
        """The alias; it also names the index in the source of truth."""
        self._client: ClusterClient = server.client
        self._lock = threading.Lock()
        self._routings: list[str] = []

    def properties(self) -> Json:
        """The fields of a document beside those that both indexes have."""
        raise NotImplementedError

    def document(self, document: Document) -> Json:
        """Those fields of one document."""
        raise NotImplementedError

    # Writing.

    def applied(self) -> int:
        """The smallest marker of all shards; 0 where one has none."""
        body = {
            "size": MAX_NEIGHBOURS,
            "_source": False,
            "docvalue_fields": [MARKER],
            "query": {"exists": {"field": MARKER}},
        }
        try:
            found = self._client.get(f"/{self.name}/_search", body)
        except RequestRefused as error:
            if error.status != 404:
                raise
            with self._lock:
                self._routings = []  # It is created again.
            return 0
        shards = found["_shards"]
        if shards["failed"] or shards["successful"] < shards["total"] or found["timed_out"]:
            raise SourceError(f"{shards['total'] - shards['successful']} shards of {self.name} do not answer")
        numbers = [hit["fields"][MARKER][0] for hit in found["hits"]["hits"]]
        with self._lock:
            if len(self._routings) != shards["total"]:
                self._routings = []
        return min(numbers) if len(numbers) == shards["total"] else 0

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        routings = self._prepare()
        self._write(self._operations(documents, deleted))
        self._set_markers(routings, through)

    def reset(self) -> None:
        """Put an empty index in the place of this one."""
        old = self._indexes()
        new = self._create(max((int(name.rpartition("-")[2]) for name in old), default=0) + 1, alias=False)
        actions: list[Json] = [{"remove_index": {"index": name}} for name in old]
        self._client.request(
            "POST", "/_aliases", {"actions": [*actions, {"add": {"index": new, "alias": self.name}}]}
        )
        with self._lock:
            self._routings = []

    def delete(self) -> None:
        """Delete the index and its alias."""
        for name in self._indexes():
            self._client.request("DELETE", f"/{name}")

    def _prepare(self) -> list[str]:
        """Create the index if it is missing; returns a routing value for each of its shards."""
        with self._lock:
            if self._routings:
                return self._routings
            if not self._indexes():
                self._create(1, alias=True)
            shards = int(self._settings()["number_of_shards"])
            by_shard: dict[int, str] = {}
            for number in range(100 * shards):
                found = self._client.get(f"/{self.name}/_search_shards?routing={number}")
                by_shard.setdefault(found["shards"][0][0]["shard"], str(number))
                if len(by_shard) == shards:
                    break
            self._routings = list(by_shard.values())
            return self._routings

    def _indexes(self) -> list[str]:
        try:
            return sorted(self._client.get(f"/_alias/{self.name}"))
        except RequestRefused as error:
            if error.status == 404:
                return []
            raise

    def _settings(self) -> Json:
        (found,) = self._client.get(f"/{self.name}/_settings").values()
        settings: Json = found["settings"]["index"]
        return settings

    def _create(self, number: int, *, alias: bool) -> str:
        self.server.put_template()
        name = f"{self.name}-{number:06d}"
        body: Json = {"mappings": {"properties": self.properties()}}
        if alias:
            body["aliases"] = {self.name: {}}
        try:
            self._client.request("PUT", f"/{name}", body)
        except RequestRefused as error:
            # Another process was faster, or is filling it.
            if error.kind != "resource_already_exists_exception":
                raise
        return name

    def _operations(self, documents: Sequence[Document], deleted: Sequence[int]) -> Iterator[bytes]:
        for one in documents:
            fields = {KEY: one.key, **field_values(one.record), **self.document(one)}
            yield _lines({"index": {"_id": str(one.key)}}, fields)
        for key in deleted:
            yield _lines({"delete": {"_id": str(key)}})

    def _set_markers(self, routings: Sequence[str], through: int) -> None:
        operations = [
            _lines({"index": {"_id": f"applied-{one}", "routing": one}}, {MARKER: through})
            for one in routings
        ]
        self._write(iter(operations), "&refresh=true")

    def _write(self, operations: Iterator[bytes], options: str = "") -> None:
        batch: list[bytes] = []
        size = 0
        for operation in operations:
            if batch and size + len(operation) > MAX_BULK_BYTES:
                self._send(batch, options)
                batch, size = [], 0
            batch.append(operation)
            size += len(operation)
        if batch:
            self._send(batch, options)

    def _send(self, operations: Sequence[bytes], options: str) -> None:
        """Send operations until each has succeeded; what the server has no room for now is sent again after a pause."""
        problem = ""
        left = list(operations)
        for attempt in range(BULK_ATTEMPTS):
            if attempt:
                # Jitter, so that several writers do not return at the same time.
                pause = BULK_PAUSE_SECONDS * 2 ** (attempt - 1) * random.uniform(0.5, 1)  # noqa: S311
                self.server.stopped.wait(pause)
            if self.server.stopped.is_set():
                raise SourceError("the database is being closed")
            try:
                path = f"/{self.name}/_bulk?require_alias=true{options}"
                answer = self._client.send_bytes(path, b"".join(left))
            except RequestRefused as error:
                if error.status not in _RETRY:
                    raise
                problem = str(error)
                continue
            left, problem = _failed_operations(left, answer)
            if not left:
                return
        raise SourceError(f"{self.name}: {len(left)} of {len(operations)} changes were refused: {problem}")


def _failed_operations(operations: Sequence[bytes], answer: Json) -> tuple[list[bytes], str]:
    """The operations to send again; raises for one that will never succeed."""
    if not answer.get("errors"):
        return [], ""
    left, problem = [], ""
    for operation, item in zip(operations, answer["items"], strict=True):
        ((action, result),) = item.items()
        status = result["status"]
        if status < 300 or (action == "delete" and status == 404):
            continue
        kind, reason = describe_error(result.get("error", ""))
        problem = f"{kind} {shorten(reason)}"
        if status not in _RETRY:
            raise SourceError(f"the document {result.get('_id')} was refused: {problem}")
        left.append(operation)
    return left, problem


class KeywordIndex(ClusterIndex):
    """Terms of our analysis as tokens of one field."""

    kind = "keyword"

    def __init__(self, server: Cluster) -> None:
        version = hashlib.blake2b(f"{LAYOUT} {ANALYSIS_ID}".encode(), digest_size=4).hexdigest()
        super().__init__(server, server.index_name(f"keyword-{version}"))
        self._statistics = words.KnownStatistics()

    def properties(self) -> Json:
        number = {"type": "integer", "index": False}
        return {
            TERMS: {
                "type": "text",
                "analyzer": "whitespace",
                "index_options": "freqs",
                "similarity": "contract",
            },
            COUNTS: {"type": "binary", "doc_values": True},
            TEXT_LENGTH: number,
            TITLE_LENGTH: number,
        }

    def document(self, document: Document) -> Json:
        terms = document_terms(document.record)
        return {
            TERMS: words.term_field(terms, round(BM25().title_weight)),
            COUNTS: words.pack(terms),
            TEXT_LENGTH: terms.lengths[0],
            TITLE_LENGTH: terms.lengths[1],
        }

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        super().apply(documents, deleted, through)
        self._statistics.forget()

    def reset(self) -> None:
        super().reset()
        self._statistics.forget()

    def searches(self, query: KeywordQuery, limit: int, where: Filter) -> list[Json]:
        """The bodies of one search: the candidates, then the statistics that are not known yet."""
        asked: Json = {
            "should": [
                {"term": {TERMS: {"value": words.token(term), "boost": weight}}}
                for term, weight in query.terms
                if weight > 0
            ],
            "minimum_should_match": 1,
        }
        if where != EVERYTHING:
            asked["filter"] = [to_query(where)]
        candidates = {
            **HITS,
            "size": min(limit + limit // EXTRA_CANDIDATES, MAX_WINDOW),
            "docvalue_fields": [KEY, COUNTS],
            # Without a term, the server would find every document.
            "query": {"bool": asked} if asked["should"] else NONE,
        }
        return [candidates, *self._statistics_searches(query)]

    def read(self, query: KeywordQuery, limit: int, answers: Sequence[Json]) -> ScoredKeys:
        """The best documents from the answers to `searches`."""
        self._learn(query, answers[1:])
        hits = answers[0]["hits"]["hits"]
        if not hits:
            return ScoredKeys.empty()
        terms = [term for term, _ in query.terms]
        keys = np.array([hit["fields"][KEY][0] for hit in hits], np.int64)
        counts = words.unpack([hit["fields"][COUNTS][0] for hit in hits], terms)
        scores = np.nan_to_num(words.bm25_scores(query, counts, self._known(query)))
        best = np.argsort(-scores, kind="stable")[:limit]
        matched: Mask = np.any(counts.frequencies > 0, axis=2)
        return MatchedKeys.of(ScoredKeys(keys[best], scores[best]), matched[best])

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The same formula for what the server does not have."""
        self._ask_for_statistics(query)
        counts = words.count_documents(
            [document_terms(document.record) for document in documents],
            [term for term, _ in query.terms],
        )
        return words.bm25_scores(query, counts, self._known(query))

    def _known(self, query: KeywordQuery) -> words.Statistics:
        known = self._statistics.get(term for term, _ in query.terms)
        return known if query.buffer is None else known + words.Statistics(*query.buffer)

    def _statistics_searches(self, query: KeywordQuery) -> list[Json]:
        needs_totals, unknown = self._statistics.missing(term for term, _ in query.terms)
        bodies: list[Json] = []
        if needs_totals:
            sums = {name: {"sum": {"field": name}} for name in (TEXT_LENGTH, TITLE_LENGTH)}
            bodies.append({**_COUNT, "query": {"exists": {"field": KEY}}, "aggs": sums})
        if unknown:
            # Filters of no query are counted from the statistics of the index, without a look at the documents.
            tokens = map(words.token, unknown)
            filters = {token: {"term": {TERMS: token}} for token in tokens}
            bodies.append({**HITS, "size": 0, "aggs": {_HOLDING: {"filters": {"filters": filters}}}})
        return bodies

    def _learn(self, query: KeywordQuery, answers: Sequence[Json]) -> None:
        """Take the statistics from the answers, unless others have changed what is missing meanwhile."""
        needs_totals, unknown = self._statistics.missing(term for term, _ in query.terms)
        if not answers or len(answers) != needs_totals + bool(unknown):
            return
        totals = None
        if needs_totals:
            first, *answers = answers
            sums = first["aggregations"]
            lengths = (float(sums[TEXT_LENGTH]["value"]), float(sums[TITLE_LENGTH]["value"]))
            totals = words.Statistics(first["hits"]["total"]["value"], lengths, {})
        buckets = answers[0]["aggregations"][_HOLDING]["buckets"] if unknown else {}
        tokens = {term: words.token(term) for term in unknown}
        if buckets.keys() == set(tokens.values()):
            self._statistics.learn(totals, {term: buckets[tokens[term]]["doc_count"] for term in unknown})

    def _ask_for_statistics(self, query: KeywordQuery) -> None:
        bodies = self._statistics_searches(query)
        if bodies:
            answers = self.server.ask([(self.name, body) for body in bodies])
            if all("error" not in answer for answer in answers):
                self._learn(query, answers)
            elif all(answer.get("status") == 404 for answer in answers):
                self._statistics.learn(words.EMPTY, {term: 0 for term, _ in query.terms})


class VectorIndex(ClusterIndex):
    """Vectors of one model in a graph of the Lucene engine."""

    kind = "vector"

    def __init__(self, server: Cluster, model: Model) -> None:
        version = hashlib.blake2b(f"{LAYOUT} {model.fingerprint}".encode(), digest_size=8).hexdigest()
        super().__init__(server, server.index_name(f"vector-{version}"))
        self._dimensions = model.dimensions

    def properties(self) -> Json:
        return {VECTOR: self.server.dialect.get().vector_property(self._dimensions)}

    def document(self, document: Document) -> Json:
        return {VECTOR: document.vector.tolist()} if document.vector.any() else {}

    def searches(self, query: NDArray[np.float32], limit: int, where: Filter) -> list[Json]:
        """The body of one search."""
        dialect, vector = self.server.dialect.get(), query.tolist()
        narrowed = None if where == EVERYTHING else to_query(where)
        if limit > MAX_NEIGHBOURS:
            # Every vector is compared. The server has no graph search of this depth.
            filters = [{"exists": {"field": VECTOR}}, *([] if narrowed is None else [narrowed])]
            asked = dialect.by_inner_product(VECTOR, vector, {"bool": {"filter": filters}})
        else:
            nearest = max(limit, self.server.settings.candidates)
            asked = dialect.nearest(VECTOR, vector, nearest, narrowed)
        return [{**HITS, "size": min(limit, MAX_WINDOW), "docvalue_fields": [KEY], "query": asked}]

    def read(self, query: NDArray[np.float32], limit: int, answers: Sequence[Json]) -> ScoredKeys:  # noqa: ARG002
        """The nearest documents from the answers to `searches`."""
        hits = answers[0]["hits"]["hits"][:limit]
        keys = np.array([hit["fields"][KEY][0] for hit in hits], np.int64)
        scores = np.array([hit["_score"] for hit in hits], np.float64)
        # Lucene's score of an inner product p is p + 1, and 1 / (1 - p) where p is negative.
        return ScoredKeys(keys, np.where(scores >= 1, scores - 1, 1 - 1 / np.maximum(scores, 1e-9)))

    def score(self, query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
        return cosine_scores(query, documents)


HITS: Final[Json] = {"_source": False, "stored_fields": "_none_", "track_total_hits": False}
_HOLDING: Final = "holding"
_COUNT: Final[Json] = {"size": 0, "track_total_hits": True}


def template(settings: Mapping[str, Any]) -> Json:
    """What all indexes have in common, for the index template. One of a higher priority may override its settings."""
    return {
        "settings": {
            "index": {
                **settings,
                "max_result_window": MAX_WINDOW,
                "similarity": {"contract": {"type": "BM25", "k1": BM25().k1, "b": BM25().b}},
            }
        },
        "mappings": {
            "dynamic": "strict",
            "_source": {"enabled": False},
            "properties": {
                KEY: {"type": "long"},
                MARKER: {"type": "long"},
                VALUES: {"type": "keyword", "doc_values": False},
                TIME: {"type": "double"},
            },
        },
    }


def _lines(*values: Json) -> bytes:
    return b"".join(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for value in values
    )
