"""The settings of servers: what each role of a database is bound to, and how each server is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from sennit.settings.connections import address, variable_of
from sennit.settings.setting import FieldSpec, Section

RecordsBinding: TypeAlias = Literal["", "sqlite", "postgres"]
KeywordBinding: TypeAlias = Literal["local", "postgres", "opensearch", "qdrant"]
VectorBinding: TypeAlias = Literal["local", "postgres", "qdrant", "chroma", "opensearch"]
GraphBinding: TypeAlias = Literal["local", "graphiti"]

LOCAL: Final = "local"
"""The binding of a role to this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolesSettings(Section):
    """What holds the records and what searches them: this machine, or a server. See docs/architecture.md."""

    name: ClassVar[str] = "roles"

    records: Annotated[
        RecordsBinding,
        FieldSpec(
            "Where the records must be: sqlite for a folder, postgres for postgresql://…; empty: as the database is named."
        ),
    ] = ""
    keyword: Annotated[
        KeywordBinding,
        FieldSpec("What searches words.", sensitive=("postgres", "opensearch", "qdrant")),
    ] = "local"
    vector: Annotated[
        VectorBinding,
        FieldSpec("What searches vectors.", sensitive=("postgres", "qdrant", "chroma", "opensearch")),
    ] = "local"
    graph: Annotated[GraphBinding, FieldSpec("What searches facts.", sensitive=("graphiti",))] = "local"


