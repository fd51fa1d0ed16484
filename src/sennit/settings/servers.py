"""The settings of servers: what each role of a database is bound to, and how each server is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

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


SERVER_SECTIONS: Final = (RolesSettings, PostgresSettings)
