"""Facts on Graphiti, which keeps them in FalkorDB or Neo4j.

Each fact is an edge of Graphiti between two entities, with the key of its record, its weight and its period. An entity is the
hash of a name. The facts of each tenant are a group of their own. A node beside them holds the number of the last change that
the graph has; it is written after the facts of a batch. No language model is called, and none is configured: sennit gives
Graphiti whole facts, with the vectors of its own embedding model.

Names of records, their aliases and labels are read from the source of truth, and every fact that Graphiti returns is checked
against the snapshot.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from sennit.credentials import read_credential
from sennit.errors import SourceError
from sennit.facts import ended_at, is_fact
from sennit.filters import EVERYTHING, Filter
from sennit.graph.entity_linking import NameMatches
from sennit.graph.names import Hashes, name_hash
from sennit.graph.traversal import Edge
from sennit.records import Record
from sennit.settings.servers import GraphitiSettings
from sennit.stores.buffered_index import MAX_BUFFERED_CHANGES
from sennit.stores.contract import (
    Capabilities,
    Document,
    Floats,
    GraphRole,
    GraphView,
    IndexOf,
    Keys,
    LabelledText,
    Mask,
    ServerAnswer,
    ServerSearch,
    Snapshot,
)
from sennit.stores.findings import Finding
from sennit.stores.graph_rows import edge_rows, microseconds

if TYPE_CHECKING:
    from graphiti_core.driver.driver import GraphDriver
    from graphiti_core.edges import EntityEdge
    from graphiti_core.nodes import EntityNode

# It logs the text of every query that fails; the failure itself is raised.
logging.getLogger("graphiti_core").addHandler(logging.NullHandler())

T = TypeVar("T")

CHECK: Final = "graphiti"

EMPTY_VECTOR: Final = [0.0] * 1024
"""The vector of a fact while the database has no embedding model; Graphiti wants one of this length."""

FACTS_PER_NAME: Final = 64
"""Facts of a name read at first, beyond those that are wanted; more while the snapshot rejects too many."""

FETCH_GROWTH: Final = 4
MAX_NAME_CHARACTERS: Final = 1000
"""Of a longer name or relation, the server gets the beginning: Neo4j refuses to index more than 8 kB. Nothing compares it."""

MAX_FACTS_READ: Final = 200_000

FAR: Final = 1 << 60
"""A time that no fact reaches, in microseconds since 1970. FalkorDB compares the largest numbers of 64 bits wrongly."""

SAVES_AT_ONCE: Final = 16
"""Facts that are written at the same time."""


class Library(NamedTuple):
    """The classes of Graphiti that are used."""

    node: type[EntityNode]
    edge: type[EntityEdge]
    driver: type[GraphDriver]


@cache
def load_library(backend: str) -> Library:
    """Import Graphiti, which takes seconds: a process that asks the graph nothing does without."""
    # Graphiti reads this when it is imported.
    os.environ.setdefault("GRAPHITI_TELEMETRY_ENABLED", "false")
    from graphiti_core.edges import EntityEdge
    from graphiti_core.nodes import EntityNode

    if backend == "falkordb":
        from graphiti_core.driver.falkordb_driver import FalkorDriver

        return Library(EntityNode, EntityEdge, FalkorDriver)
    from graphiti_core.driver.neo4j_driver import Neo4jDriver

    return Library(EntityNode, EntityEdge, Neo4jDriver)


class GraphitiServer:
    """The connection to Graphiti, and the graph role on it."""

    def __init__(self, settings: GraphitiSettings, database: str) -> None:
        self.graph_name = f"{settings.group_prefix}_{database}"
        self.connection = GraphConnection(settings)
        self.facts = GraphitiFacts(self)

    def graph(self, names: GraphRole) -> GraphitiGraph:
        """The graph role; `names` answers for the names of records."""
        return GraphitiGraph(self.facts, names)

    def feed(self) -> IndexOf[Any]:
        """What the feed of changes is applied to."""
        return IndexOf(self, GraphitiGraph.capabilities, lambda _model: self.facts)

    def search_many(self, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
        """Graphiti has neither role that is searched so."""
        return [SourceError("Graphiti has no keyword or vector index of sennit")] * len(searches)

    def check(self) -> list[Finding]:
        """Whether the graph answers, and how far it is."""
        try:
            applied = self.facts.applied()
        except SourceError as error:
            return [Finding(CHECK, "problem", str(error))]
        return [
            Finding(
                CHECK,
                "ok",
                f"{self.connection.place} has the graph {self.graph_name} up to change {applied:,}",
            )
        ]

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class GraphConnection:
    """Runs Graphiti's coroutines in one event loop of its own, and turns every failure into SourceError."""

    def __init__(self, settings: GraphitiSettings) -> None:
        for name in ("graphiti_core", settings.backend):
            if find_spec(name) is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        self._settings = settings
        self.backend: Final = settings.backend
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._drivers: dict[str, GraphDriver] = {}
        parts = urlsplit(settings.url)
        self.place = f"{parts.scheme}://{parts.hostname or ''}:{parts.port or ''}"

    @property
    def library(self) -> Library:
        """Graphiti, imported."""
        return load_library(self.backend)

    @property
    def has_graph_per_group(self) -> bool:
        """Whether each group is a graph of its own."""
        return self.backend == "falkordb"

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine to its end, or raise SourceError after the time that the settings allow."""
        seconds = self._settings.timeout_seconds
        load_library(self.backend)
        future = asyncio.run_coroutine_threadsafe(asyncio.wait_for(make(), seconds), self._running_loop())
        try:
            return future.result()
        except TimeoutError as error:
            raise SourceError(
                f"the graph at {self.place} did not answer within {seconds:g} s (graphiti.timeout_seconds)"
            ) from error
        except SourceError:
            raise
        except Exception as error:
            raise SourceError(
                f"the graph at {self.place} failed: {type(error).__name__}: {str(error)[:300]}"
            ) from error

    def driver(self, group: str) -> GraphDriver:
        """The driver for a group. FalkorDB has a graph for each group, Neo4j one for all. Runs in the event loop."""
        key = group if self.has_graph_per_group else ""
        if key not in self._drivers:
            self._drivers[key] = self._connect(group)
        return self._drivers[key]

    def close(self) -> None:
        """Close the connections and end the event loop."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is None:
            return

        async def close_all() -> None:
            for driver in self._drivers.values():
                await driver.close()

        asyncio.run_coroutine_threadsafe(close_all(), loop).result()
        self._drivers.clear()
        loop.call_soon_threadsafe(loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="sennit-graphiti", daemon=True).start()
            return self._loop

    def _connect(self, group: str) -> GraphDriver:
        settings = self._settings
        password = None
        if settings.password_env:
            password = read_credential(settings.password_env, "graphiti.password_env")
        driver: Any = self.library.driver
        made: GraphDriver
        if self.has_graph_per_group:
            parts = urlsplit(settings.url)
            made = driver(
                host=parts.hostname or "",
                port=parts.port or 6379,
                username=settings.user or None,
                password=password,
                database=group,
            )
        else:
            made = driver(settings.url, settings.user or None, password, settings.database or "neo4j")
        return made


