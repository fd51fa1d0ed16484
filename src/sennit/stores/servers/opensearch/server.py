"""OpenSearch as the server of the keyword and the vector role."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.settings.attached import AttachedMapping
from sennit.settings.servers import OpenSearchSettings
from sennit.stores.contract import (
    Capabilities,
    IndexOf,
    KeywordQuery,
    Model,
    PartialKeys,
    ScoredKeys,
    ServerAnswer,
    ServerSearch,
)
from sennit.stores.findings import Finding
from sennit.stores.servers.opensearch.attached import AttachedIndex
from sennit.stores.servers.opensearch.client import (
    ClusterClient,
    Json,
    NotACluster,
    RequestRefused,
    describe_error,
    missing_shards,
    shorten,
)
from sennit.stores.servers.opensearch.dialect import Dialect, DialectOf, about, dialect_of, version_of
from sennit.stores.servers.opensearch.indexes import KeywordIndex, VectorIndex, template
from sennit.stores.servers.opensearch.text_index import TextIndex

PARTLY: Final = (
    "patterns that ignore case or are long",
    "ranges and patterns of texts over 1,000 bytes",
    "filters with hundreds of conditions",
)
KEYWORD: Final = Capabilities(scores="own", statistics="whole", lags=True, waits=True, partly=PARTLY)
"""The formula of the ranking contract for candidates that the server chose."""

VECTOR: Final = Capabilities(statistics="none", lags=True, waits=True, partly=PARTLY)


class OpenSearchServer:
    """The indexes of one database on a cluster. Opening it needs no host to be up."""

    def __init__(self, settings: OpenSearchSettings, database: str) -> None:
        self.settings = settings
        self.client = ClusterClient(settings)
        self.dialect = DialectOf(self.client)
        self.stopped = threading.Event()
        self._database = database
        self._has_template = False
        is_own = settings.analysis == "sennit"
        self._keyword: KeywordIndex | TextIndex = KeywordIndex(self) if is_own else TextIndex(self)
        self._vectors: dict[str, VectorIndex] = {}

    def keyword(self) -> IndexOf[KeywordQuery]:
        promise = KEYWORD
        if (
            self.settings.analysis == "server"
            and self.settings.shards > 1
            and not self.settings.global_statistics
        ):
            promise = replace(KEYWORD, statistics="shard")
        return IndexOf(self, promise, lambda _model: self._keyword)

    def vector(self) -> IndexOf[NDArray[np.float32]]:
        return IndexOf(self, VECTOR, self._vector_index)

    def attach(self, mapping: AttachedMapping) -> AttachedIndex:
        """An index that somebody else owns."""
        return AttachedIndex(self.client, self.dialect, mapping)

    def index_name(self, what: str) -> str:
        """The alias of an index of this database."""
        return f"{self.settings.prefix}-{self._database}-{what}"

    def search_many(self, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
        bodies = [one.index.searches(one.query, one.limit, one.where) for one in searches]  # type: ignore[attr-defined]
        requests = [
            (one.index.name, body) for one, group in zip(searches, bodies, strict=True) for body in group
        ]
        answers = iter(self.ask(requests))
        return [
            _read(search, [next(answers) for _ in group])
            for search, group in zip(searches, bodies, strict=True)
        ]

    def ask(self, requests: Sequence[tuple[str, Json]]) -> list[Json]:
        """Search indexes in one request."""
        kind = {"search_type": "dfs_query_then_fetch"} if self.settings.global_statistics else {}

        def lines() -> Iterator[Json]:
            for index, body in requests:
                yield {"index": index, **kind}
                yield body

        found: list[Json] = self.client.send_lines("/_msearch", lines())["responses"]
        if len(found) != len(requests):
            raise SourceError(f"{len(found)} answers to {len(requests)} searches")
        return found

    def put_template(self) -> None:
        """Store the index template, once per process."""
        if self._has_template:
            return
        settings = self.settings
        body: Json = {
            "index_patterns": [f"{settings.prefix}-*-keyword-*", f"{settings.prefix}-*-vector-*"],
            "priority": 100,
            "template": template(
                {
                    "number_of_shards": settings.shards,
                    "number_of_replicas": settings.replicas,
                    **self.dialect.get().index_settings(),
                }
            ),
        }
        self.client.request("PUT", f"/_index_template/{settings.prefix}", body)
        self._has_template = True

    def check(self) -> list[Finding]:
        try:
            found = about(self.client)
            dialect = dialect_of(found)
            if dialect is None:
                raise NotACluster(", ".join(self.settings.hosts))
            health = self.client.get("/_cluster/health")
            return [_check_version(dialect, found), _check_health(health), *self._check_indexes()]
        except RequestRefused as error:
            advice = (
                "; check the user and the password, which opensearch.username_env and opensearch.password_env name"
                if error.status in (401, 403)
                else ""
            )
            return [Finding("opensearch", "problem", f"{error}{advice}.")]
        except NotACluster as error:
            return [Finding("opensearch", "problem", f"{error}.")]
        except SourceError as error:
            return [
                Finding("opensearch", "problem", f"{error}. Is it running, and is opensearch.hosts right?")
            ]

    def close(self) -> None:
        self.stopped.set()
        self.client.close()

    def _vector_index(self, model: Model | None) -> VectorIndex | None:
        if model is None:
            return None
        return self._vectors.setdefault(model.fingerprint, VectorIndex(self, model))

    def _check_indexes(self) -> Iterator[Finding]:
        for index in (self._keyword, *self._vectors.values()):
            try:
                applied = index.applied()
            except SourceError as error:
                yield Finding("opensearch", "problem", f"{index.name}: {error}")
            else:
                yield Finding("opensearch", "ok", f"{index.name} has applied change {applied:,}")


def _read(search: ServerSearch, answers: Sequence[Json]) -> ServerAnswer:
    for answer in answers:
        if "error" in answer:
            kind, reason = describe_error(answer["error"])
            return SourceError(f"{search.index.name}: {kind} {shorten(reason)}")
    found: ScoredKeys = search.index.read(search.query, search.limit, answers)  # type: ignore[attr-defined]
    problem = missing_shards(answers[0])
    return PartialKeys.of(found, problem) if problem else found


def _check_version(dialect: Dialect, found: Json) -> Finding:
    number = str(found["version"]["number"])
    if version_of(found) < dialect.oldest_version:
        oldest = ".".join(map(str, dialect.oldest_version))
        message = f"{dialect.name} {number} is too old: {oldest} or newer is needed"
        return Finding("opensearch", "problem", message)
    return Finding("opensearch", "ok", f"{dialect.name} {number} answers")


def _check_health(health: Json) -> Finding:
    nodes, unassigned = health["number_of_nodes"], health["unassigned_shards"]
    said = f"the cluster is {health['status']}: {nodes} nodes, {unassigned} shards without a node"
    if health["status"] == "red":
        return Finding("opensearch", "problem", f"{said}. Start the missing nodes.")
    if health["status"] == "yellow":
        return Finding(
            "opensearch",
            "note",
            f"{said}. Add nodes, or set opensearch.replicas to {max(0, nodes - 1)} or less for new indexes.",
        )
    return Finding("opensearch", "ok", said)