TextRank: TypeAlias = Literal["ts_rank", "ts_rank_cd"]
TextMatch: TypeAlias = Literal["any", "all_first"]
Bm25Extension: TypeAlias = Literal["auto", "pg_search", "pg_textsearch", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSettings(Section):
    """A Postgres server that holds indexes (`roles.keyword` or `roles.vector` is postgres)."""

    name: ClassVar[str] = "postgres"

    url: Annotated[
        str,
        FieldSpec(
            "The database of the indexes, as postgresql://user@host:5432/name; empty: the one that holds the records.",
            pattern=r"(postgres|postgresql)://.+|",
            expected="a connection string such as postgresql://user@host:5432/name",
            redact_pattern=".",
            sensitive=True,
        ),
    ] = field(default="", repr=False)
    schema: Annotated[
        str,
        FieldSpec(
            "The schema for the tables of the indexes.",
            pattern=r"[a-z_][a-z0-9_]{0,40}",
            expected="lower-case letters, digits and underscores, at most 41 characters",
            sensitive=True,
        ),
    ] = "sennit_index"
    bm25: Annotated[
        Bm25Extension,
        FieldSpec(
            "The extension that ranks words by BM25: auto takes one that is installed in the database; none uses tsvector."
        ),
    ] = "auto"
    rank: Annotated[TextRank, FieldSpec("How a tsvector is ranked, where there is no BM25.")] = "ts_rank"
    match: Annotated[
        TextMatch,
        FieldSpec(
            "all_first ranks records with every word of the query before those with some, on a tsvector."
        ),
    ] = "all_first"
    ef_search: Annotated[
        int,
        FieldSpec("Candidates of one search in the HNSW index; more find more.", minimum=1, maximum=1000),
    ] = 100
    hnsw_m: Annotated[int, FieldSpec("Links of a vector in a new HNSW index.", minimum=2, maximum=100)] = 16
    hnsw_ef_construction: Annotated[
        int, FieldSpec("Candidates while an HNSW index is built.", minimum=4, maximum=1000)
    ] = 64
    hnsw_from: Annotated[
        int,
        FieldSpec(
            "With fewer vectors there is no HNSW index, and each search compares all of them, exactly.",
            minimum=1,
            maximum=100_000_000,
        ),
    ] = 10_000
    build_memory_mb: Annotated[
        int,
        FieldSpec(
            "Memory of the server for building an index; one that fits is built many times faster.",
            minimum=1,
            maximum=1_000_000,
        ),
    ] = 256
    row_security: Annotated[
        bool,
        FieldSpec("Let the server hide the rows of other tenants too, by row-level security."),
    ] = False
    timeout: Annotated[
        float, FieldSpec("Seconds after which the server ends a search.", minimum=0.01, maximum=3600)
    ] = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QdrantSettings(Section):
    """A Qdrant that holds indexes (`roles.keyword` or `roles.vector` is qdrant). See docs/reference/server-qdrant.md."""

    name: ClassVar[str] = "qdrant"

    urls: Annotated[
        tuple[str, ...],
        address(
            "The addresses of its nodes. A request goes to the one that answered last, or else to the next."
        ),
    ] = ("http://127.0.0.1:6333",)
    api_key_env: Annotated[str, variable_of("the API key", "QDRANT_API_KEY")] = ""
    timeout_seconds: Annotated[
        int, FieldSpec("Seconds to wait for one response.", minimum=1, maximum=3600)
    ] = 10
    collection_prefix: Annotated[
        str,
        FieldSpec(
            "What the names of collections begin with.",
            pattern=r"[A-Za-z0-9_-]{1,64}",
            expected="up to 64 letters, digits, - and _",
            sensitive=True,
        ),
    ] = "sennit"
    shard_number: Annotated[
        int, FieldSpec("Shards of a new collection; several spread it over nodes.", minimum=1, maximum=1024)
    ] = 1
    replication_factor: Annotated[
        int, FieldSpec("Copies of each shard of a new collection.", minimum=1, maximum=64)
    ] = 1
    write_consistency_factor: Annotated[
        int, FieldSpec("Copies that must confirm a write before it counts.", minimum=1, maximum=64)
    ] = 1
    on_disk: Annotated[bool, FieldSpec("Keep the vectors of a new collection on disk, not in memory.")] = (
        False
    )
    exact: Annotated[bool, FieldSpec("Compare every vector instead of using the approximate index.")] = False
    hnsw_ef: Annotated[
        int,
        FieldSpec(
            "Candidates that the approximate index looks at: more are slower and miss less.",
            minimum=1,
            maximum=10_000,
        ),
    ] = 128


TextAnalysis: TypeAlias = Literal["sennit", "server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchSettings(Section):
    """A cluster of OpenSearch, for the roles that are bound to it. See docs/reference/server-opensearch.md."""

    name: ClassVar[str] = "opensearch"

    hosts: Annotated[
        tuple[str, ...],
        address("The addresses of the nodes. While one does not answer, the others do."),
    ] = ("http://127.0.0.1:9200",)
    username_env: Annotated[str, variable_of("the user name", "OPENSEARCH_USER")] = ""
    password_env: Annotated[str, variable_of("the password", "OPENSEARCH_PASSWORD")] = ""
    api_key_env: Annotated[str, variable_of("an API key, in place of a user", "OPENSEARCH_API_KEY")] = ""
    ca_file: Annotated[
        str, FieldSpec("A file of certificates to trust, in place of the system's.", sensitive=True)
    ] = ""
    timeout: Annotated[
        float, FieldSpec("Seconds to wait for an answer of one host.", minimum=0.1, maximum=600)
    ] = 10.0
    prefix: Annotated[
        str,
        FieldSpec(
            "What the names of the indexes begin with.",
            pattern=r"[a-z0-9][a-z0-9_.-]{0,50}",
            expected="lower-case letters, digits, _ . and -, beginning with a letter or digit",
            sensitive=True,
        ),
    ] = "sennit"
    shards: Annotated[
        int,
        FieldSpec("Primary shards of an index that is created; see docs/scale.md.", minimum=1, maximum=1024),
    ] = 1
    replicas: Annotated[
        int, FieldSpec("Copies of each shard on other nodes; 0 for a single node.", minimum=0, maximum=20)
    ] = 1
    global_statistics: Annotated[
        bool,
        FieldSpec(
            "Collect the statistics of all shards before candidates are chosen (dfs_query_then_fetch). Scores are "
            "always computed with those of the whole index."
        ),
    ] = False
    analysis: Annotated[
        TextAnalysis,
        FieldSpec(
            "Who splits texts into words: sennit, the same as everywhere; or the server, by `analyzer`, whose own score "
            "counts by rank. The server then gets the texts."
        ),
    ] = "sennit"
    analyzer: Annotated[
        str,
        FieldSpec(
            "The analyser of the server, where it splits texts into words: standard, english, cjk or another that it has.",
            pattern=r"[A-Za-z0-9_.-]{1,64}",
            expected="the name of an analyser",
        ),
    ] = "standard"
    candidates: Annotated[
        int,
        FieldSpec(
            "The least number of neighbours that a vector search collects in each shard; more is slower and more exact.",
            minimum=1,
            maximum=10_000,
        ),
    ] = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChromaSettings(Section):
    """A Chroma that holds the vector index (`roles.vector` is chroma). See docs/reference/server-chroma.md."""

    name: ClassVar[str] = "chroma"

    url: Annotated[str, address("The address of the server.")] = "http://127.0.0.1:8000"
    path: Annotated[
        str,
        FieldSpec(
            "A folder for Chroma inside this process instead of a server; only one process may use it.",
            sensitive=True,
        ),
    ] = ""
    api_key_env: Annotated[str, variable_of("the API key", "CHROMA_API_KEY")] = ""
    tenant: Annotated[str, FieldSpec("The tenant on the server.", sensitive=True)] = "default_tenant"
    database: Annotated[str, FieldSpec("The database of the tenant.", sensitive=True)] = "default_database"
    collection_prefix: Annotated[
        str,
        FieldSpec(
            "What the names of collections begin with.",
            pattern=r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}",
            expected="up to 64 letters, digits, - and _",
            sensitive=True,
        ),
    ] = "sennit"
    timeout_seconds: Annotated[
        float, FieldSpec("Seconds to wait for one response.", minimum=0.1, maximum=3600)
    ] = 10.0
    ef_search: Annotated[
        int,
        FieldSpec(
            "Candidates that the approximate index of a new collection looks at.", minimum=1, maximum=10_000
        ),
    ] = 200


GraphBackend: TypeAlias = Literal["falkordb", "neo4j"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphitiSettings(Section):
    """Graphiti, which holds facts (`roles.graph` is graphiti). See docs/reference/server-graphiti.md."""

    name: ClassVar[str] = "graphiti"

    backend: Annotated[GraphBackend, FieldSpec("The database that Graphiti keeps facts in.")] = "falkordb"
    url: Annotated[
        str,
        address(
            "Its address: redis://host:6379 for FalkorDB, bolt://host:7687 or neo4j://… for Neo4j.",
            r"(redis|rediss|bolt|bolt\+s|neo4j|neo4j\+s)",
            "redis://127.0.0.1:6379",
        ),
    ] = "redis://127.0.0.1:6379"
    user: Annotated[str, FieldSpec("The name of the user; empty without one.", sensitive=True)] = ""
    password_env: Annotated[str, variable_of("the password", "NEO4J_PASSWORD")] = ""
    database: Annotated[str, FieldSpec("The database of Neo4j; empty for its default.", sensitive=True)] = ""
    group_prefix: Annotated[
        str,
        FieldSpec(
            "What the ids of groups begin with.",
            pattern=r"[A-Za-z][A-Za-z0-9_]{0,63}",
            expected="up to 64 letters, digits and _",
            sensitive=True,
        ),
    ] = "sennit"
    timeout_seconds: Annotated[
        float, FieldSpec("Seconds for one search or one batch of changes.", minimum=0.1, maximum=3600)
    ] = 60.0


SERVER_SECTIONS: Final = (
    RolesSettings,
    PostgresSettings,
    QdrantSettings,
    OpenSearchSettings,
    ChromaSettings,
    GraphitiSettings,
)