class GraphitiFacts:
    """The facts of one database."""

    def __init__(self, server: GraphitiServer) -> None:
        self.server = server
        self.name = f"graphiti graph {server.graph_name}"
        self._connection = server.connection
        self._base = server.graph_name

    def prepare(self) -> None:
        """Import what a request needs."""
        load_library(self._connection.backend)

    # Writing.

    def applied(self) -> int:
        """The number in the marker; 0 for a graph that is empty or lost."""
        return self._connection.run(self._read_marker)[0]

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        """Store and delete facts, then the number."""
        self._connection.run(lambda: self._apply(documents, deleted, through))

    def reset(self) -> None:
        """Delete all facts."""
        self._connection.run(self._reset)

    def score(self, query: Any, documents: Sequence[Document]) -> Floats:  # noqa: ARG002 - part of the seam
        """A fact has a weight and no score."""
        return np.full(len(documents), np.nan)

    async def _apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        _, groups = await self._read_marker()
        facts = [one for one in documents if is_fact(one.record) and next(edge_rows(0, one.record), None)]
        known = set(groups)
        new = {self._group(one.record.tenant) for one in facts} - known
        for group in new:
            await self._connection.driver(group).build_indices_and_constraints()
        if new:
            # The groups are known before they have facts, so that no delete misses one.
            groups = sorted(known | new)
            await self._write_marker(None, groups)
        gone = [self._edge_id(key) for key in deleted]
        if gone:
            for group in groups if self._connection.has_graph_per_group else groups[:1]:
                await self._query(
                    group, "MATCH ()-[e:RELATES_TO]->() WHERE e.uuid IN $uuids DELETE e", uuids=gone
                )
        for start in range(0, len(facts), SAVES_AT_ONCE):
            batch = facts[start : start + SAVES_AT_ONCE]
            nodes = {node.uuid: node for one in batch for node in self._nodes(one)}
            await asyncio.gather(
                *(node.save(self._connection.driver(node.group_id)) for node in nodes.values())
            )
            edges = [self._edge(one) for one in batch]
            await asyncio.gather(*(edge.save(self._connection.driver(edge.group_id)) for edge in edges))
        await self._write_marker(through, groups)

    async def _reset(self) -> None:
        _, groups = await self._read_marker()
        for group in groups:
            await self._query(group, "MATCH (n:Entity {group_id: $group}) DETACH DELETE n", group=group)
        await self._query(self._base, "MATCH (m:SennitIndex {name: $name}) DELETE m", name=self._base)

    def _nodes(self, document: Document) -> Iterator[EntityNode]:
        record = document.record
        group = self._group(record.tenant)
        for field, hash_ in zip(("subject", "object"), _endpoints(record), strict=True):
            yield self._connection.library.node(
                uuid=_node_id(group, hash_),
                name=_stored_name(record.metadata[field]),
                group_id=group,
                name_embedding=_vector(document),
                created_at=datetime.now(UTC),
                attributes={"sennit_name": hash_},
            )

    def _edge(self, document: Document) -> EntityEdge:
        record = document.record
        group = self._group(record.tenant)
        subject, object_ = _endpoints(record)
        (row, *_) = edge_rows(document.key, record)
        _, until, negative_weight, _, _, start = row
        return self._connection.library.edge(
            uuid=self._edge_id(document.key),
            group_id=group,
            source_node_uuid=_node_id(group, subject),
            target_node_uuid=_node_id(group, object_),
            name=_stored_name(record.metadata.get("relation", "")),
            fact=record.text,
            fact_embedding=_vector(document),
            created_at=datetime.now(UTC),
            valid_at=record.timestamp,
            invalid_at=ended_at(record),
            attributes={
                "sennit_key": document.key,
                "sennit_weight": -negative_weight,
                "sennit_until": min(until, FAR),
                "sennit_from": -FAR if start is None else start,
            },
        )

    async def _read_marker(self) -> tuple[int, list[str]]:
        found = await self._query(
            self._base,
            "MATCH (m:SennitIndex {name: $name}) RETURN m.applied AS applied, m.groups AS groups",
            name=self._base,
        )
        return (int(found[0]["applied"]), list(found[0]["groups"])) if found else (0, [])

    async def _write_marker(self, applied: int | None, groups: Sequence[str]) -> None:
        await self._query(
            self._base,
            "MERGE (m:SennitIndex {name: $name}) SET m.applied = coalesce($applied, m.applied, 0), m.groups = $groups",
            name=self._base,
            applied=applied,
            groups=list(groups),
        )

    # Reading.

    def known_names(self, names: Iterable[int]) -> set[int]:
        """Which of the names are an endpoint of some fact that the graph has, or once had."""

        async def read() -> set[int]:
            _, groups = await self._read_marker()
            found: set[int] = set()
            for group in groups:
                rows = await self._query(
                    group,
                    "MATCH (n:Entity) WHERE n.uuid IN $uuids RETURN n.sennit_name AS name",
                    uuids=[_node_id(group, name) for name in names],
                )
                found.update(int(row["name"]) for row in rows)
            return found

        return self._connection.run(read)

    def edges(self, name: int, at: int, limit: int, required: int, *, history: bool) -> list[Edge]:
        """The heaviest facts of a name that have not ended, heaviest first; of equal weight the newest first."""

        async def read() -> list[Edge]:
            applied, groups = await self._read_marker()
            if applied < required:
                raise SourceError(
                    f"the graph {self._base} has lost changes: it has those up to {applied:,} of {required:,}; the next "
                    "flush (sennit migrate) applies them again"
                )
            found: set[Edge] = set()
            for group in groups:
                rows = await self._query(
                    group,
                    "MATCH (n:Entity {uuid: $uuid})-[e:RELATES_TO]-(m:Entity) "
                    "WHERE e.sennit_until > $at AND e.sennit_from <= $before "
                    "RETURN e.sennit_key AS key, e.sennit_weight AS weight, m.sennit_name AS other "
                    "ORDER BY weight DESC, key DESC LIMIT $limit",
                    uuid=_node_id(group, name),
                    at=at,
                    before=at if history else FAR,
                    limit=limit,
                )
                found.update(Edge(int(row["key"]), float(row["weight"]), int(row["other"])) for row in rows)
            return sorted(found, key=lambda edge: (-edge.weight, -edge.row))[:limit]

        return self._connection.run(read)

    async def _query(self, group: str, query: str, /, **parameters: Any) -> list[dict[str, Any]]:
        answer = await self._connection.driver(group).execute_query(query, **parameters)
        return [] if answer is None else [dict(row) for row in answer[0]]

    def _group(self, tenant: str) -> str:
        if not tenant:
            return self._base
        return f"{self._base}_{hashlib.blake2b(tenant.encode(), digest_size=8).hexdigest()}"

    def _edge_id(self, key: int) -> str:
        return f"{self._base}-{key}"


class GraphitiGraph:
    """The graph role: facts from Graphiti and from the buffer, names from the source of truth."""

    capabilities = Capabilities(statistics="none", lags=True, waits=True)

    def __init__(self, facts: GraphitiFacts, names: GraphRole) -> None:
        self._facts = facts
        self._names = names

    def prepare(self) -> None:
        """Import what a search needs."""
        self._facts.prepare()

    def applied(self, snapshot: Snapshot) -> int:
        """The last change that the graph covers, as the source of truth has it."""
        return snapshot.applied(self._facts.name)

    def view(self, snapshot: Snapshot) -> GraphitiView:
        """The names and facts of a snapshot."""
        return GraphitiView(self._facts, snapshot, self._names.view(snapshot))


class GraphitiView:
    """The names and facts of one snapshot."""

    def __init__(self, facts: GraphitiFacts, snapshot: Snapshot, names: GraphView) -> None:
        self._facts = facts
        self._snapshot = snapshot
        self._names = names
        self._applied = snapshot.applied(facts.name)
        self._buffered: dict[int, Record] | None = None

    @property
    def has_names(self) -> bool:
        return self._names.has_names

    @property
    def has_facts(self) -> bool:
        return self._names.has_facts

    def entities_named(self, names: Hashes, where: Filter = EVERYTHING) -> NameMatches:
        """The visible records with these names."""
        return self._names.entities_named(names, where)

    def labelled_texts(self, rows: list[int]) -> dict[int, LabelledText]:
        """The label and the words of each record."""
        return self._names.labelled_texts(rows)

    def synonyms(self, names: Keys, where: Filter) -> dict[int, list[int]]:
        """All names of the entities with these names."""
        return self._names.synonyms(names, where)

    def known_endpoints(self, names: Keys) -> Mask:
        """Which of the names are an endpoint of some fact, visible or not."""
        known = {row[0] for record in self._buffer().values() for row in edge_rows(0, record)}
        if self._applied:
            known |= self._facts.known_names(names.tolist())
        return np.isin(names, np.array(sorted(known), np.int64))

    def edges(
        self, names: Sequence[int], count: int, at: datetime, where: Filter, *, history: bool = False
    ) -> list[list[Edge]]:
        """The heaviest visible facts of each name that are valid `at` a time and match the filter."""
        moment = microseconds(at)
        own = self._own_edges(moment, where, history=history)
        out = []
        for name in names:
            found = [*own.get(name, ()), *self._server_edges(name, count, moment, where, history=history)]
            out.append(sorted(found, key=lambda edge: (-edge.weight, -edge.row))[:count])
        return out

    def _server_edges(self, name: int, count: int, at: int, where: Filter, *, history: bool) -> list[Edge]:
        if not self._applied:
            return []
        limit = count + FACTS_PER_NAME
        buffered = np.array(list(self._buffer()), np.int64)
        while True:
            found = self._facts.edges(name, at, limit, self._applied, history=history)
            keys = np.array([edge.row for edge in found], np.int64)
            valid = (keys <= self._applied) & ~np.isin(keys, buffered) & self._snapshot.select(keys, where)
            kept = [edge for edge, is_valid in zip(found, valid.tolist(), strict=True) if is_valid]
            if len(found) < limit or len(kept) >= count or limit > MAX_FACTS_READ:
                return kept
            limit *= FETCH_GROWTH

    def _own_edges(self, at: int, where: Filter, *, history: bool) -> dict[int, list[Edge]]:
        """The facts of the buffer, by name."""
        out: dict[int, list[Edge]] = {}
        for key, record in self._buffer().items():
            if not self._snapshot.matches(key, where):
                continue
            for name, until, negative_weight, _, other, start in edge_rows(key, record):
                if until > at and not (history and start is not None and start > at):
                    out.setdefault(name, []).append(Edge(key, -negative_weight, other))
        return out

    def _buffer(self) -> dict[int, Record]:
        """The visible records that the graph has not applied."""
        if self._buffered is None:
            found = self._snapshot.changes(self._applied, MAX_BUFFERED_CHANGES)
            if found.through < self._snapshot.seq:
                raise SourceError(
                    f"the graph is being filled: it is {self._snapshot.seq - self._applied:,} changes behind"
                )
            keys = [change.key for change in found.changes if change.action != "delete"]
            self._buffered = self._snapshot.records(dict.fromkeys(keys))
        return self._buffered


def _endpoints(record: Record) -> tuple[int, int]:
    """The hashes of the subject and of the object of a fact."""
    names: list[int] = []
    for field in ("subject", "object"):
        hash_ = name_hash(str(record.metadata[field]))
        assert hash_ is not None, "edge_rows returned an edge"
        names.append(hash_)
    return names[0], names[1]


def _stored_name(name: object) -> str:
    return str(name)[:MAX_NAME_CHARACTERS]


def _node_id(group: str, name: int) -> str:
    return f"{group}-{name & 0xFFFFFFFFFFFFFFFF:016x}"


def _vector(document: Document) -> list[float]:
    values: NDArray[np.float32] = document.vector
    return values.tolist() if values.any() else EMPTY_VECTOR
